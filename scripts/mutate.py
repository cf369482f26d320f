"""Plant known faults in the code, one at a time, and see a test fail for each.

    python scripts/mutate.py                  every fault of tests/mutations.toml; writes tests/mutations.md
    python scripts/mutate.py masking padding  those whose file or description has one of the words; writes nothing

A fault is a text of one file that is put in place of another; the tests named with it must notice. Each is planted in a
temporary copy of the working tree, never in place. Before the first, every old text must stand in its file exactly
once, and the tests named must pass on a copy without a fault.

The exit status is 0 when every fault was caught by a failing test; 1 when one survived, its tests did not run to an
end, or what must hold before the first does not.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FAULTS, TABLE = "tests/mutations.toml", "tests/mutations.md"
LEFT_OUT = shutil.ignore_patterns(".*", "_build", "__pycache__", "*.egg-info", "node_modules")
ENVIRONMENT = {
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "PYTHONUTF8": "1",
}
PASSED, FAILED = 0, 1  # pytest's exit status; every other means that the tests did not run to an end
FAILURE = re.compile(r"^FAILED (\S+?::.+?)(?: - .*)?$", re.MULTILINE)


@dataclass(frozen=True)
class Fault:
    """What is wrong, in a line; the file, the text in it and the wrong one; the tests that must notice."""

    about: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


@dataclass(frozen=True)
class Outcome:
    """What came of a fault: the test that caught it, or what went wrong instead, and the seconds it took."""

    fault: Fault
    caught_by: str | None
    problem: str
    seconds: float


class MutationError(ValueError):
    """A list of faults that cannot be used; the message says which fault and why."""


def read_faults(path: Path) -> list[Fault]:
    """The faults of a TOML file, in its order: `[[fault]]` tables with the fields of `Fault`.

    Raises:
        MutationError: when the file cannot be read, or a fault lacks a field, has one too many, or changes nothing.
    """
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8")).get("fault", [])
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise MutationError(f"{path}: {error}") from error
    faults = []
    for number, table in enumerate(tables, start=1):
        place = f"{path.name}, fault {number} ({table.get('about', 'no description')})"
        if set(table) != {"about", "file", "old", "new", "tests"}:
            raise MutationError(f"{place}: the fields are about, file, old, new and tests, not {', '.join(table)}")
        if not table["tests"] or isinstance(table["tests"], str):
            raise MutationError(f"{place}: tests must be a list of at least one, not {table['tests']!r}")
        if table["old"] == table["new"]:
            raise MutationError(f"{place}: old and new are the same")
        faults.append(Fault(**table | {"tests": tuple(table["tests"])}))
    return faults


def plant(fault: Fault, root: Path) -> str:
    """The text of the fault's file with the fault in it.

    Raises:
        MutationError: when there is no such file below `root`, or the old text does not stand in it exactly once.
    """
    path = root / fault.file
    if not path.resolve().is_relative_to(root.resolve()) or not path.is_file():
        raise MutationError(f"there is no {fault.file}")
    text = path.read_text(encoding="utf-8")
    count = text.count(fault.old)
    if count != 1:
        raise MutationError(f"the old text stands {count} times in {fault.file}: {fault.old!r}")
    return text.replace(fault.old, fault.new)


@contextmanager
def copy_of(root: Path) -> Iterator[Path]:
    """A copy of the working tree that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="mutate-") as folder:
        yield Path(shutil.copytree(root, Path(folder) / "tree", ignore=LEFT_OUT))


def run_tests(tree: Path, tests: Iterable[str], timeout: float) -> tuple[int | None, str]:
    """Pytest's exit status, None when the time ran out, and what it printed."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-rf", "-p", "no:cacheprovider", *tests]
    environment = os.environ | ENVIRONMENT | {"PYTHONPATH": str(tree)}  # before an editable install of the original
    try:
        done = subprocess.run(
            command, cwd=tree, env=environment, capture_output=True, text=True, encoding="utf-8", timeout=timeout
        )
    except subprocess.TimeoutExpired:
        return None, ""
    return done.returncode, done.stdout + done.stderr


def try_fault(fault: Fault, root: Path, timeout: float) -> Outcome:
    """Plant the fault in a copy of the tree and run its tests there."""
    begin = time.perf_counter()
    caught_by, problem = None, ""
    try:
        with copy_of(root) as tree:
            faulty = plant(fault, tree)
            (tree / fault.file).write_text(faulty, encoding="utf-8", newline="\n")
            status, output = run_tests(tree, fault.tests, timeout)
        failure = FAILURE.search(output)
        if status == FAILED and failure:
            caught_by = failure[1]
        elif status == PASSED:
            problem = "survived: every test passed"
        elif status is None:
            problem = f"the tests took more than {timeout:.0f} s"
        else:
            problem = f"the tests did not run to an end (pytest's exit status {status}): {_last_line(output)}"
    except MutationError as error:
        problem = str(error)
    return Outcome(fault, caught_by, problem, time.perf_counter() - begin)


def check_texts(faults: list[Fault], root: Path) -> None:
    """Hold each fault against its file.

    Raises:
        MutationError: when one cannot be planted; the message names every one.
    """
    misfits = []
    for fault in faults:
        try:
            plant(fault, root)
        except MutationError as error:
            misfits.append(f"{fault.about}: {error}")
    if misfits:
        raise MutationError("\n".join(misfits))


def check_without_fault(faults: list[Fault], root: Path, timeout: float) -> None:
    """Run all tests that the faults name on a copy that has none.

    Raises:
        MutationError: when they do not pass.
    """
    with copy_of(root) as tree:
        status, output = run_tests(tree, sorted({test for fault in faults for test in fault.tests}), timeout)
    if status != PASSED:
        failure = FAILURE.search(output)
        raise MutationError(f"the tests fail without a fault: {failure[1] if failure else _last_line(output)}")


def try_all(
    faults: list[Fault], root: Path, timeout: float, processes: int, report: Callable[[Outcome], None]
) -> list[Outcome]:
    """The outcomes in the order of the faults; each is reported when it and those before it are there."""
    outcomes = []
    with ThreadPoolExecutor(processes) as pool:
        for outcome in pool.map(lambda fault: try_fault(fault, root, timeout), faults):
            report(outcome)
            outcomes.append(outcome)
    return outcomes


def table(outcomes: list[Outcome]) -> str:
    """The outcomes as Markdown."""
    caught = sum(outcome.caught_by is not None for outcome in outcomes)
    lines = [
        "# Planted faults",
        "",
        "Written by `python scripts/mutate.py` from `tests/mutations.toml`: each fault was planted in a copy of the",
        f"code, and the first test that failed is named. {caught} of {len(outcomes)} were caught.",
        "",
        "| fault | in | caught by | seconds |",
        "|---|---|---|---:|",
    ]
    for outcome in outcomes:
        what = f"`{_short(outcome.caught_by)}`" if outcome.caught_by else f"**not caught** {outcome.problem}"
        cells = [outcome.fault.about, f"`{outcome.fault.file}`", what, f"{outcome.seconds:.0f}"]
        lines.append("| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def _short(test: str) -> str:
    return test.rpartition("/")[2]


def _last_line(output: str) -> str:
    return next((line for line in reversed(output.splitlines()) if line.strip()), "no output")


def _print(outcome: Outcome) -> None:
    mark, what = ("caught", _short(outcome.caught_by)) if outcome.caught_by else ("NOT CAUGHT", outcome.problem)
    print(f"{mark:10}  {outcome.seconds:5.1f} s  {outcome.fault.about}  [{what}]", flush=True)


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """The command line; 0 when every fault was caught."""
    parser = argparse.ArgumentParser(prog="python scripts/mutate.py", description="See a test fail for each fault.")
    parser.add_argument("words", nargs="*", help="only faults whose file or description has one of these words")
    parser.add_argument("--processes", type=int, choices=(1, 2), default=2, help="how many run at a time (default 2)")
    parser.add_argument("--timeout", type=float, default=300, help="seconds that the tests of a fault may take")
    options = parser.parse_args(arguments)
    try:
        faults = read_faults(root / FAULTS)
        if options.words:
            faults = [f for f in faults if any(w.lower() in f"{f.file} {f.about}".lower() for w in options.words)]
        if not faults:
            raise MutationError("there is no such fault" if options.words else f"{FAULTS} has no fault")
        check_texts(faults, root)
        check_without_fault(faults, root, options.timeout)
    except MutationError as error:
        print(error, file=sys.stderr)
        return 1
    begin = time.perf_counter()
    outcomes = try_all(faults, root, options.timeout, options.processes, _print)
    left = sum(outcome.caught_by is None for outcome in outcomes)
    print(f"{len(outcomes) - left} of {len(outcomes)} faults caught in {time.perf_counter() - begin:.0f} s")
    if not options.words:
        (root / TABLE).write_text(table(outcomes), encoding="utf-8", newline="\n")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
