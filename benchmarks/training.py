"""A step of masked-language-model training: bertlib beside transformers, time and memory.

Both start from the same weights, see the same batches and take the same fused AdamW, without dropout. Their losses are
held equal over six steps before a step is timed. Memory is measured in a process of its own for each, twice: as the
system sees it, with the code that the first step loads and the holes that its allocations leave, which vary from run to
run; and as torch counts its own allocations, which do not.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from itertools import accumulate
from pathlib import Path

from benchmarks.timing import interleave, one_thread, table, write_section

one_thread()

import numpy as np  # noqa: E402
import torch  # noqa: E402
from torch import Tensor  # noqa: E402

from bertlib import BertForMaskedLM  # noqa: E402
from bertlib.batching import pad  # noqa: E402
from bertlib.masking import mask_tokens  # noqa: E402

SIZES = {
    "hidden_size": 256,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "intermediate_size": 1024,
    "max_position_embeddings": 128,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
EVEN = [128] * 16
RAGGED = np.random.default_rng(0).integers(8, 129, 16).tolist()
CASES = {  # vocabulary and lengths
    "vocabulary 30,522": (30522, EVEN),
    "vocabulary 8,000": (8000, EVEN),
    "vocabulary 8,000, documents of 8-128": (8000, RAGGED),
}
SPECIAL, MASK = range(5), 4
STEPS = 6
CLOSE = 1e-5  # relative, of two losses

Batch = dict[str, Tensor]


def batches(vocab_size: int, lengths: list[int]) -> Iterator[Batch]:
    """Padded batches of random ids, 15% of them to be guessed; the same ones at each call."""
    generator = np.random.default_rng(2)
    while True:
        ids, attention_mask = pad([generator.integers(len(SPECIAL), vocab_size, length) for length in lengths])
        corrupted, labels = mask_tokens(
            ids,
            mask_id=MASK,
            vocab_size=vocab_size,
            special_ids=SPECIAL,
            generator=generator,
            attention_mask=attention_mask,
        )
        yield {"input_ids": corrupted, "attention_mask": attention_mask, "labels": labels}


def save_start(folder: Path, vocab_size: int, **sizes) -> None:
    """Random weights, in files that both libraries read."""
    import transformers

    torch.manual_seed(0)
    transformers.BertForMaskedLM(transformers.BertConfig(vocab_size=vocab_size, **SIZES | sizes)).save_pretrained(
        folder
    )


def load(library: str, folder: Path) -> torch.nn.Module:
    if library == "bertlib":
        return BertForMaskedLM.from_pretrained(folder).train()
    import transformers

    return transformers.BertForMaskedLM.from_pretrained(folder, attn_implementation="sdpa").train()


def stepper(model: torch.nn.Module, stream: Iterator[Batch], bf16: bool = False) -> Callable[[], float]:
    """A function that takes a step and gives the loss before it."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)

    def step() -> float:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bf16):
            loss = model(**next(stream)).loss
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def equal_losses(steps: dict[str, Callable[[], float]], base: str, others: list[str]) -> float:
    """The largest relative difference of the losses of the first steps.

    Raises:
        AssertionError: when it is more than rounding.
    """
    losses = {name: np.array([steps[name]() for _ in range(STEPS)]) for name in (base, *others)}
    worst = max(float(np.abs(losses[name] / losses[base] - 1).max()) for name in others)
    if not worst <= CLOSE:
        raise AssertionError(f"losses are not equal, {worst:.1e} apart: nothing is timed; {losses}")
    return worst


def peak_growth(step: Callable[[], float]) -> float | None:
    """By how many MiB the memory of this process grows, at its peak, over six steps; None where Linux does not tell."""
    status = Path("/proc/self/status")
    try:
        Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    except OSError:
        return None
    before = _kilobytes(status, "VmRSS")
    for _ in range(STEPS):
        step()
    return (_kilobytes(status, "VmHWM") - before) / 1024


def allocated(step: Callable[[], float]) -> float:
    """How many MiB torch allocates in a step, at its peak, beyond the weights and the optimizer's state."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        step()
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.json"
        profile.export_chrome_trace(str(trace))
        events = json.loads(trace.read_text())["traceEvents"]
    changes = sorted((event["ts"], event["args"]["Bytes"]) for event in events if event.get("name") == "[memory]")
    return max(accumulate(change for _, change in changes)) / 2**20


def _kilobytes(status: Path, name: str) -> int:
    return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith(f"{name}:"))


def measure(library: str, folder: str, vocab_size: int, lengths: list[int]) -> dict[str, float | None]:
    """Both memories, by the name of their column."""
    step = stepper(load(library, Path(folder)), batches(vocab_size, lengths))
    return {"process": peak_growth(step), "allocated": allocated(step)}


def measured_apart(library: str, folder: Path, vocab_size: int, lengths: list[int]) -> dict[str, float | None]:
    """`measure` in a fresh process."""
    job = json.dumps([library, str(folder), vocab_size, lengths])
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.training", "--measure", job]
    root = Path(__file__).resolve().parent.parent
    output = subprocess.run(command, check=True, capture_output=True, text=True, cwd=root).stdout
    return json.loads(output.splitlines()[-1])


def time_case(folder: Path, vocab_size: int, lengths: list[int], rounds: int, peak: bool = True) -> list[list[str]]:
    """The rows of one case: transformers, bertlib, and both in bf16 autocast."""
    steps = {}
    for library in ("transformers", "bertlib"):
        for bf16 in (False, True):
            name = f"{library}, bf16 autocast" if bf16 else library
            steps[name] = stepper(load(library, folder), batches(vocab_size, lengths), bf16)
    worst = equal_losses(steps, "transformers", ["bertlib"])
    for name in ("transformers, bf16 autocast", "bertlib, bf16 autocast"):
        steps[name]()
    times = interleave(steps, rounds, warm_up=False)
    memory = {name: measured_apart(name, folder, vocab_size, lengths) for name in steps if peak and "," not in name}
    rows = []
    for name in steps:
        rows.append(
            [
                f"**{name}**" if "bertlib" in name else name,
                times.speedup(name, "transformers"),
                times.speedup(name, "transformers", wall=True),
                f"{1000 * statistics.median(times.cpu[name]):,.0f}",
                *(_memory_cell(memory, name, column) for column in ("process", "allocated")),
                f"{worst:.0e}" if name == "bertlib" else "",
            ]
        )
    return rows


def _memory_cell(memory: dict[str, dict[str, float | None]], name: str, column: str) -> str:
    found = memory.get(name, {}).get(column)
    return "" if found is None else f"{found:,.0f} ({found / memory['transformers'][column]:.2f})"


def main(arguments: list[str] | None = None) -> str:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--case", nargs="*", default=list(CASES), choices=list(CASES))
    parser.add_argument("--dry", action="store_true", help="print the tables, and leave results.md as it is")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    if options.measure:
        library, folder, *case = json.loads(options.measure)
        print(json.dumps(measure(library, folder, *case)))
        return ""
    body = (
        f"A step of {SIZES['num_hidden_layers']} layers x {SIZES['hidden_size']}, 16 sequences of 128 tokens or of the "
        f"lengths said, fused AdamW, no dropout. Median of {options.rounds} rounds (quartiles). Memory, and in "
        f"brackets its share of the peer's: the growth of the process at its peak over {STEPS} steps, code and holes "
        "between allocations included; and what torch allocates in a step, at its peak, beyond weights and optimizer. "
        "The last column is how far the losses of the first steps lie apart."
    )
    for case in options.case:
        vocab_size, lengths = CASES[case]
        with tempfile.TemporaryDirectory() as folder:
            save_start(Path(folder), vocab_size)
            rows = time_case(Path(folder), vocab_size, lengths, options.rounds)
        columns = [case, "processor time", "wall", "ms a step", "process, MiB", "allocated, MiB", "losses"]
        body += f"\n\n{sum(lengths):,} real tokens of {len(lengths) * max(lengths):,} when padded.\n\n" + table(
            columns, rows
        )
    command = "python -m benchmarks.training " + " ".join(arguments if arguments is not None else sys.argv[1:])
    if not options.dry:
        body = write_section("Training", body, command.strip(), ("torch", "transformers"))
    print(body)
    return body


if __name__ == "__main__":
    main()
