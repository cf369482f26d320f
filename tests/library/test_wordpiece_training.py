"""wordpiece_training: against a form that recounts everything at every step, and vocabularies worked out by hand."""

import os
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from math import log

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import BertWordPieceTokenizer

from bertlib import datasets
from bertlib.tokenization import SPECIAL_TOKENS
from bertlib.wordpiece_training import count_words, join, train_wordpiece

HUGS = ["hug " * 10 + "pug " * 5 + "pun " * 12 + "bun " * 4 + "hugs " * 5]
ALPHABET = ["##g", "##n", "##s", "##u", "b", "h", "p"]
ENGLISH = ["The quick brown fox jumps over the lazy dog.", "Don't stop; the Dogs bark, and 42 foxes run!"] * 3
LONG = "antidisestablishmentarianism"


def log_likelihood(counts):
    """Of a text with these pieces, each as likely as it is frequent, in nats."""
    total = sum(counts.values())
    return sum(count * log(count / total) for count in counts.values() if count > 0)


def gain(pair, count, singles):
    """The definition: the log-likelihood of the text with the pair joined, less that of the text as it is."""
    joined = Counter(singles)
    for piece in pair:
        joined[piece] = max(joined[piece] - count, 0)
    joined[pair] = count  # a piece of its own
    length = sum(singles.values()) - count
    after = sum(c * log(c) for c in joined.values() if c > 0) - length * log(length)
    return round(after - log_likelihood(singles), 6)


SCORES = {
    "gain": gain,
    "likelihood": lambda pair, count, singles: count / (singles[pair[0]] * singles[pair[1]]),
    "count": lambda pair, count, singles: count,
}


def recount(texts, vocab_size, min_frequency, score):
    """The definition, word for word: all counts anew at every step, and no heap."""
    words = [
        ([word[0]] + [f"##{character}" for character in word[1:]], count) for word, count in count_words(texts).items()
    ]
    vocab = list(SPECIAL_TOKENS) + sorted({piece for pieces, _ in words for piece in pieces})
    while len(vocab) < vocab_size:
        singles, pairs = Counter(), Counter()
        for pieces, count in words:
            for piece in pieces:
                singles[piece] += count
            for left, right in pairwise(pieces):
                pairs[left, right] += count
        scores = {pair: SCORES[score](pair, count, singles) for pair, count in pairs.items() if count >= min_frequency}
        if not scores or (score == "gain" and max(scores.values()) <= 0):
            break
        left, right = min(pair for pair in scores if scores[pair] == max(scores.values()))
        for pieces, _ in words:
            place = 0
            while place + 1 < len(pieces):
                if (pieces[place], pieces[place + 1]) == (left, right):
                    pieces[place : place + 2] = [left + right[2:]]
                place += 1
        if left + right[2:] not in vocab:
            vocab.append(left + right[2:])
    return vocab


small_texts = st.lists(st.text("aabbc ", max_size=12), min_size=1, max_size=6).filter(
    lambda texts: "".join(texts).strip()
)


def test_by_hand():
    # Counts: ##u 36, ##g 20, ##s 5, ##n 16, h 15, p 17, b 4; h##u 15, p##u 17, b##u 4, ##u##g 20, ##u##n 16, ##g##s 5.
    # Likelihood: ##g##s 5/100 is the best, then h##u = 15/540, as b##u, ##u##n, ##u##g and p##u are: b##u comes first.
    assert train_wordpiece(HUGS, 13, score="likelihood").pieces == [*SPECIAL_TOKENS, *ALPHABET, "##gs"]
    assert train_wordpiece(HUGS, 13, score="count").pieces == [*SPECIAL_TOKENS, *ALPHABET, "##ug"]
    assert train_wordpiece(HUGS, 15, score="count").pieces[-2:] == ["##un", "hug"]
    # Gain, with f(t) = t log t and 113 pieces in all. ##u##g: f(20) + f(16) - f(36) - f(20) - f(93) + f(113) = 28.02,
    # and so ##u##n 21.36, p##u 22.96, h##u 19.80, ##g##s 9.23, b##u 4.73.
    assert train_wordpiece(HUGS, 13, score="gain").pieces == [*SPECIAL_TOKENS, *ALPHABET, "##ug"]


def test_equal_scores():
    # ab, cd and ef are seen equally often: the smaller left piece comes first, then the smaller right piece.
    assert train_wordpiece(["ef cd ab"], 14, min_frequency=1).pieces[-3:] == ["ab", "cd", "ef"]
    assert train_wordpiece(["ad ac ab"], 12, min_frequency=1, score="count").pieces[-3:] == ["ab", "ac", "ad"]


def test_a_piece_that_is_made_in_two_ways():
    # abc is ab + c and a + bc: the second way adds nothing to the vocabulary.
    texts = ["abc " * 9 + "bc xbc " * 20 + "ab " * 3]
    for score in SCORES:
        assert train_wordpiece(texts, 60, score=score).pieces == recount(texts, 60, 2, score)


def test_runs_of_one_letter():
    assert join(["a", "##a", "##a", "##a", "##a"], ("##a", "##a")) == ["a", "##aa", "##aa"]
    texts = ["aaaaaaa aaaa aaa aa"]
    for score in SCORES:
        assert train_wordpiece(texts, 20, min_frequency=1, score=score).pieces == recount(texts, 20, 1, score)


@settings(max_examples=300, deadline=None)
@given(small_texts, st.integers(14, 40), st.integers(1, 4), st.sampled_from(list(SCORES)))
def test_recounting_gives_the_same_vocabulary(texts, vocab_size, min_frequency, score):
    tokenizer = train_wordpiece(texts, vocab_size, min_frequency=min_frequency, score=score)
    assert tokenizer.pieces == recount(texts, vocab_size, min_frequency, score)


@pytest.mark.parametrize("score", list(SCORES))
def test_recounting_real_text(score):
    lines = datasets.fetch("tatoeba-spa").read_text(encoding="utf-8").split("\n")[::1500]
    tokenizer = train_wordpiece(lines, 400, min_frequency=3, score=score)
    assert len(tokenizer) == 400
    assert tokenizer.pieces == recount(lines, 400, 3, score)


def test_counted_words():
    words = count_words(["Été, été [MASK]ab[SEP]", "x" * 101, "[mask] a\x0bb"])
    assert words == {"ete": 2, ",": 1, "ab": 2, "[": 1, "mask": 1, "]": 1}
    assert count_words(["Été"], lowercase=False) == {"Été": 1}
    with pytest.raises(TypeError, match="texts must be an iterable of strings, not a str"):
        count_words("the cat")


def test_what_it_learnt_it_can_tokenize():
    tokenizer = train_wordpiece(ENGLISH, 200)
    for text in ENGLISH:
        assert "[UNK]" not in tokenizer.encode(text).tokens
    cased = train_wordpiece(ENGLISH, 200, lowercase=False)
    assert not cased.lowercase
    assert "T" in cased.vocab and "T" not in tokenizer.vocab


def test_limited_alphabet():
    tokenizer = train_wordpiece(["aaa aab ab c d d"], 50, min_frequency=1, limit_alphabet=3)  # a 6, b and d 2, c 1
    assert "c" not in tokenizer.vocab
    assert {"a", "##a", "##b", "d"} <= tokenizer.vocab.keys()
    equal = train_wordpiece(["a c b"], 50, limit_alphabet=2)
    assert equal.pieces == [*SPECIAL_TOKENS, "a", "b"]


def test_ends_when_no_pair_is_left():
    assert train_wordpiece(["ab"], 1000, min_frequency=1).pieces == [*SPECIAL_TOKENS, "##b", "a", "ab"]
    assert train_wordpiece(["ab"], 1000, min_frequency=2).pieces == [*SPECIAL_TOKENS, "##b", "a"]
    assert train_wordpiece(["ab ab"], 1000, min_frequency=2).pieces == [*SPECIAL_TOKENS, "##b", "a", "ab"]


@pytest.mark.parametrize("score", list(SCORES))
def test_order_and_source_of_the_texts_do_not_matter(score):
    texts = [*HUGS, *ENGLISH, LONG]
    wanted = train_wordpiece(texts, 90, score=score).pieces
    assert train_wordpiece(reversed(texts), 90, score=score).pieces == wanted
    assert train_wordpiece((word for text in texts for word in text.split()), 90, score=score).pieces == wanted


@pytest.mark.parametrize("score", list(SCORES))
def test_hash_seed_does_not_matter(score):
    program = (
        "from bertlib import datasets; from bertlib.wordpiece_training import train_wordpiece;"
        "lines = datasets.fetch('tatoeba-ukr').read_text(encoding='utf-8').split('\\n')[::500];"
        f"print(ascii(train_wordpiece(lines, 1500, score='{score}').pieces))"
    )
    printed = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert printed[0] == printed[1]
    assert len(printed[0]) > 1500 * 4


def test_count_learns_what_tokenizers_learns():
    # Up to ties: the first joins of a text this long have none.
    lines = datasets.fetch("tatoeba-spa").read_text(encoding="utf-8").split("\n")[::20]
    lines = [line.split("\t")[0] for line in lines]
    peer = BertWordPieceTokenizer()
    peer.train_from_iterator(lines, vocab_size=200, show_progress=False)
    learnt = {piece for piece in peer.get_vocab() if len(piece.removeprefix("##")) > 1} - set(SPECIAL_TOKENS)
    ours = train_wordpiece(lines, 1000, score="count").pieces
    ours_small = train_wordpiece(lines, 150, score="count").pieces
    joined = [piece for piece in ours if len(piece.removeprefix("##")) > 1 and piece not in SPECIAL_TOKENS]
    assert len(learnt) > 50
    assert set(joined[: len(learnt)]) == learnt
    assert train_wordpiece(lines, 150, score="count", backend="tokenizers").pieces == ours_small
    likelihood = set(train_wordpiece(lines, 1000, score="likelihood").pieces)
    assert len(learnt - likelihood) > 0.5 * len(learnt)  # and it is not what WordPiece learns


def test_tokenizers_backend():
    first, second = (train_wordpiece(iter(ENGLISH), 150, score="count", backend="tokenizers") for _ in range(2))
    assert first.pieces == second.pieces
    alphabet = train_wordpiece(ENGLISH, 150, min_frequency=1000).pieces
    assert first.pieces[: len(alphabet)] == alphabet
    assert len(alphabet) < len(first) <= 150
    with pytest.raises(ValueError, match="vocab_size must be at least"):
        train_wordpiece(ENGLISH, 20, score="count", backend="tokenizers")
    assert "T" in train_wordpiece(ENGLISH, 150, lowercase=False, score="count", backend="tokenizers").vocab


def test_tokenizers_backend_on_real_text():
    lines = datasets.fetch("tatoeba-spa").read_text(encoding="utf-8").split("\n")[::100]
    first, second = (train_wordpiece(lines, 1000, score="count", backend="tokenizers").pieces for _ in range(2))
    assert first == second
    for seed in ("1", "2"):  # the hash seed of Rust is another in every process
        program = (
            "from bertlib import datasets; from bertlib.wordpiece_training import train_wordpiece;"
            "lines = datasets.fetch('tatoeba-spa').read_text(encoding='utf-8').split('\\n')[::100];"
            "print(ascii(train_wordpiece(lines, 1000, score='count', backend='tokenizers').pieces))"
        )
        done = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == ascii(first)


def test_tokenizers_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(ImportError, match="pip install tokenizers"):
        train_wordpiece(ENGLISH, 100, score="count", backend="tokenizers")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"texts": "one text"}, TypeError, "texts must be an iterable of strings, not a str"),
        ({"texts": 7}, TypeError, "texts must be an iterable of strings, not a int"),
        ({"texts": {"a": 1}}, TypeError, "texts must be an iterable of strings, not a dict"),
        ({"lowercase": "yes"}, TypeError, "lowercase must be True or False, not 'yes'"),
        ({"texts": ["a", 7]}, TypeError, r"texts must hold strings; texts\[1\] is a int"),
        ({"texts": ["a", 7], "backend": "tokenizers", "score": "count"}, TypeError, r"texts\[1\] is a int"),
        ({"texts": []}, ValueError, "texts must hold at least one word"),
        ({"texts": [" \n"]}, ValueError, "texts must hold at least one word"),
        ({"texts": []} | {"backend": "tokenizers", "score": "count"}, ValueError, "at least one word"),
        ({"texts": ["abc"], "vocab_size": 7}, ValueError, "vocab_size must be at least 8, not 7"),
        ({"vocab_size": 0}, ValueError, "vocab_size must be positive, not 0"),
        ({"vocab_size": 1e3}, TypeError, "vocab_size must be an integer, not 1000.0"),
        ({"min_frequency": 0}, ValueError, "min_frequency must be positive"),
        ({"limit_alphabet": 0}, ValueError, "limit_alphabet must be positive"),
        ({"score": "bpe"}, ValueError, "score must be one of gain, likelihood, count, not 'bpe'"),
        ({"backend": "rust"}, ValueError, "backend must be one of python, tokenizers"),
        ({"backend": "tokenizers"}, ValueError, 'score must be "count"'),
    ],
)
def test_wrong_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        train_wordpiece(**{"texts": ENGLISH, "vocab_size": 100} | arguments)
