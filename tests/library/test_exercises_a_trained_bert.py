"""The exercises on a trained BERT: right answers found in another way, and the hint that each typical mistake gets."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import sympy
import torch
from judged import right, wrong

# a-trained-bert-1: a divergence by hand


def divergence():
    a, b = (torch.tensor(row, dtype=torch.float64) for row in ([0.5, 0.5, 0], [0, 0.5, 0.5]))
    m = (a + b) / 2
    kl = [torch.nn.functional.kl_div(m.log(), row, reduction="sum") for row in (a, b)]
    return float(sum(kl)) / 2 / math.log(2)


def test_divergence():
    right("a-trained-bert-1", divergence())
    right("a-trained-bert-1", 1 / 2)
    right("a-trained-bert-1", sympy.Rational(1, 2))
    right("a-trained-bert-1", np.float32(0.5))


@pytest.mark.parametrize(
    "answer,hint",
    [
        (math.log(2) / 2, "in nats"),
        (math.sqrt(1 / 2), "square root"),
        (3 / 2, "entropy of the mean alone"),
        (1.5 * math.log(2), "entropy of the mean, in nats"),
        (-1 / 2, "one half"),
        (1, "share no token"),
        (0, "equal rows"),
        (2, "between 0 and 1"),
        (0.3, "Three entropies"),
        ("0.5", "does not read as a number"),
        (True, "does not read as a number"),
        (None, "Hand in the divergence"),
        ([0.5, 0.5], "not one number"),
        (math.nan, "infinite or not a number"),
    ],
)
def test_wrong_divergence(answer, hint):
    wrong("a-trained-bert-1", answer, hint)


# a-trained-bert-2: chance for nearest neighbours


def by_counting(first, second):
    """Over all ordered pairs of different sentences, the share with one label."""
    labels = [0] * first + [1] * second
    pairs = list(itertools.permutations(labels, 2))
    return Fraction(sum(a == b for a, b in pairs), len(pairs))


def test_chance():
    right("a-trained-bert-2", by_counting(12, 8))
    right("a-trained-bert-2", float(by_counting(12, 8)))
    assert by_counting(20, 20) == Fraction(19, 39)


def test_chance_by_simulation():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], [12, 8])
    nearest = np.array([(i + 1) % 20 for i in range(20)])  # any fixed neighbours
    shares = [(mixed[nearest] == mixed).mean() for mixed in (rng.permutation(labels) for _ in range(4000))]
    assert abs(np.mean(shares) - by_counting(12, 8)) < 0.01


@pytest.mark.parametrize(
    "answer,hint",
    [
        (0.5, "equally frequent"),
        (0.52, "its own neighbour"),
        (11 / 19, "first sense"),
        (7 / 19, "second sense"),
        (9 / 19, "not alike"),
        (48 / 95, "guessed wrong"),
        (0.6, "commoner sense"),
        (12 / 19, "11 others"),
        (1.2, "between 0 and 1"),
        (0.1, "each sense in turn"),
        ("half", "does not read as a number"),
        (None, "Hand in the share"),
        ((12, 8), "not one number"),
    ],
)
def test_wrong_chance(answer, hint):
    wrong("a-trained-bert-2", answer, hint)


# a-trained-bert-3: a shared direction


def by_vectors(rho, c):
    """In three dimensions, with sympy's vectors."""
    side = sympy.sqrt(1 - rho)
    x = sympy.Matrix([sympy.sqrt(rho), side, 0])
    y = sympy.Matrix([sympy.sqrt(rho), side * c, side * sympy.sqrt(1 - c**2)])
    return float(x.dot(y) / (x.norm() * y.norm()))


def test_common_part():
    right("a-trained-bert-3", by_vectors)
    right("a-trained-bert-3", lambda rho, c: 1 - (1 - rho) * (1 - c))


@pytest.mark.parametrize(
    "answer,hint",
    [
        (lambda r, c: 1 - r + r * c, "exchanged"),
        (lambda r, c: (1 - r) * c, "something of its own"),
        (lambda r, c: r + c, "second term"),
        (lambda r, c: c, "near 1"),
        (lambda r, c: (c - r) / (1 - r), "way back"),
        (lambda r, c: r**2 + (1 - r**2) * c, "no square"),
        (lambda r, c: math.sqrt(r) + (1 - math.sqrt(r)) * c, "no square"),
        (lambda r, c: r + (1 - r) ** 2 * c, "divided"),
        (lambda r, c: 0.5, "c = 1"),
        (lambda r, c: c if r < 0.4 else 1.0, "Write out"),
        (lambda r, c: r + (1 - r) * c + r * (1 - c) * 0.1 + 0.1 * (1 - r) * (1 - c), "cosine must be c"),
        (lambda r: r, "TypeError"),
        (lambda r, c: None, "Hand in a function of"),
        (lambda r, c: "0.5", "does not read as a number"),
        (lambda r, c: [r, c], "not one number"),
        (0.5, "Hand in a function"),
        ("rho + c", "Hand in a function"),
        (None, "Hand in a function"),
    ],
)
def test_wrong_common_part(answer, hint):
    wrong("a-trained-bert-3", answer, hint)


# a-trained-bert-4: another row with the same output


def null_step(a, V, sign=1.0, stop=True):
    """One step along the first direction that leaves sum and output alone."""
    lifted = np.column_stack([V, np.ones(len(V))])
    c = sign * np.linalg.svd(lifted.T)[2][np.linalg.matrix_rank(lifted)]
    down = c < -1e-12
    t = (a[down] / -c[down]).min() if stop else 0.5 * (a[down] / -c[down]).min()
    b = a + t * c
    if stop:
        b[np.flatnonzero(down)[(a[down] / -c[down]).argmin()]] = 0
    return b


def all_the_way(a, V):
    while True:
        alive = np.flatnonzero(a > 0)
        if len(alive) <= V.shape[1] + 1:
            return a
        part = null_step(a[alive], V[alive])
        a = np.zeros_like(a)
        a[alive] = np.maximum(part, 0)


def drop_smallest(a, V):
    b = np.where(np.arange(len(a)) == a.argmin(), 0, a)
    return b / b.sum()


def too_far(a, V):
    b = null_step(a, V)
    return 3 * b - 2 * a


def without_sum(a, V):
    """Along the null space of the values alone."""
    c = np.linalg.svd(V.T)[2][-1]
    c = c if c.sum() < 0 else -c
    down = c < 0
    out = np.flatnonzero(down)[(a[down] / -c[down]).argmin()]
    b = a + a[out] / -c[out] * c
    b[out] = 0
    return b


@pytest.mark.parametrize("answer", [null_step, lambda a, V: null_step(a, V, -1.0), all_the_way])
def test_another_row(answer):
    right("a-trained-bert-4", answer)


@pytest.mark.parametrize(
    "answer,hint",
    [
        (lambda a, V: a, "the row itself"),
        (drop_smallest, "left out the smallest"),
        (too_far, "a weight is negative"),
        (without_sum, "sum"),
        (lambda a, V: null_step(a, V, stop=False), "no weight is zero yet"),
        (lambda a, V: np.full(len(a), 1 / len(a)), "the output has moved"),
        (lambda a, V: a / 2, "sum to 1"),
        (lambda a, V: a[:-1], "weights for a row of"),
        (lambda a, V: "weights", "does not read as numbers"),
        (lambda a, V: None, "weights"),
        (lambda a: a, "TypeError"),
        (42, "Hand in a function"),
        ("twin", "Hand in a function"),
        (None, "Hand in a function"),
    ],
)
def test_wrong_row(answer, hint):
    wrong("a-trained-bert-4", answer, hint)


# a-trained-bert-5: a mean that spoils the examination

SPOILT = [(1, 0.1), (10, 1), (1, -0.1), (10, -1)]


def examination(vectors):
    """Right or wrong for each vector, with torch."""
    x = torch.tensor(vectors, dtype=torch.float64)
    cosines = torch.cosine_similarity(x[:, None], x[None], dim=-1).fill_diagonal_(-2)
    return (cosines.argmax(1) // 2 == torch.arange(4) // 2).tolist()


def test_spoilt():
    right("a-trained-bert-5", SPOILT)
    right("a-trained-bert-5", np.array(SPOILT) * 7)
    right("a-trained-bert-5", [(10, 1), (1, 0.1), (10, -1), (1, -0.1)])
    x = np.array(SPOILT)
    assert all(examination(x)) and not any(examination(x - x.mean(axis=0)))


@pytest.mark.parametrize(
    "answer,hint",
    [
        ([(1, 0.1), (1, 0.1), (1, -0.1), (1, -0.1)], "equally long"),
        ([(1, 0), (2, 0.1), (0, 1), (0.1, 2)], "of the four are wrong"),
        ([(1, 0), (0, 1), (1, 0), (0, 1)], "As they are, 0 of the four"),
        ([(1, 0), (1, 0), (1, 0), (1, 0)], "becomes zero"),
        ([(1, 1), (2, 2), (1, 1.0), (3, 3)], "As they are"),
        ([(0, 0), (1, 1), (1, 0), (0, 1)], "zero vector"),
        ([(1, 0), (2, 0), (0, 1)], "not an array of shape (4, 2)"),
        ([1, 2, 3, 4], "not an array of shape (4, 2)"),
        ([(1, math.inf), (2, 0), (0, 1), (0, 2)], "infinite"),
        ("vectors", "does not read as numbers"),
        (None, "Hand in a list of four pairs"),
    ],
)
def test_not_spoilt(answer, hint):
    wrong("a-trained-bert-5", answer, hint)
