"""What the benchmarks share: turns, medians, the machine in words, and the page of results.

A busy machine slows everything down, but not evenly over time. So the candidates take turns, one call each a round, and
what is reported is the median over rounds of the ratio of two calls of the same round. Time is the processor time of
this process, on one thread, which a neighbour disturbs far less than the clock on the wall; the wall stands beside it.
"""

from __future__ import annotations

import gc
import os
import platform
import re
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

RESULTS = Path(__file__).with_name("results.md")
HEADING = "# Timings\n\nWritten by `make bench`; what the columns mean is said in `timing.py`. One thread.\n"


class Times:
    """Processor and wall seconds of each candidate, round by round."""

    def __init__(self, names: Iterable[str]):
        self.cpu: dict[str, list[float]] = {name: [] for name in names}
        self.wall: dict[str, list[float]] = {name: [] for name in self.cpu}

    def speedups(self, name: str, base: str, wall: bool = False) -> list[float]:
        """How many times as fast as `base`, in each round."""
        seconds = self.wall if wall else self.cpu
        return [theirs / ours for theirs, ours in zip(seconds[base], seconds[name], strict=True)]

    def speedup(self, name: str, base: str, wall: bool = False) -> str:
        return spread(self.speedups(name, base, wall))


def interleave(candidates: Mapping[str, Callable[[], object]], rounds: int, warm_up: bool = True) -> Times:
    """Call each candidate once a round, in an order that turns by one place a round.

    Args:
        candidates: by name; each is called without arguments.
        rounds: how many.
        warm_up: call each once before, untimed.

    Raises:
        ValueError: when there is no candidate or no round.
    """
    if not candidates or rounds < 1:
        raise ValueError(f"candidates and rounds must be at least one, not {len(candidates)} and {rounds}")
    if warm_up:
        for call in candidates.values():
            call()
    times, names = Times(candidates), list(candidates)
    for number in range(rounds):
        turn = number % len(names)
        gc.collect()
        for name in names[turn:] + names[:turn]:
            wall, cpu = time.perf_counter(), time.process_time()
            candidates[name]()
            times.cpu[name].append(time.process_time() - cpu)
            times.wall[name].append(time.perf_counter() - wall)
    return times


def spread(values: Sequence[float]) -> str:
    """`1.80 (1.75-1.84)`: the median and, in brackets, the quartiles, or both ends when there are fewer than four."""
    if len(values) < 4:
        low, high = min(values), max(values)
    else:
        low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{statistics.median(values):.2f} ({low:.2f}-{high:.2f})"


def one_thread() -> None:
    """One thread for all libraries: call it before torch or a peer is imported."""
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"):
        os.environ[name] = "1"
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    os.environ["TRANSFORMERS_VERBOSITY"] = "error"


def processor() -> str:
    """The processor's name, how many cores of it there are, and what of its instructions matters here."""
    name, features = platform.processor() or platform.machine(), set()
    info = Path("/proc/cpuinfo")
    if info.exists():
        text = info.read_text()
        if found := re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE):
            name = found[1]
        if found := re.search(r"^flags\s*:\s*(.+)$", text, re.MULTILINE):
            features = set(found[1].split())
    known = [flag for flag in ("avx2", "avx512f", "avx512_bf16", "amx_bf16") if flag in features]
    return ", ".join([name, f"{os.cpu_count()} cores", *known])


def load() -> str:
    """How busy the machine is, where it says: processes that want a core, averaged over a minute."""
    return f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"


def versions(packages: Iterable[str]) -> str:
    """`torch 2.13.0, onnx none`: installed versions by name."""
    found = []
    for name in packages:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"{name} none")
    return ", ".join(found)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table, the first column on the left and the others on the right."""
    lines = [columns, ["---", *["---:"] * (len(columns) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def write_section(title: str, body: str, command: str, packages: Iterable[str], path: Path = RESULTS) -> str:
    """Put a section in the place of the older one of its title, or at the end, and give it back."""
    about = (
        f"{datetime.now().astimezone():%Y-%m-%d %H:%M %Z}; {processor()}; {platform.system()}, Python "
        f"{platform.python_version()}; load {load()} at the end; {versions(['bertlib', *packages])}.\n\n"
        f"`{command}`"
    )
    section = f"## {title}\n\n{about}\n\n{body.strip()}\n"
    old = path.read_text(encoding="utf-8") if path.exists() else HEADING
    parts = re.split(r"^(?=## )", old, flags=re.MULTILINE)
    places = [number for number, part in enumerate(parts) if part.startswith(f"## {title}\n")]
    if places:
        parts[places[0]] = section
    else:
        parts.append(section)
    path.write_text("\n".join(part.strip() + "\n" for part in parts), encoding="utf-8")
    return section
