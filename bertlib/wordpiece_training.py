"""Learning a WordPiece vocabulary from text (Schuster & Nakajima 2012, section 3; Wu et al. 2016, section 4.1).

Words are cut into characters; then, again and again, the best pair of neighbours is joined everywhere and becomes a new
piece. What "best" means is the one difference between three methods that are often sold under one name:

    score="gain"         by how much all joins of the pair together raise the log-likelihood of the text under a unigram
                         model of its pieces: WordPiece in the words of Schuster and Nakajima
    score="likelihood"   count(ab) / (count(a) count(b)): the formula that textbooks give for it, which ranks pairs by
                         what one join gains. Times the length of the text it is the factor by which a joined piece is
                         likelier than its two parts
    score="count"        count(ab): byte-pair encoding (Sennrich et al. 2016), which is what the trainers that one finds
                         in libraries do, `tokenizers` among them, whatever they are called

Google's trainer was never published. The vocabulary depends on the text alone: of pairs with equal scores the one comes
first whose left piece, and then whose right piece, is smaller as a string, character code by character code.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heappush
from itertools import pairwise

from bertlib.checks import check_positive
from bertlib.normalization import chunks, fast_words
from bertlib.tokenization import (
    CONTINUATION,
    LONGEST_WORD,
    SPECIAL_TOKENS,
    WordPieceTokenizer,
    split_special,
)

SCORES = ("gain", "likelihood", "count")
BACKENDS = ("python", "tokenizers")
GAIN_DIGITS = 6  # after the point: beyond them two machines may differ

Pair = tuple[str, str]


def train_wordpiece(
    texts: Iterable[str],
    vocab_size: int,
    lowercase: bool = True,
    min_frequency: int = 2,
    score: str = "gain",
    limit_alphabet: int | None = None,
    backend: str = "python",
) -> WordPieceTokenizer:
    """Learn a vocabulary, and give the tokenizer that has it.

    Ids 0 to 4 are the special tokens, then come the characters as they begin words and go on in them, in the order of
    their codes, then the joined pieces in the order in which they were learnt.

    Args:
        texts: read once.
        vocab_size: entries at most, the special tokens among them; fewer when no pair is left to join.
        lowercase: as in `WordPieceTokenizer`.
        min_frequency: a pair that is seen less often than this is not joined. "likelihood" loves rare pairs: two
            characters that are seen once, together, have the highest score there is. Give it more than "count".
        score: "gain", "likelihood" or "count", see above. With "gain" no pair is joined that would make the text less
            likely, so there may be fewer entries.
        limit_alphabet: keep this many characters, the most frequent ones (of equals the smaller codes); a word with
            another one is left out, and such a word will be [UNK]. None keeps them all.
        backend: "tokenizers" leaves the joining to the Rust library, for large texts; it knows score="count" only, and
            of equal pairs it takes the one whose pieces have the smaller ids.

    Raises:
        TypeError: when texts are a string or a mapping, a text is not a string, a size no integer or lowercase no truth
            value.
        ValueError: when an argument has another value, there is no word in the texts, or `vocab_size` has no room for
            the special tokens and the characters.
        ImportError: when the backend is not installed.
    """
    _check(texts, lowercase, vocab_size, min_frequency, score, limit_alphabet, backend)
    words = _within_alphabet(count_words(texts, lowercase), limit_alphabet)
    alphabet = sorted({symbol for word in words for symbol in characters(word)})
    _check_room(vocab_size, alphabet)
    if backend == "tokenizers":
        pieces = _learn_with_tokenizers(words, alphabet, vocab_size, min_frequency)
    else:
        pieces = learn_pieces(words, alphabet, vocab_size, min_frequency, score)
    return WordPieceTokenizer(pieces, lowercase)


def count_words(texts: Iterable[str], lowercase: bool = True) -> Counter[str]:
    """How often each word, normalised, occurs; special tokens and words too long to be tokenized are not counted.

    Raises:
        TypeError: when texts are one string, or a text is not a string.
    """
    if isinstance(texts, str):
        raise TypeError("texts must be an iterable of strings, not a str")
    counted: Counter[str] = Counter()
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"texts must hold strings; texts[{number}] is a {type(text).__name__}")
        for part in split_special(text)[::2]:
            counted.update(chunks(part))
    words: Counter[str] = Counter()
    for chunk, count in counted.items():  # each chunk is normalised once, however often it occurs
        for word in fast_words(chunk, lowercase):
            if len(word) <= LONGEST_WORD:
                words[word] += count
    return words


def characters(word: str) -> list[str]:
    """The word as pieces of one character: the first as it is, the others with ##."""
    return [word[0], *(CONTINUATION + character for character in word[1:])]


def join(pieces: list[str], pair: Pair) -> list[str]:
    """The pieces with each occurrence of the pair, from left to right, made one."""
    joined, place = [], 0
    while place < len(pieces):
        if tuple(pieces[place : place + 2]) == pair:
            joined.append(pair[0] + pair[1].removeprefix(CONTINUATION))
            place += 2
        else:
            joined.append(pieces[place])
            place += 1
    return joined


def learn_pieces(
    words: Mapping[str, int], alphabet: Iterable[str], vocab_size: int, min_frequency: int, score: str
) -> list[str]:
    """The special tokens, the alphabet, and joined pieces until there are `vocab_size` or no pair is left.

    What would be recounted at every step is kept instead: the counts, the words that each pair occurs in, and a heap of
    scores. When a score changes a new entry is pushed; an entry that comes out of the heap with an old one is dropped.
    """
    text = _Text(words)

    def entry(pair: Pair) -> tuple[float, str, str]:
        count = text.pairs[pair]
        if score == "likelihood":
            count /= text.pieces[pair[0]] * text.pieces[pair[1]]
        elif score == "gain":
            count = round(text.gain(pair), GAIN_DIGITS)
        return -count, *pair

    vocab = dict.fromkeys([*SPECIAL_TOKENS, *alphabet])
    heap = [entry(pair) for pair, count in text.pairs.items() if count >= min_frequency]
    heapify(heap)
    while heap and len(vocab) < vocab_size:
        best = heappop(heap)
        pair = best[1:]
        if text.pairs[pair] < min_frequency:
            continue
        if best != entry(pair):
            if score == "gain":  # it also falls when the text gets shorter, of which no one has told the heap
                heappush(heap, entry(pair))
            continue
        if score == "gain" and best[0] >= 0:
            break
        vocab.setdefault(join(list(pair), pair)[0])
        changed = text.join(pair)
        if score != "count":  # a piece that is seen less often makes every pair that it is in more telling
            changed |= text.pairs_with(pair)
        for other in changed:
            if text.pairs[other] >= min_frequency:
                heappush(heap, entry(other))
    return list(vocab)


def _t_log_t(t: int) -> float:
    return t * math.log(t) if t > 0 else 0.0


class _Text:
    """Every word as pieces, with counts of the pieces and of the pairs of neighbours, kept up to date by `join`."""

    def __init__(self, words: Mapping[str, int]):
        self.words = [characters(word) for word in words]
        self.counts = list(words.values())
        self.length = 0  # in pieces
        self.pieces: Counter[str] = Counter()
        self.pairs: Counter[Pair] = Counter()
        self.words_of: dict[Pair, set[int]] = {}  # where a pair occurs, or once did
        self.partners: dict[str, set[Pair]] = {}  # the pairs that a piece is, or once was, in
        for number in range(len(self.words)):
            self._count(number, 1)

    def gain(self, pair: Pair) -> float:
        """By how many nats joining the pair everywhere raises sum_x c_x log(c_x / N) over pieces x, N of them in all.

        With f(t) = t log t that sum is sum_x f(c_x) - f(N). The joined piece is taken for a new one. Of equal
        neighbours, which may overlap, what comes out is near the gain.
        """
        together = self.pairs[pair]
        left, right = (self.pieces[piece] for piece in pair)
        total = self.length
        before = _t_log_t(left) - _t_log_t(total)
        after = _t_log_t(together) - _t_log_t(total - together)
        if pair[0] == pair[1]:
            return after + _t_log_t(left - 2 * together) - before
        return after + _t_log_t(left - together) + _t_log_t(right - together) - before - _t_log_t(right)

    def _count(self, number: int, sign: int) -> set[Pair]:
        """Add a word to the counts, or take it out of them; the pairs that it has."""
        word, count = self.words[number], sign * self.counts[number]
        self.length += count * len(word)
        for piece in word:
            self.pieces[piece] += count
        pairs = list(pairwise(word))
        for pair in pairs:
            self.pairs[pair] += count
            if sign > 0:
                self.words_of.setdefault(pair, set()).add(number)
                for piece in pair:
                    self.partners.setdefault(piece, set()).add(pair)
        return set(pairs)

    def join(self, pair: Pair) -> set[Pair]:
        """Join the pair wherever it occurs; the pairs whose counts may have changed."""
        changed: set[Pair] = set()
        for number in self.words_of.pop(pair):
            joined = join(self.words[number], pair)
            if len(joined) < len(self.words[number]):
                changed |= self._count(number, -1)
                self.words[number] = joined
                changed |= self._count(number, 1)
        return changed

    def pairs_with(self, pair: Pair) -> set[Pair]:
        """The pairs that hold one of the two pieces, or the piece that joining them makes."""
        pieces = (*pair, join(list(pair), pair)[0])
        for piece in pieces:
            self.partners[piece] = {other for other in self.partners.get(piece, ()) if self.pairs[other] > 0}
        return set().union(*(self.partners[piece] for piece in pieces))


def _within_alphabet(words: Counter[str], limit: int | None) -> dict[str, int]:
    """The words that have none but the `limit` most frequent characters, sorted, so that the texts' order is gone."""
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for character in word:
            counts[character] += count
    kept = set(sorted(counts, key=lambda character: (-counts[character], character))[:limit])
    return {word: words[word] for word in sorted(words) if kept.issuperset(word)}


def _check_room(vocab_size: int, alphabet: list[str]) -> None:
    if not alphabet:
        raise ValueError("texts must hold at least one word")
    if vocab_size < len(SPECIAL_TOKENS) + len(alphabet):
        raise ValueError(
            f"vocab_size must be at least {len(SPECIAL_TOKENS) + len(alphabet)}, not {vocab_size}: the texts have "
            f"{len(alphabet)} characters, those that begin words and those that go on in them counted apart; or pass "
            "limit_alphabet"
        )


def _check(texts, lowercase, vocab_size, min_frequency, score, limit_alphabet, backend) -> None:
    if isinstance(texts, str | Mapping) or not isinstance(texts, Iterable):
        raise TypeError(f"texts must be an iterable of strings, not a {type(texts).__name__}")
    if not isinstance(lowercase, bool):
        raise TypeError(f"lowercase must be True or False, not {lowercase!r}")
    for name, number in (
        ("vocab_size", vocab_size),
        ("min_frequency", min_frequency),
        ("limit_alphabet", limit_alphabet),
    ):
        if name == "limit_alphabet" and number is None:
            continue
        check_positive(name, number)
    for name, value, known in (("score", score, SCORES), ("backend", backend, BACKENDS)):
        if value not in known:
            raise ValueError(f"{name} must be one of {', '.join(known)}, not {value!r}")
    if backend == "tokenizers" and score != "count":
        raise ValueError(f'score must be "count" with backend="tokenizers", which knows no other, not {score!r}')


def _learn_with_tokenizers(
    words: Mapping[str, int], alphabet: list[str], vocab_size: int, min_frequency: int
) -> list[str]:
    """As `learn_pieces` with "count", up to ties.

    Left to itself the library numbers the ## characters in the order of a hash table, and so breaks ties otherwise in
    every run; here it is told the alphabet as if it were special tokens. It also takes up each character as one that
    begins words, where no word begins with it; those are taken out again.
    """
    try:
        from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    except ImportError as error:
        raise ImportError('backend="tokenizers" needs the package tokenizers: pip install tokenizers') from error
    idle = {character for word in words for character in word}.difference(alphabet)
    tokenizer = Tokenizer(models.WordPiece(unk_token=SPECIAL_TOKENS[1]))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocab_size + len(idle),
        min_frequency=min_frequency,
        special_tokens=[*SPECIAL_TOKENS, *alphabet],
        show_progress=False,
    )
    tokenizer.train_from_iterator((f"{word} " * count for word, count in words.items()), trainer)
    vocab = tokenizer.get_vocab()
    return [piece for piece in sorted(vocab, key=vocab.__getitem__) if piece not in idle]
