"""From a text to words, by the rules of BERT's reference tokenizer (google-research/bert, `BasicTokenizer`; the paper,
Devlin et al. 2019, leaves them to its code), every character with its place in the original text.

Four steps, each a function of the characters so far: `clean`, `space_cjk`, `strip_accents`, `lower`. `normalize` runs
them, and `split_words` cuts the result at spaces and around punctuation. `fast_words` is the same for one chunk without
spaces, without places, and with a short way for ASCII. Which character belongs to which class is the business of
`unicode_classes.toml`.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterable
from pathlib import Path

Aligned = tuple[str, int]  # one character, and the place in the original text of the one that it came from

_TABLES = tomllib.loads(Path(__file__).with_name("unicode_classes.toml").read_text(encoding="utf-8"))


def _code_points(row: str) -> range:
    """The code points of `41` or `41-5A`."""
    first, _, last = row.partition("-")
    return range(int(first, 16), int(last or first, 16) + 1)


def _characters(table: str) -> frozenset[str]:
    return frozenset(chr(point) for row in _TABLES[table].split() for point in _code_points(row))


PUNCTUATION = _characters("punctuation")
FORMAT = _characters("format")
NONSPACING_MARKS = _characters("nonspacing_mark")
NOT_DECOMPOSED = _characters("not_decomposed")
LOWER_CASE = {
    chr(point): chr(int(target, 16) + number)
    for source, _, target in (row.partition(":") for row in _TABLES["lowercase"].split())
    for number, point in enumerate(_code_points(source))
}
WHITESPACE = frozenset("\t\n\r \xa0\u1680\u2028\u2029\u202f\u205f\u3000").union(map(chr, range(0x2000, 0x200B)))
CJK = (  # blocks of Chinese characters; 2B820-2B91F, the start of extension E, is missing in the reference too
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B81F),
    (0x2B920, 0x2CEAF),
    (0x2F800, 0x2FA1F),
)

_SPLIT_BY_PYTHON = re.compile("[\x0b\x0c\x1c-\x1f\x85]+")  # where str.split cuts and BERT deletes
_ASCII_CONTROL = re.compile("[\x00-\x1f\x7f]+")
_ASCII_WORDS = re.compile("[0-9A-Za-z]+|[^0-9A-Za-z]")


def is_deleted(character: str) -> bool:
    """Whether `clean` drops it: control, format and private-use characters, U+FFFD, and halves of surrogate pairs.

    Tab, newline and carriage return are spaces instead. Unassigned code points stay.
    """
    if character in WHITESPACE:
        return False
    return character == "\ufffd" or character in FORMAT or unicodedata.category(character) in ("Cc", "Co", "Cs")


def is_cjk(character: str) -> bool:
    """Whether it is a Chinese character, which BERT takes for a word of its own; kana and hangul are not."""
    return character >= "\u3400" and any(first <= ord(character) <= last for first, last in CJK)


def clean(characters: Iterable[Aligned]) -> list[Aligned]:
    """Without what `is_deleted`, and with every kind of whitespace turned into a space."""
    return [
        (" " if character in WHITESPACE else character, place)
        for character, place in characters
        if not is_deleted(character)
    ]


def space_cjk(characters: Iterable[Aligned]) -> list[Aligned]:
    """With a space on both sides of each Chinese character."""
    spaced = []
    for character, place in characters:
        spaced += [(" ", place), (character, place), (" ", place)] if is_cjk(character) else [(character, place)]
    return spaced


def decompose(characters: Iterable[Aligned]) -> list[Aligned]:
    """Unicode's canonical decomposition, NFD: é becomes e and an accent, and runs of accents are sorted by class.

    As in the reference, places stay in order when accents are sorted: the k-th character that is no second part of
    another takes the place of the k-th character before the decomposition.
    """
    characters = list(characters)
    pieces = []  # (base characters so far, combining class), the piece, whether it is the first of its character
    bases = 0
    for character, _ in characters:
        whole = character in NOT_DECOMPOSED
        for number, piece in enumerate(character if whole else unicodedata.normalize("NFD", character)):
            combining = 0 if whole else unicodedata.combining(piece)
            bases += combining == 0
            pieces.append(((bases, combining), piece, number == 0))
    pieces.sort(key=lambda piece: piece[0])  # stable: accents of one class stay in the order in which they were written
    places = (place for _, place in characters)
    decomposed, place = [], 0
    for _, piece, is_first in pieces:
        place = next(places) if is_first else place
        decomposed.append((piece, place))
    return decomposed


def strip_accents(characters: Iterable[Aligned]) -> list[Aligned]:
    """Decomposed, and without the accents."""
    return [(character, place) for character, place in decompose(characters) if character not in NONSPACING_MARKS]


def lower(characters: Iterable[Aligned]) -> list[Aligned]:
    """In lower case, one character at a time, so that a sigma at the end of a word is σ; İ becomes two characters."""
    return [
        (piece, place) for character, place in characters for piece in LOWER_CASE.get(character) or character.lower()
    ]


def normalize(text: str, lowercase: bool = True) -> list[Aligned]:
    """The characters of the text after BERT's normaliser, each with the place in `text` that it came from.

    Accents are stripped when `lowercase`, as in the published uncased models, and kept otherwise.
    """
    characters = space_cjk(clean((character, place) for place, character in enumerate(text)))
    return lower(strip_accents(characters)) if lowercase else characters


def split_words(characters: Iterable[Aligned]) -> list[list[Aligned]]:
    """The words: what stands between spaces, and each punctuation character alone."""
    words: list[list[Aligned]] = []
    inside = False  # whether the next character goes on with the last word
    for character, place in characters:
        if character == " ":
            inside = False
        elif character in PUNCTUATION:
            words.append([(character, place)])
            inside = False
        elif inside:
            words[-1].append((character, place))
        else:
            words.append([(character, place)])
            inside = True
    return words


def chunks(text: str) -> list[str]:
    """The text cut at BERT's whitespace only; no word goes over such a cut."""
    return (text if text.isprintable() else _SPLIT_BY_PYTHON.sub("", text)).split()


def fast_words(chunk: str, lowercase: bool = True) -> list[str]:
    """The words of `split_words(normalize(chunk, lowercase))` of one of the `chunks`, as strings."""
    if not chunk.isascii():
        words = split_words(normalize(chunk, lowercase))
        return ["".join(character for character, _ in word) for word in words]
    if not chunk.isprintable():
        chunk = _ASCII_CONTROL.sub("", chunk)
    return _ASCII_WORDS.findall(chunk.lower() if lowercase else chunk)
