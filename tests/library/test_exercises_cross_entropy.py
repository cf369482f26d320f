"""The exercises on cross-entropy: right answers found another way are right, and typical mistakes get their hint."""

import math

import numpy as np
import pytest
import sympy as sp
import torch
import torch.nn.functional as F
from judged import right, wrong

NONSENSE = [None, "one half", [], {}, [1, 2], [[1, 2], [3]], float("nan"), object(), [math.inf] * 3]


@pytest.mark.parametrize("number", range(1, 6))
@pytest.mark.parametrize("nonsense", NONSENSE)
def test_nonsense_gets_a_hint(number, nonsense):
    wrong(f"cross-entropy-{number}", nonsense, "")


# 1: nats, bits, perplexity

BETS = np.array([1 / 2, 1 / 8, 1 / 16])
BITS = 8 / 3


def test_the_losses_of_numpy_are_right():
    nats = -np.log(BETS).mean()
    right("cross-entropy-1", (-np.log2(BETS).mean(), nats, np.exp(nats)))
    right("cross-entropy-1", [2.667, 1.848, 6.35])


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        ((8, 8 * math.log(2), 256), "That is the sum of the three costs"),
        ((-BITS, 0, 0), "A cost is positive"),
        ((-np.log2(BETS.mean()), 0, 0), "You averaged the bets first"),
        ((BITS * math.log(2), BITS, 0), "That is the loss in nats; bits come first"),
        ((-np.log10(BETS).mean(), 0, 0), "not to base 10"),
        ((3, 2, 8), "The mean in bits is off"),
        ((BITS, BITS / math.log(2), 0), "you divided by log 2"),
        ((BITS, BITS, 0), "the nats are not"),
        ((BITS, BITS * math.log(2), math.exp(BITS)), "You raised e to the number of bits"),
        ((BITS, BITS * math.log(2), 2 ** (BITS * math.log(2))), "You raised 2 to the number of nats"),
        ((BITS, BITS * math.log(2), (1 / BETS).mean()), "not the mean of the exponentials"),
        ((BITS, BITS * math.log(2), 1), "the perplexity is not"),
    ],
)
def test_typical_mistakes_in_the_losses(answer, hint):
    wrong("cross-entropy-1", answer, hint)


# 2: two slopes by hand


def slopes():
    """By sympy, from the losses as functions of the logits."""
    z = sp.symbols("z1:4", real=True)
    p = [sp.exp(a) / sum(map(sp.exp, z)) for a in z]
    losses = (-sp.log(p[1]), p[0] ** 2 + (p[1] - 1) ** 2 + p[2] ** 2)
    here = dict(zip(z, (sp.log(2), 0, 0), strict=True))
    return [[float(loss.diff(a).subs(here)) for a in z] for loss in losses]


def test_the_slopes_of_sympy_are_right():
    right("cross-entropy-2", slopes())
    right("cross-entropy-2", np.round(slopes(), 2))
    wrong("cross-entropy-2", slopes()[::-1], "The rows stand in the other order")


@pytest.mark.parametrize(
    ("row", "change", "hint"),
    [
        (0, lambda s: -s, "First row: the sign is turned round"),
        (0, lambda s: np.array([-1 / 2, 1 / 4, 1 / 4]), "First row: the second token is the right one"),
        (0, lambda s: np.array([0, -4, 0]), "First row: that is the slope in the probabilities"),
        (0, lambda s: 2 * s, "First row: prediction minus truth"),
        (1, lambda s: np.array([1, -3 / 2, 1 / 2]), "Second row: that is the slope in the probabilities"),
        (1, lambda s: s / 2, "Second row: the square has a factor 2"),
        (1, lambda s: s / 3, "Second row: the squares are added up here"),
        (1, lambda s: -s, "Second row: the sign is turned round"),
        (1, lambda s: np.array([1 / 2, -3 / 8, 1 / 8]), "Second row: you left out the part"),
        (1, lambda s: np.array([1 / 4, -9 / 32, 3 / 32]), "Second row: that is the diagonal"),
        (1, lambda s: s + 0.1, "Second row: the entries must sum to zero"),
        (1, lambda s: s[::-1], "Second row: it sums to zero"),
    ],
)
def test_typical_mistakes_in_the_slopes(row, change, hint):
    answer = [np.array(s) for s in slopes()]
    answer[row] = change(answer[row])
    wrong("cross-entropy-2", np.array(answer), hint)


# 3: a bowl in the logits


def test_the_hessian_of_torch_is_right():
    def hessian(z):
        return torch.autograd.functional.hessian(lambda x: F.cross_entropy(x[None], torch.tensor([1])), torch.tensor(z))

    right("cross-entropy-3", lambda z: hessian(z).numpy())


def softmax(z):
    return np.exp(z - z.max()) / np.exp(z - z.max()).sum()


@pytest.mark.parametrize(
    ("form", "hint"),
    [
        (lambda p: np.outer(p, p) - np.diag(p), "The sign is turned round"),
        (np.diag, "each probability depends on all logits"),
        (lambda p: np.diag(p) + np.outer(p, p), "The rows must sum to zero"),
        (lambda p: np.diag(p * (1 - p)), "The diagonal is right"),
        (lambda p: np.diag(1 / p), "a second derivative in the probabilities"),
        (lambda p: np.outer(p, p), "only half of it"),
        (lambda p: np.diag(p) @ np.ones((len(p), len(p))), "symmetric; yours is not"),
        (lambda p: np.eye(len(p)), "differentiate softmax"),
    ],
)
def test_typical_mistakes_in_the_hessian(form, hint):
    wrong("cross-entropy-3", lambda z: form(softmax(z)), hint)


def test_a_hessian_that_overflows_is_told():
    def naive(z):
        with np.errstate(all="ignore"):
            p = np.exp(z) / np.exp(z).sum()
        return np.diag(p) - np.outer(p, p)

    wrong("cross-entropy-3", naive, "Subtract the largest logit first")
    wrong("cross-entropy-3", lambda z: np.full((len(z), len(z)), np.nan), "infinite or not a number")


def test_a_hessian_in_float32_is_right():
    right("cross-entropy-3", lambda z: (np.diag(softmax(z)) - np.outer(softmax(z), softmax(z))).astype(np.float32))


# 4: whole words


def test_a_choice_by_a_loop_is_right():
    def choose(begins, rate, rng):
        chosen, own = [], False
        for first in begins:
            own = bool(rng.random() < rate) if first else own
            chosen.append(own)
        return np.array(chosen)

    right("cross-entropy-4", choose)


def by_word(draw):
    """A choice from a function of (number of words, rate, rng) that gives a boolean for each."""
    return lambda begins, rate, rng: draw(int(begins.sum()), rate, rng)[np.cumsum(begins) - 1]


def in_place(begins, rate, rng):
    begins[:] = False
    return begins.copy()


@pytest.mark.parametrize(
    ("choose", "hint"),
    [
        (lambda begins, rate, rng: rng.random(len(begins)) < rate, "Some words are chosen in part"),
        (lambda begins, rate, rng: rng.random(begins.sum()) < rate, "one entry for each piece"),
        (lambda begins, rate, rng: (rng.random(len(begins)) < rate) * 1, "Return a boolean array"),
        (in_place, "changes the array"),
        (by_word(lambda n, rate, rng: np.random.default_rng(1).random(n) < rate), "Every call gives the same"),
        (by_word(lambda n, rate, rng: np.random.default_rng().random(n) < rate), "Two generators with the same seed"),
        (by_word(lambda n, rate, rng: rng.random(n) < rate / 2), "Words are chosen at rates of"),
        (by_word(lambda n, rate, rng: np.repeat(rng.random() < rate, n)), "not chosen independently"),
        (by_word(lambda n, rate, rng: rng.random(n) < (rate if rate < 1 else 0.2)), "With rate 1 every piece"),
        (by_word(lambda n, rate, rng: rng.random(n) < (rate if rate > 0 else 0.8)), "With rate 0 no piece"),
    ],
)
def test_typical_mistakes_in_the_choice(choose, hint):
    wrong("cross-entropy-4", choose, hint)


def test_pieces_that_pull_their_word_along_are_told():
    def choose(begins, rate, rng):
        word = np.cumsum(begins) - 1
        return np.isin(word, word[rng.random(len(begins)) < rate])

    wrong("cross-entropy-4", choose, "Words of one piece are chosen at the right rate")


# 5: a dishonest grade


def test_corners_and_more_are_right():
    right("cross-entropy-5", ([1 / 2, 1 / 4, 1 / 4], [1, 0, 0]))
    right("cross-entropy-5", ([0.4, 0.3, 0.3], [0.9, 0.05, 0.05]))
    right("cross-entropy-5", (np.full(3, 1 / 3), [0, 0, 1]))


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        (([0.6, 0.2, 0.2], [1, 0, 0]), "An entry of the belief is above 1/2"),
        (([0.5, 0.4, 0.2], [1, 0, 0]), "The belief must be"),
        (([0.5, 0.5, 0], [2, -1, 0]), "The bet must be"),
        (([0.5, 0.3, 0.2], [0.5, 0.3, 0.2]), "as much as the honest one, or more"),
        (([0.5, 0.3, 0.2], [0.3, 0.4, 0.3]), "as much as the honest one, or more"),
        (([0.5, 0.3, 0.2], [0.6, 0.2, 0.2]), "cheaper, but by"),
    ],
)
def test_typical_mistakes_with_the_grade(answer, hint):
    wrong("cross-entropy-5", answer, hint)
