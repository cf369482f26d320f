"""Hold the tokenizer against the Rust library `tokenizers` on all the text of the registry; `make parity`.

    python scripts/tokenizer_parity.py                  all of it, which is slow
    python scripts/tokenizer_parity.py film-reviews     that one

Each distinct line is tokenized with and without lower-casing: ids, tokens, offsets and types of the spelled-out form,
and the ids of the fast one, must be the same. Columns of a Tatoeba file count as lines. The exit status is 1 when one
line differs.
"""

import gzip
import sys

import tokenizers

from bertlib import datasets
from bertlib.tokenization import WordPieceTokenizer

TEXTS = ("film-reviews", "wikitext2-train", "wikitext2-valid", "wikitext2-test", "tatoeba-spa", "tatoeba-ukr")
BATCH = 2_000  # lines


def lines_of(name: str) -> list[str]:
    path = datasets.fetch(name)
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8")
    lines = text.replace("\t", "\n") if path.suffix == ".tsv" else text
    return list(dict.fromkeys(lines.split("\n")))


def count_differences(lines: list[str], lowercase: bool) -> tuple[int, int]:
    """How many lines differ, and how many tokens the lines have; the first few that differ are printed."""
    vocab = datasets.fetch("minilm-vocab")
    ours = WordPieceTokenizer.from_vocab(vocab, lowercase)
    reference = tokenizers.BertWordPieceTokenizer(str(vocab), lowercase=lowercase, strip_accents=lowercase)
    different = tokens = 0
    for begin in range(0, len(lines), BATCH):
        batch = lines[begin : begin + BATCH]
        for line, wanted in zip(batch, reference.encode_batch(batch), strict=True):
            found = ours.encode(line)
            tokens += len(found)
            same = (found.ids, found.tokens, found.offsets, found.type_ids) == (
                wanted.ids,
                wanted.tokens,
                wanted.offsets,
                wanted.type_ids,
            )
            if not same or ours.token_ids(line) != wanted.ids[1:-1]:
                different += 1
                if different <= 5:
                    print(f"  differs: {line!r}", file=sys.stderr)
    return different, tokens


def main(names: list[str]) -> int:
    print(f"tokenizers {tokenizers.__version__}, Python {sys.version.split()[0]}")
    seen: set[str] = set()
    totals = [0, 0, 0, 0]
    for name in names or TEXTS:
        lines = [line for line in lines_of(name) if line not in seen]
        seen.update(lines)
        results = [count_differences(lines, lowercase) for lowercase in (True, False)]
        size = sum(len(line.encode("utf-8")) for line in lines)
        row = [size, len(lines), *map(sum, zip(*reversed(results), strict=True))]
        totals = [total + number for total, number in zip(totals, row, strict=True)]
        print(f"{name}: {size / 1e6:.1f} MB, {row[1]:,} lines, {row[3]:,} tokens, {row[2]} differ", flush=True)
    print(f"all: {totals[0] / 1e6:.1f} MB, {totals[1]:,} lines, {totals[3]:,} tokens, {totals[2]} differ")
    return 1 if totals[2] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
