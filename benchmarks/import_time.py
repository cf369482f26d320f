"""What an import costs beyond torch, in fresh processes: bertlib, all of what a model needs, and transformers' BERT."""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
from pathlib import Path

from benchmarks.timing import one_thread, spread, table, write_section

one_thread()

STATEMENTS = {  # what is timed, and what comes before it
    "torch": ("import torch", ""),
    "**bertlib**": ("import bertlib", "import torch"),
    "**bertlib, its models, tokenizer and batches**": (
        "from bertlib import BertForMaskedLM, WordPieceTokenizer, fast_matmul, batching, masking",
        "import torch",
    ),
    "**bertlib's tokenizer, without torch**": ("from bertlib import WordPieceTokenizer", ""),
    "transformers' BertModel": ("from transformers import BertModel", "import torch"),
    "tokenizers": ("import tokenizers", ""),
}
PROGRAM = (
    "{before}\nimport time\nw, c = time.perf_counter(), time.process_time()\n{timed}\n"
    "print(time.process_time() - c, time.perf_counter() - w)"
)


def seconds(timed: str, before: str) -> tuple[float, float]:
    """Processor and wall time of a statement in a fresh process."""
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM.format(before=before, timed=timed)]
    root = Path(__file__).resolve().parent.parent
    output = subprocess.run(command, check=True, capture_output=True, text=True, cwd=root).stdout
    cpu, wall = output.split()[-2:]
    return float(cpu), float(wall)


def main(arguments: list[str] | None = None) -> str:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dry", action="store_true", help="print the table, and leave results.md as it is")
    options = parser.parse_args(arguments)
    found = {name: [] for name in STATEMENTS}
    for number in range(options.rounds + 1):
        for name, statement in STATEMENTS.items():
            sample = seconds(*statement)
            if number:  # the first round fills the disk's cache and writes .pyc files
                found[name].append(sample)
    rows = [
        [name, spread([cpu for cpu, _ in samples]), f"{statistics.median(wall for _, wall in samples):.2f}"]
        for name, samples in found.items()
    ]
    body = f"Median of {options.rounds} fresh processes (quartiles); torch is imported before, where it is needed.\n\n"
    body += table(["import", "seconds of processor time", "wall"], rows)
    command = "python -m benchmarks.import_time " + " ".join(arguments if arguments is not None else sys.argv[1:])
    if not options.dry:
        body = write_section("Import", body, command.strip(), ("torch", "transformers", "tokenizers"))
    print(body)
    return body


if __name__ == "__main__":
    main()
