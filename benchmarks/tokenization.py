"""From text to ids: bertlib's tokenizer beside one thread of the Rust library `tokenizers`.

Cold is the first pass over the text of a tokenizer that was just made, warm a pass over text that it has seen. The Rust
library keeps no memory of words, so its two are the same; it is timed with offsets, as people call it, and without
(`encode_batch_fast`). Ids are held equal, line by line, first.
"""

from __future__ import annotations

import argparse
import gzip
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.timing import interleave, one_thread, table, write_section

one_thread()

from tokenizers.implementations import BertWordPieceTokenizer  # noqa: E402

from bertlib import WordPieceTokenizer, datasets  # noqa: E402

TEXTS = {
    "wikitext2-valid": "encyclopaedia",
    "wikitext2-train": "encyclopaedia, more of it",
    "tatoeba-spa": "short sentences in English and Spanish",
}


def read_lines(name: str, most: int) -> list[str]:
    """The lines of a data set that are not empty, up to so many characters."""
    lines, size = [], 0
    content = datasets.fetch(name).read_bytes()
    content = gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content
    for line in content.decode("utf-8").splitlines():
        line = line.strip().partition("\tCC-BY")[0]  # of tatoeba the sentences, not the names of their authors
        if line and size < most:
            lines.append(line)
            size += len(line)
    return lines


def rust(vocab: Path) -> Callable[..., list[list[int]]]:
    """The peer: from lines to ids."""
    tokenizer = BertWordPieceTokenizer(str(vocab), lowercase=True)._tokenizer

    def encode(lines: list[str], fast: bool = False) -> list[list[int]]:
        batch = tokenizer.encode_batch_fast if fast else tokenizer.encode_batch
        return [encoding.ids for encoding in batch(lines, add_special_tokens=False)]

    return encode


def ours(vocab: Path) -> Callable[[list[str]], list[list[int]]]:
    tokenizer = WordPieceTokenizer.from_vocab(vocab)
    return lambda lines: [tokenizer.token_ids(line) for line in lines]


def check(lines: list[str], found: list[list[int]], expected: list[list[int]]) -> None:
    """Raises AssertionError with the first line whose ids differ."""
    for line, ours, theirs in zip(lines, found, expected, strict=True):
        if ours != theirs:
            raise AssertionError(f"ids differ, and nothing is timed: {line!r} gives {ours} and not {theirs}")


def rows(lines: list[str], vocab: Path, rounds: int) -> list[list[str]]:
    """Checked and timed. Making our tokenizers is not timed, nor is making theirs."""
    theirs, warm = rust(vocab), ours(vocab)
    expected = theirs(lines)
    check(lines, warm(lines), expected)
    check(lines, theirs(lines, fast=True), expected)
    fresh = [ours(vocab) for _ in range(rounds)]
    times = interleave(
        {
            "tokenizers, with offsets": lambda: theirs(lines),
            "tokenizers, fast": lambda: theirs(lines, fast=True),
            "**bertlib, cold**": lambda: fresh.pop()(lines),
            "**bertlib, warm**": lambda: warm(lines),
        },
        rounds,
        warm_up=False,
    )
    tokens = sum(map(len, expected))
    return [
        [
            name,
            times.speedup(name, "tokenizers, with offsets"),
            times.speedup(name, "tokenizers, with offsets", wall=True),
            times.speedup(name, "tokenizers, fast"),
            f"{tokens / statistics.median(seconds) / 1e6:.2f}",
        ]
        for name, seconds in times.cpu.items()
    ]


def main(arguments: list[str] | None = None) -> str:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--characters", type=int, default=5_000_000, help="of each text, at most")
    parser.add_argument("--dry", action="store_true", help="print the tables, and leave results.md as it is")
    options = parser.parse_args(arguments)
    vocab = datasets.fetch("minilm-vocab")
    body = f"BERT's published vocabulary, ids equal on every line. Median of {options.rounds} rounds (quartiles)."
    for name, what in TEXTS.items():
        lines = read_lines(name, options.characters)
        size = sum(map(len, lines))
        columns = [name, "processor time", "wall", "against fast", "million tokens/s"]
        body += f"\n\n{name}, {what}: {len(lines):,} lines, {size / 1e6:.1f} million characters.\n\n"
        body += table(columns, rows(lines, vocab, options.rounds))
    command = "python -m benchmarks.tokenization " + " ".join(arguments if arguments is not None else sys.argv[1:])
    if not options.dry:
        body = write_section("Tokenization", body, command.strip(), ("tokenizers",))
    print(body)
    return body


if __name__ == "__main__":
    main()
