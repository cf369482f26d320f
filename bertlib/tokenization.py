"""WordPiece: from a text to the ids of word pieces, and back (Schuster & Nakajima 2012; Wu et al. 2016, section 4.1;
Devlin et al. 2019, section 3 and appendix A.1)::

    tokenizer = WordPieceTokenizer.from_vocab(datasets.fetch("minilm-vocab"))
    tokenizer.encode("Unaffable?").tokens          # [CLS] una ##ffa ##ble ? [SEP]
    model(**tokenizer(["one text", "and a longer one"], padding=True))

`encode` is the spelled-out form, with the place of every token in the original text. `token_ids` is the fast form: it
remembers the ids of each chunk between two spaces. Tests hold the two equal, and both equal to the Rust library
`tokenizers`, token for token.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING

from bertlib.atomic import atomic_write
from bertlib.checks import check_integer, check_positive
from bertlib.normalization import chunks, fast_words, normalize, split_words

if TYPE_CHECKING:
    from torch import Tensor

PAD, UNK, CLS, SEP, MASK = SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
CONTINUATION = "##"  # what a piece begins with that does not begin a word
LONGEST_WORD = 100  # characters; a longer word becomes [UNK]
LONGEST_REMEMBERED = 64  # characters; a longer chunk is tokenized anew each time
TRUNCATIONS = ("longest_first", "only_first", "only_second")
PADDINGS = ("longest", "max_length")

_SPECIAL = re.compile("(" + "|".join(map(re.escape, SPECIAL_TOKENS)) + ")")
_CLEAN_UP = (  # the reference has " ' " and " do not" too, which no single piece can hold
    (" .", "."),
    (" ?", "?"),
    (" !", "!"),
    (" ,", ","),
    (" n't", "n't"),
    (" 'm", "'m"),
    (" 's", "'s"),
    (" 've", "'ve"),
    (" 're", "'re"),
)


@dataclass(frozen=True)
class Encoding:
    """One tokenized text, or pair of texts: four lists with an entry for each token.

    `offsets` are (start, end) in characters of the original text: the token came from `text[start:end]`, or, with type
    1, from `pair[start:end]`; they are (0, 0) for the [CLS] and [SEP] that were added. `type_ids` are 0 up to and with
    the first [SEP], and 1 after it.
    """

    ids: list[int]
    tokens: list[str]
    offsets: list[tuple[int, int]]
    type_ids: list[int]

    def __len__(self) -> int:
        return len(self.ids)


def split_special(text: str) -> list[str]:
    """The text cut around each special token that is written in it: text at even places, special tokens at odd."""
    return _SPECIAL.split(text) if "[" in text else [text]


def word_pieces(word: str, vocab: Mapping[str, int], longest: int = LONGEST_WORD) -> list[str]:
    """The longest piece of the vocabulary that the word begins with, then the longest that goes on there, and so on.

    [UNK] when at some place no piece goes on, or the word is longer than `LONGEST_WORD`. This greedy choice is not
    always the one with the fewest pieces.

    Args:
        word: what `split_words` gives: without spaces, and one punctuation character or none.
        vocab: the pieces; those that go on in a word begin with ##.
        longest: no piece has more characters than this.
    """
    if len(word) > LONGEST_WORD:
        return [UNK]
    pieces = []
    start = 0
    while start < len(word):
        prefix = CONTINUATION if start else ""
        for end in range(min(len(word), start + longest), start, -1):
            if prefix + word[start:end] in vocab:
                break
        else:
            return [UNK]
        pieces.append(prefix + word[start:end])
        start = end
    return pieces


class WordPieceTokenizer:
    """BERT's tokenizer over a given vocabulary; `wordpiece_training.train_wordpiece` learns one.

    Args:
        vocab: the pieces in the order of their ids, or a dictionary from piece to id.
        lowercase: whether text is lower-cased and stripped of accents, as in the uncased models.
        remembered: how many chunks of text the fast form keeps the ids of; it starts anew when there are more.

    Raises:
        TypeError: when vocab is no list or dictionary, which have an order, a piece is not a string, lowercase no truth
            value or remembered no integer.
        ValueError: when a piece is empty, stands twice or holds a line break, the ids are not 0, 1, 2, ..., a special
            token is missing, or `remembered` is not positive.
    """

    def __init__(self, vocab: Sequence[str] | Mapping[str, int], lowercase: bool = True, remembered: int = 100_000):
        if isinstance(vocab, str | bytes) or not isinstance(vocab, Sequence | Mapping):
            raise TypeError(
                f"vocab must be a list of pieces or a dict from piece to id, not a {type(vocab).__name__}; "
                "from_vocab reads a file"
            )
        check_positive("remembered", remembered)
        if not isinstance(lowercase, bool):
            raise TypeError(f"lowercase must be True or False, not {lowercase!r}")
        self.pieces = _in_order(vocab)
        self.vocab = {piece: number for number, piece in enumerate(self.pieces)}
        if len(self.vocab) < len(self.pieces):
            piece = next(piece for number, piece in enumerate(self.pieces) if self.vocab[piece] != number)
            raise ValueError(f"vocab has {piece!r} twice, as {self.pieces.index(piece)} and as {self.vocab[piece]}")
        if missing := [token for token in SPECIAL_TOKENS if token not in self.vocab]:
            raise ValueError(f"vocab must hold the special tokens; {', '.join(missing)} missing")
        self.lowercase = lowercase
        self.pad_token_id, self.unk_token_id, self.cls_token_id, self.sep_token_id, self.mask_token_id = (
            self.vocab[token] for token in SPECIAL_TOKENS
        )
        self._longest = max(len(piece.removeprefix(CONTINUATION)) for piece in self.pieces)
        self._memory = _Memory(self._chunk_ids, remembered)

    @classmethod
    def from_vocab(cls, path: str | Path, lowercase: bool = True) -> WordPieceTokenizer:
        """Read a published `vocab.txt`: one piece a line, the first line has id 0.

        Raises:
            TypeError: when path is no string or path, or lowercase no truth value.
            OSError: when there is no such file, or it cannot be read.
            ValueError: when it is not UTF-8, a line is empty or stands twice, or a special token is missing.
        """
        if not isinstance(path, str | Path):
            raise TypeError(f"path must be a str or a Path, not a {type(path).__name__}")
        path = Path(path)
        if not path.exists():
            raise FileNotFoundError(
                f"there is no {path}; datasets.fetch('minilm-vocab') is the path of a published one"
            )
        try:
            text = path.read_bytes().decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise ValueError(f"{path} is not UTF-8: {error}") from error
        lines = [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]
        first: dict[str, int] = {}
        for number, line in enumerate(lines, start=1):
            if not line:
                raise ValueError(f"{path}: line {number} is empty")
            if line in first:
                raise ValueError(f"{path}: line {number} is {line!r}, and so is line {first[line]}")
            first[line] = number
        try:
            return cls(lines, lowercase)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error

    def save_vocab(self, path: str | Path) -> None:
        """Write `vocab.txt`; `from_vocab` reads it back.

        Raises:
            OSError: when the file cannot be written.
        """
        with atomic_write(Path(path)) as file:
            file.write("".join(f"{piece}\n" for piece in self.pieces).encode("utf-8"))

    def __len__(self) -> int:
        return len(self.pieces)

    def __repr__(self) -> str:
        return f"WordPieceTokenizer({len(self):,} pieces, lowercase={self.lowercase})"

    def __reduce__(self):  # a worker process gets the vocabulary, and remembers for itself
        return type(self), (self.pieces, self.lowercase, self._memory.capacity)

    def encode(self, text: str, pair: str | None = None, add_special_tokens: bool = True) -> Encoding:
        """Tokenize, spelled out: [CLS] text [SEP], or [CLS] text [SEP] pair [SEP].

        A special token that is written in the text itself, exactly so, becomes that token.

        Raises:
            TypeError: when text or pair is not a string.
        """
        rows = self._rows(_checked(text, "text"))
        first = [(*row, 0) for row in rows]
        second = [] if pair is None else [(*row, 1) for row in self._rows(_checked(pair, "pair"))]
        if add_special_tokens:
            first = [(CLS, (0, 0), 0), *first, (SEP, (0, 0), 0)]
            second = [] if pair is None else [*second, (SEP, (0, 0), 1)]
        rows = first + second
        return Encoding(
            ids=[self.vocab[token] for token, _, _ in rows],
            tokens=[token for token, _, _ in rows],
            offsets=[offsets for _, offsets, _ in rows],
            type_ids=[type_id for _, _, type_id in rows],
        )

    def _rows(self, text: str) -> list[tuple[str, tuple[int, int]]]:
        """The tokens of one text with their offsets."""
        rows = []
        begin = 0  # of the part, in the text
        for number, part in enumerate(split_special(text)):
            if number % 2:
                rows.append((part, (begin, begin + len(part))))
            else:
                for word in split_words(normalize(part, self.lowercase)):
                    places = [begin + place for _, place in word]
                    pieces = word_pieces("".join(character for character, _ in word), self.vocab, self._longest)
                    if pieces == [UNK]:
                        rows.append((UNK, (places[0], places[-1] + 1)))
                        continue
                    start = 0
                    for piece in pieces:
                        end = start + len(piece) - (len(CONTINUATION) if start else 0)
                        rows.append((piece, (places[start], places[end - 1] + 1)))
                        start = end
            begin += len(part)
        return rows

    def token_ids(self, text: str) -> list[int]:
        """The ids of `encode(text, add_special_tokens=False)`, fast.

        Raises:
            TypeError: when text is not a string.
        """
        remembered = self._memory.__getitem__
        parts = split_special(_checked(text, "text"))
        if len(parts) == 1:
            return list(chain.from_iterable(map(remembered, chunks(text))))
        ids = []
        for number, part in enumerate(parts):
            ids += [self.vocab[part]] if number % 2 else chain.from_iterable(map(remembered, chunks(part)))
        return ids

    def _chunk_ids(self, chunk: str) -> tuple[int, ...]:
        ids: list[int] = []
        for word in fast_words(chunk, self.lowercase):
            number = self.vocab.get(word) if len(word) <= LONGEST_WORD else self.unk_token_id
            if number is None:
                ids += [self.vocab[piece] for piece in word_pieces(word, self.vocab, self._longest)]
            else:
                ids.append(number)
        return tuple(ids)

    def __call__(
        self,
        texts: str | Sequence[str],
        pairs: str | Sequence[str] | None = None,
        padding: bool | str = False,
        truncation: bool | str = False,
        max_length: int | None = None,
    ) -> dict[str, Tensor]:
        """Tokenize a batch into what a model takes: `input_ids`, `attention_mask`, `token_type_ids`, (batch, n) each.

        Args:
            texts: one text, a batch of one, or several.
            pairs: as many second texts.
            padding: True or "longest" pads to the longest of the batch, "max_length" to max_length; False leaves the
                lengths as they are, and they must then be equal.
            truncation: True or "longest_first" cuts tokens off the end of the longer text, "only_first" and
                "only_second" of that one, until all is at most max_length tokens. When both texts are longer than half,
                each keeps half, and an odd token goes to the longer one, or to the second of two equals (so the
                reference; Google's own script gives it to the first).
            max_length: tokens, with the special ones.

        Raises:
            TypeError: when a text is not a string or max_length no integer.
            ValueError: when an argument has another value, max_length has no room or no use, there is no text, or the
                texts have unequal lengths and are not padded, or are longer than what they are to be padded to.
        """
        import torch  # here alone, so that who only wants tokens does not wait for it

        texts, pairs = _batch(texts, pairs)
        padding = _option("padding", padding, PADDINGS)
        truncation = _option("truncation", truncation, TRUNCATIONS)
        added = 2 if pairs is None else 3
        _check_max_length(max_length, added, padding, truncation)
        if truncation == "only_second" and pairs is None:
            raise ValueError('truncation is "only_second", but there are no pairs')

        rows, types = [], []
        for number, text in enumerate(texts):
            first = self.token_ids(text)
            second = [] if pairs is None else self.token_ids(pairs[number])
            if truncation:
                keep = _lengths_kept(len(first), len(second), max_length - added, truncation)
                if keep is None:
                    short = "texts" if truncation == "only_first" else "pairs"
                    raise ValueError(
                        f"{short}[{number}] is too short to be cut to max_length={max_length} by truncation="
                        f'"{truncation}": it has {len(first if short == "texts" else second)} tokens and the other '
                        f'{len(second if short == "texts" else first)}; "longest_first" cuts both'
                    )
                first, second = first[: keep[0]], second[: keep[1]]
            head = [self.cls_token_id, *first, self.sep_token_id]
            tail = [] if pairs is None else [*second, self.sep_token_id]
            rows.append(head + tail)
            types.append([0] * len(head) + [1] * len(tail))

        lengths = [len(row) for row in rows]
        width = max_length if padding == "max_length" else max(lengths)
        if max(lengths) > width:
            number = lengths.index(max(lengths))
            raise ValueError(
                f"texts[{number}] has {lengths[number]} tokens, more than max_length={max_length}, to which the batch "
                "is padded; pass truncation=True"
            )
        if not padding and min(lengths) < width:
            raise ValueError(
                f"texts have from {min(lengths)} to {width} tokens, and unequal rows make no tensor; pass padding=True"
            )
        gaps = [width - length for length in lengths]
        padded = {
            "input_ids": [row + [self.pad_token_id] * gap for row, gap in zip(rows, gaps, strict=True)],
            "attention_mask": [[1] * (width - gap) + [0] * gap for gap in gaps],
            "token_type_ids": [row + [0] * gap for row, gap in zip(types, gaps, strict=True)],
        }
        return {name: torch.tensor(values, dtype=torch.long) for name, values in padded.items()}

    def decode(self, ids: Iterable[int], skip_special_tokens: bool = True) -> str:
        """A text of the tokens: ## pieces joined to what stands before, and no space before a full stop and its like.

        Not the original text: case, accents, kinds of space, and what became [UNK], are gone.

        Args:
            ids: one row of ids, a tensor (n,) or a list.
            skip_special_tokens: leave out [PAD], [UNK], [CLS], [SEP] and [MASK].

        Raises:
            TypeError: when the ids are not integers.
            ValueError: when an id is not in the vocabulary.
        """
        texts: list[str] = []
        ids = ids.tolist() if hasattr(ids, "tolist") else ids
        if not isinstance(ids, Iterable):
            raise TypeError(f"ids must be a list of ids, not {ids!r}; one id goes in a list of its own")
        for place, number in enumerate(ids):
            number = check_integer(f"ids[{place}]", number)
            if not 0 <= number < len(self.pieces):
                raise ValueError(f"ids[{place}] is {number}; the vocabulary has the ids 0 to {len(self.pieces) - 1}")
            piece = self.pieces[number]
            if skip_special_tokens and piece in SPECIAL_TOKENS:
                continue
            if texts:
                joined = piece.startswith(CONTINUATION)
                piece = piece.removeprefix(CONTINUATION) if joined else f" {piece}"
            for found, wanted in _CLEAN_UP:
                piece = piece.replace(found, wanted)
            texts.append(piece)
        return "".join(texts)


class _Memory(dict):
    """The ids of chunks, worked out when they are first asked for; emptied when it is full."""

    def __init__(self, work_out, capacity: int):
        super().__init__()
        self.work_out = work_out
        self.capacity = capacity

    def __missing__(self, chunk: str) -> tuple[int, ...]:
        ids = self.work_out(chunk)
        if len(chunk) <= LONGEST_REMEMBERED:
            if len(self) >= self.capacity:
                self.clear()
            self[chunk] = ids
        return ids


def _in_order(vocab: Sequence[str] | Mapping[str, int]) -> list[str]:
    if isinstance(vocab, Mapping):
        if any(not isinstance(number, Integral) for number in vocab.values()) or sorted(vocab.values()) != list(
            range(len(vocab))
        ):
            raise ValueError(f"vocab must give its {len(vocab)} pieces the ids 0 to {len(vocab) - 1}, each once")
        vocab = sorted(vocab, key=vocab.__getitem__)
    pieces = list(vocab)
    for number, piece in enumerate(pieces):
        if not isinstance(piece, str):
            raise TypeError(f"vocab must hold strings; {number} is {piece!r}")
        if not piece or "\n" in piece or "\r" in piece:
            raise ValueError(f"vocab must hold pieces of one line; {number} is {piece!r}")
    return pieces


def _checked(text: str, name: str) -> str:
    if not isinstance(text, str):
        raise TypeError(f"{name} must be a str, not {type(text).__name__}")
    return text


def _batch(texts: str | Sequence[str], pairs: str | Sequence[str] | None) -> tuple[list[str], list[str] | None]:
    batches = []
    for name, batch in (("texts", texts), ("pairs", pairs)):
        if batch is None and name == "pairs":
            return batches[0], None
        if isinstance(batch, bytes | bytearray) or not isinstance(batch, str | Sequence):
            raise TypeError(f"{name} must be a str or a list of str, not {type(batch).__name__}")
        batch = [batch] if isinstance(batch, str) else list(batch)
        for number, text in enumerate(batch):
            _checked(text, f"{name}[{number}]")
        if not batch:
            raise ValueError(f"{name} must hold at least one text")
        batches.append(batch)
    if len(batches[0]) != len(batches[1]):
        raise ValueError(f"texts and pairs must be as many, not {len(batches[0])} and {len(batches[1])}")
    return batches[0], batches[1]


def _option(name: str, value: bool | str, known: tuple[str, ...]) -> str | None:
    """The option's name, None for False; True is the first."""
    if value is False or value is None:
        return None
    if value is True:
        return known[0]
    if value not in known:
        raise ValueError(f"{name} must be True, False or one of {', '.join(known)}, not {value!r}")
    return value


def _check_max_length(max_length: int | None, added: int, padding: str | None, truncation: str | None) -> None:
    used = truncation or padding == "max_length"
    if max_length is None:
        if used:
            raise ValueError('max_length must be given with truncation, and with padding="max_length"')
        return
    if check_integer("max_length", max_length) < added:
        raise ValueError(f"max_length must be at least {added}, the number of special tokens, not {max_length!r}")
    if not used:
        raise ValueError('max_length is used only with truncation or with padding="max_length"')


def _lengths_kept(first: int, second: int, room: int, truncation: str) -> tuple[int, int] | None:
    """How many tokens of each text are kept so that both fit in the room; None when nothing of one would be left."""
    excess = first + second - room
    if excess <= 0:
        return first, second
    if truncation == "only_first":
        return (first - excess, second) if first > excess else None
    if truncation == "only_second":
        return (first, second - excess) if second > excess else None
    shorter, longer = sorted((first, second))
    longer = max(shorter, room - shorter)
    if shorter + longer > room:
        shorter, longer = room // 2, room - room // 2
    return (longer, shorter) if first > second else (shorter, longer)
