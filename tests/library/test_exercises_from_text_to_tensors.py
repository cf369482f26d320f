"""The exercises from text to tensors: right answers found another way, and the hint of each typical mistake."""

import math
from collections import Counter
from itertools import pairwise

import judged
import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers

from bertlib import WordPieceTokenizer
from bertlib.tokenization import SPECIAL_TOKENS


def right(name, answer):
    judged.right(f"from-text-to-tensors-{name}", answer)


def wrong(name, answer, hint):
    judged.wrong(f"from-text-to-tensors-{name}", answer, hint)


# 1: two gains, from a text that has the counts


def gains():
    text = ["ab"] * 10 + ["a"] * 10 + ["b"] * 40 + ["cd"] * 2
    pieces = Counter(piece for word in text for piece in word)
    pairs = Counter(pair for word in text for pair in pairwise(word))
    assert pieces["a"] == 20 and pieces["b"] == 50 and pairs["a", "b"] == 10 and pieces["c"] == pieces["d"] == 2
    chance = {pair: (pieces[pair[0]] / 1000) * (pieces[pair[1]] / 1000) for pair in pairs}
    return [pairs[p] * (math.log(pairs[p] / 1000 / chance[p]) - 1) for p in (("a", "b"), ("c", "d"))]


def test_gains():
    right(1, gains())
    right(1, (13.03, 10.43))
    right(1, np.array([13.026, 10.429]))


@pytest.mark.parametrize(
    "answer,hint",
    [
        (gains()[::-1], "wrong order"),
        ([23.026, 12.429], "the term -1 is missing"),
        ([1.3026, 5.2146], "what one join gains"),
        ([2.3026, 6.2146], "PMI alone"),
        ([33.026, 14.429], "upper bound"),
        ([10, 500], "Take its logarithm"),
        ([90, 998], "left out the logarithm"),
        ([10 * (math.log2(10) - 1), 2 * (math.log2(500) - 1)], "base 2"),
        ([0, 2 * (math.log10(500) - 1)], "base 10"),
        ([10 * (math.log(0.01) - 1), 2 * (math.log(0.5) - 1)], "N is missing"),
        ([13.026, 5], "The gain of ab is right"),
        ([5, 10.429], "The gain of cd is right"),
        ([13, 10.4], "but for the rounding"),
        ([1, 2], "Three steps"),
        (13.026, "one number, not an array"),
        ([13.026, 10.429, 0], "shape (3,)"),
        ([13.026, math.nan], "not a number"),
        ("13, 10", "does not read as numbers"),
        (None, "two numbers"),
        ({"ab": 13}, "does not read as numbers"),
    ],
)
def test_wrong_gains(answer, hint):
    wrong(1, answer, hint)


# 2: longest first, one token at a time


def cut(first, second, room):
    while first + second > room:
        if first > second:
            first -= 1
        else:
            second -= 1
    return [first, second]


def test_longest_first():
    right(2, cut(20, 5, 13) + cut(30, 6, 13))
    right(2, np.array([8, 5, 7, 6]))
    vocab = WordPieceTokenizer([*SPECIAL_TOKENS, "x", "y"])
    for a, b, kept in ((20, 5, [8, 5]), (30, 6, [7, 6])):
        ids = vocab("x " * a, "y " * b, truncation=True, max_length=16)["input_ids"][0].tolist()
        assert [ids.count(5), ids.count(6)] == kept


@pytest.mark.parametrize(
    "answer,hint",
    [
        (cut(20, 5, 16) + cut(30, 6, 16), "take places of their own"),
        (cut(20, 5, 14) + cut(30, 6, 14), "three special tokens"),
        (cut(20, 5, 15) + cut(30, 6, 15), "three special tokens"),
        ([7, 6, 7, 6], "only 5 tokens"),
        ([5, 8, 6, 7], "wrong order"),
        ([13, 0, 13, 0], "cut the shorter text"),
        ([12, 0, 23, 0], "that are cut off"),
        ([8.5, 4.5, 7, 6], "whole numbers"),
        ([-8, 5, 7, 6], "none below 0"),
        ([8, 5, 8, 6], "same number of places"),
        ([10, 3, 10, 3], "until both fit"),
        ([8, 5], "shape (2,)"),
        ([[8, 5], [7, 6]], "shape (2, 2)"),
        (13, "one number"),
        ("8 5 7 6", "does not read as numbers"),
        (None, "four numbers"),
    ],
)
def test_not_longest_first(answer, hint):
    wrong(2, answer, hint)


# 3: two pieces that never part


def entropy_gain(n, N):
    """N times the entropy of a coin that shows heads with probability n/N, from torch."""
    p = torch.tensor(n / N, dtype=torch.float64)
    return N * torch.distributions.Bernoulli(p).entropy().item()


def h(n, N):
    return entropy_gain(n, N) / N


def f(t):
    return t * math.log(t)


def test_inseparable():
    right(3, entropy_gain)
    right(3, lambda n, N: f(N) - f(n) - f(N - n))
    right(3, lambda n, N: torch.tensor(entropy_gain(n, N), dtype=torch.float64))


@pytest.mark.parametrize(
    "answer,hint",
    [
        (lambda n, N: -entropy_gain(n, N), "The sign"),
        (lambda n, N: entropy_gain(n, N) / math.log(2), "in bits"),
        (h, "There are N of them"),
        (lambda n, N: entropy_gain(n, N) / n, "one join"),
        (lambda n, N: n * math.log(N / n), "one of two terms"),
        (lambda n, N: n * (math.log(N / n) - 1), "lower bound"),
        (lambda n, N: n * (math.log(N / n) + 1), "upper bound"),
        (lambda n, N: f(N) - f(N - n), "still there"),
        (lambda n, N: f(N) - f(N - n) - 2 * f(n), "count the terms"),
        (lambda n, N: n * math.log(N / n) + (N - n) * math.log(1 - n / N), "minus sign too"),
        (lambda n, N: entropy_gain(n, N) if N != 7 else 1.0, "Right for some n and N"),
        (lambda n, N: N - 11, "not positive"),
        (lambda n, N: N + n, "Which three terms"),
        (lambda n, N: complex(n, N), "real number"),
        (lambda n, N: [n, N], "shape (2,)"),
        (lambda n, N: None, "infinite or not a number"),
        (lambda n, N: "N", "does not read as numbers"),
        (lambda n, N: math.nan, "not a number"),
        (lambda n: n, "TypeError"),
        (lambda n, N: 1 / 0, "ZeroDivisionError"),
        (13, "Hand in a function"),
        ("N h(p)", "Hand in a function"),
        (None, "Hand in a function"),
    ],
)
def test_not_inseparable(answer, hint):
    wrong(3, answer, hint)


# 4: a batch, by the Rust library and with mistakes

RUST = Tokenizer(
    models.WordLevel({"[PAD]": 0, "[CLS]": 101, "[SEP]": 102, **{str(i): i for i in range(1, 20)}}, "[PAD]")
)
RUST.pre_tokenizer = pre_tokenizers.WhitespaceSplit()


def by_rust(pairs):
    from tokenizers.processors import BertProcessing

    RUST.post_processor = BertProcessing(("[SEP]", 102), ("[CLS]", 101))
    RUST.enable_padding(pad_id=0, pad_token="[PAD]")
    texts = [" ".join(map(str, a)) if b is None else tuple(" ".join(map(str, x)) for x in (a, b)) for a, b in pairs]
    rows = RUST.encode_batch(texts)
    return {
        "input_ids": [row.ids for row in rows],
        "attention_mask": [row.attention_mask for row in rows],
        "token_type_ids": [row.type_ids for row in rows],
    }


def batch(pairs, cls=True, sep=True, empty=True, pad_left=False, width=0, types="right", mask="right"):
    """Rows with a choice of mistakes."""
    ids, kinds = [], []
    for a, b in pairs:
        head = [101] * cls + list(a) + [102] * sep
        tail = [] if b is None or (not empty and not b) else [*b, 102]
        kind = [0] * len(head) + [1] * len(tail)
        if types == "sep" and sep:
            kind[len(head) - 1] = 1
        if types == "last" and tail:
            kind[-1] = 0
        if types == "zero":
            kind = [0] * len(kind)
        ids.append(head + tail)
        kinds.append(kind)
    width = max(map(len, ids)) + width
    gaps = [width - len(row) for row in ids]

    def fill(rows, value=0):
        return [([value] * g + r) if pad_left else (r + [value] * g) for r, g in zip(rows, gaps, strict=True)]

    masks = fill([[1] * len(row) for row in ids], 1 if mask == "ones" else 0)
    if mask == "turned":
        masks = [[1 - entry for entry in row] for row in masks]
    return {
        "input_ids": fill(ids),
        "attention_mask": masks,
        "token_type_ids": fill(kinds, 1 if types == "pad" else 0),
    }


def test_batch():
    right(4, by_rust)
    right(4, batch)
    right(4, lambda pairs: {name: torch.tensor(rows) for name, rows in batch(pairs).items()})
    right(4, lambda pairs: {name: np.array(rows) for name, rows in batch(pairs).items()})
    right(4, lambda pairs: {name: [np.array(row) for row in rows] for name, rows in batch(pairs).items()})


def none_is_empty(pairs):
    return batch([(a, b or []) for a, b in pairs])


def two_cls(pairs):
    return batch([(a, None if b is None else [101, *b]) for a, b in pairs])


def ragged(pairs):
    if len(pairs) == 1:
        return batch(pairs)
    return {name: [*rows[:-1], [*rows[-1], 0]] for name, rows in batch(pairs).items()}


def padless(pairs):
    rows = [batch([pair]) for pair in pairs]
    return {name: [row[name][0] for row in rows] for name in rows[0]}


def swapped(pairs):
    return batch([(a, None if b is None else b[::-1]) for a, b in pairs])


def single_ones(pairs):
    rows = batch(pairs)
    if all(b is None for _, b in pairs):
        rows["token_type_ids"] = [[1] * len(row) for row in rows["token_type_ids"]]
    return rows


@pytest.mark.parametrize(
    "answer,hint",
    [
        (lambda p: batch(p, cls=False), "[CLS], 101, stands"),
        (lambda p: batch(p, sep=False), "a [SEP] is missing"),
        (lambda p: batch(p, empty=False), "With an empty second text a [SEP] is missing"),
        (none_is_empty, "one [SEP] only"),
        (two_cls, "[CLS] stands once"),
        (lambda p: batch(p, pad_left=True), "to the end of a row"),
        (lambda p: batch(p, width=2), "longer than the longest"),
        (swapped, "the ids are off"),
        (lambda p: batch(p, types="sep"), "first [SEP] belongs"),
        (lambda p: batch(p, types="last"), "last [SEP] belongs"),
        (lambda p: batch(p, types="zero"), "all types are 0"),
        (lambda p: batch(p, types="pad"), "Padding is of type 0"),
        (single_ones, "A single text is of type 0"),
        (lambda p: batch(p, mask="ones"), "1 everywhere"),
        (lambda p: batch(p, mask="turned"), "turned round"),
        (lambda p: batch(p) | {"attention_mask": [[2] * len(r) for r in batch(p)["input_ids"]]}, "the mask is off"),
        (ragged, "differ in length"),
        (padless, "differ in length"),
        (lambda p: {"input_ids": batch(p)["input_ids"]}, "lacks attention_mask, token_type_ids"),
        (lambda p: batch(p[:1]), "2 pairs gave 1 row of"),
        (lambda p: batch(p) | {"input_ids": None}, "must be a list of lists"),
        (lambda p: batch(p) | {"input_ids": "ids"}, "must be a list of lists"),
        (lambda p: batch(p) | {"input_ids": [1, 2]}, "must be a list of lists"),
        (lambda p: batch(p)["input_ids"], "Return a dictionary; that was a list"),
        (lambda p: None, "that was a NoneType"),
        (lambda p, q: {}, "TypeError"),
        (lambda p: p[7], "IndexError"),
        ({}, "Hand in a function"),
        ("batch", "Hand in a function"),
        (None, "Hand in a function"),
    ],
)
def test_wrong_batch(answer, hint):
    wrong(4, answer, hint)


# 5: where the longest match fails


@pytest.mark.parametrize(
    "pieces,word",
    [
        (["a", "ab", "##bc"], "abc"),
        (("x", "##y", "##yy", "##yz"), "xyyz"),
        ({"é", "éé", "##éa"}, "ééa"),
        (["un", "una", "##able"], "unable"),
    ],
)
def test_dead_end(pieces, word):
    right(5, (pieces, word))
    rust = Tokenizer(models.WordPiece(vocab={p: i for i, p in enumerate(["[UNK]", *pieces])}, unk_token="[UNK]"))
    assert rust.encode(word).tokens == ["[UNK]"]


@pytest.mark.parametrize(
    "answer,hint",
    [
        ((["a", "ab", "##c"], "abc"), "finds a cut of this word"),
        ((["abc"], "abc"), "finds a cut of this word"),
        ((["a", "ab", "##b"], "abc"), "cannot be cut"),
        ((["a", "ab", "bc"], "abc"), "those begin with ##"),
        ((["##ab", "##c"], "abc"), "cannot be cut"),
        ((["a", "b", "c", "d", "e", "f", "ab"], "abc"), "At most six"),
        ((["a", "ab", "##bc"], ""), "between 1 and 100"),
        ((["a", "ab", "##bc"], "a" * 101), "between 1 and 100"),
        ((["a", "ab", "##bc"], "a bc"), "no space"),
        ((["a", "##"], "a"), "at least one character"),
        (([], "a"), "at least one character"),
        (([1, 2], "12"), "must be a string"),
        (([["a"], ["ab"]], "abc"), "must be a string"),
        (("abc", "abc"), "Hand in a pair"),
        ((5, "abc"), "Hand in a pair"),
        ((["a", "ab", "##bc"], 5), "Hand in a pair"),
        (["a", "ab", "##bc"], "Hand in a pair"),
        ("ab", "Hand in a pair"),
        (7, "Hand in a pair"),
        (None, "Hand in a pair"),
    ],
)
def test_no_dead_end(answer, hint):
    wrong(5, answer, hint)
