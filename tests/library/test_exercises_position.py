"""The exercises on position: right answers found in another way, and the hint that each typical mistake gets."""

import itertools
import math

import numpy as np
import pytest
import sympy as sp
import torch
from judged import right, wrong

from bertlib.attention import attention_scores, rotary_angles, rotate

# position-1: orders of nine words, and the outputs they can have

SENTENCE = ["the", "rain", "in", "spain", "stays", "mainly", "in", "the", "plain"]


def test_orders():
    places_left = math.comb(9, 2) * math.comb(7, 2)  # where "the" and "in" go
    orders = places_left * len(list(itertools.permutations(set(SENTENCE) - {"the", "in"})))
    right("position-1", (orders, len(set(SENTENCE))))
    right("position-1", np.array([90720.0, 7]))


@pytest.mark.parametrize(
    "answer,hint",
    [
        ((math.factorial(9), 7), "you counted it twice"),
        ((math.factorial(9) // 2, 7), "one of them"),
        ((math.factorial(9) // 24, 7), "each on its own"),
        ((math.factorial(7), 7), "nine places"),
        ((9**9 // 4, 7), "choices with repetition"),
        ((90721, 7), "The number of orders is off"),
        ((7, 90720), "wrong order"),
        ((90720, 9), "Are nine outputs really different"),
        ((90720, 90720), "the outputs follow their tokens"),
        ((90720, 9 * 90720), "the outputs follow their tokens"),
        ((90720, 1), "more than one vector"),
        ((90720, 5), "must have equal outputs"),
        (90720, "That is one number"),
        ((1, 2, 3), "shape (3,)"),
        ("many", "does not read as numbers"),
        (None, "Hand in two numbers"),
        ((math.nan, 7), "infinite or not a number"),
    ],
)
def test_wrong_orders(answer, hint):
    wrong("position-1", answer, hint)


# position-2: the inner products of two clocks


def place(i):
    return sp.Matrix([f(w * i) for w in (sp.pi / 2, sp.pi / 6) for f in (sp.cos, sp.sin)])


def products(start=5):
    return [float(sp.simplify(place(start).dot(place(start + k)))) for k in range(4)]


def test_clocks():
    right("position-2", products())
    right("position-2", (2, 0.866, -0.5, 0))
    assert sp.simplify(place(3) - place(15)) == sp.zeros(4, 1)


K = np.arange(4)


@pytest.mark.parametrize(
    "answer,hint",
    [
        (np.cos(K * np.pi / 2), "π/2 alone"),
        (np.cos(K * np.pi / 6), "π/6 alone"),
        (np.array(products()) / 2, "mean over the two pairs"),
        (np.cos(K * np.pi / 2) * np.cos(K * np.pi / 6), "multiplied the two cosines"),
        (np.sin(K * np.pi / 2) + np.sin(K * np.pi / 6), "Sines"),
        (products()[::-1], "wrong order"),
        (np.cos(K / 2) + np.cos(K / 6), "where is your π"),
        (np.cos(np.radians(K * np.pi / 2)) + np.cos(np.radians(K * np.pi / 6)), "radians for degrees"),
        (np.array(products()) / math.sqrt(2), "divided by the length"),
        ((1, 0, 0, 0), "each pair contributes cos² + sin²"),
        ((2, 1, 0, 0), "For k = 0 it is right"),
        ((2, 0.866), "shape (2,)"),
        ("2", "That is one number"),
        ("two", "does not read as numbers"),
        (None, "Hand in four numbers"),
    ],
)
def test_wrong_clocks(answer, hint):
    wrong("position-2", answer, hint)


# position-3: the mean over all permutations


def fair(table):
    """The one a I + b 11ᵀ with the trace and the sum of T, solved for a and b."""
    n = len(table)
    if n == 1:
        return table
    a, b = np.linalg.solve([[n, n], [n, n * n]], [np.trace(table), table.sum()])
    return a * np.eye(n) + b


def diagonal_mean(table):
    return np.trace(table) / len(table)


def test_fair():
    right("position-3", fair)
    right("position-3", lambda table: fair(torch.from_numpy(table).numpy()).tolist())


@pytest.mark.parametrize(
    "answer,hint",
    [
        (lambda t: np.full_like(t, t.mean()), "averaged all entries together"),
        (lambda t: diagonal_mean(t) * np.eye(len(t)), "Off it the mean is not zero"),
        (lambda t: fair(t) - np.diag(np.diag(fair(t))) + np.diag(np.diag(t)), "the diagonal is averaged too"),
        (lambda t: t - np.diag(np.diag(t)) + diagonal_mean(t) * np.eye(len(t)), "what is off it is averaged too"),
        (lambda t: (t + t.T) / 2, "T and its transpose"),
        (
            lambda t: np.where(np.eye(len(t)) > 0, diagonal_mean(t), (t.sum() - np.trace(t)) / t.size),
            "how many entries",
        ),
        (lambda t: np.where(np.eye(len(t)) > 0, np.trace(t), t.sum() - np.trace(t)), "These are sums"),
        (lambda t: t, "T itself"),
        (lambda t: fair(t) + 1, "not the mean"),
        (lambda t: fair(t) + np.arange(len(t))[:, None], "not equivariant yet"),
        (lambda t: fair(t) if len(t) > 1 else np.zeros((1, 1)), "one permutation"),
        (lambda t: fair(t) if len(t) > 1 else np.full((1, 1), np.nan), "infinite or not a number"),
        (lambda t: fair(t) if len(t) < 6 else np.full_like(t, t.mean()), "For 60 tokens it is off"),
        (lambda t: fair(t) if len(t) < 6 else t, "For 60 tokens it is not equivariant"),
        (lambda t: t[0], "Hand in a matrix"),
        (lambda: 1, "raised TypeError"),
        (np.eye(3), "Hand in a function"),
        ("mean", "Hand in a function"),
        (None, "Hand in a function"),
    ],
)
def test_unfair(answer, hint):
    wrong("position-3", answer, hint)


# position-4: rotary scores


def library_scores(query, key, at_q, at_k, turn_q=True, turn_k=True, scale=None):
    query, key, at_q, at_k = map(torch.from_numpy, (query, key, at_q, at_k))
    if turn_q:
        query = rotate(query, rotary_angles(at_q, query.shape[1]))
    if turn_k:
        key = rotate(key, rotary_angles(at_k, key.shape[1]))
    return attention_scores(query, key, scale).numpy()


def complex_scores(q, k, at_q, at_k, power=2.0, sign=1, neighbours=False):
    d = q.shape[1]

    def pairs(x, places, sign):
        z = x[:, 0::2] + 1j * x[:, 1::2] if neighbours else x[:, : d // 2] + 1j * x[:, d // 2 :]
        return z * np.exp(1j * sign * np.outer(places, 10000.0 ** (-power * np.arange(d // 2) / d)))

    return (pairs(q, at_q, 1) @ pairs(k, at_k, sign).conj().T).real / math.sqrt(d)


def test_rotary():
    right("position-4", library_scores)
    right("position-4", complex_scores)


@pytest.mark.parametrize(
    "answer,hint",
    [
        (lambda q, k, a, b: library_scores(q, k, a, b, scale=1.0), "Divide by √d_k"),
        (lambda q, k, a, b: library_scores(q, k, a, b) / math.sqrt(q.shape[1]), "You divided by d_k"),
        (lambda q, k, a, b: q @ k.T / math.sqrt(q.shape[1]), "The places change nothing"),
        (lambda q, k, a, b: library_scores(q, k, a, b, turn_k=False), "left the keys as they were"),
        (lambda q, k, a, b: library_scores(q, k, a, b, turn_q=False), "left the queries as they were"),
        (lambda q, k, a, b: complex_scores(q, k, a, b, sign=-1), "opposite senses"),
        (lambda q, k, a, b: complex_scores(q, k, a, b, neighbours=True), "You paired neighbours"),
        (lambda q, k, a, b: complex_scores(q, k, a, b, power=1.0), "the exponent is"),
        (lambda q, k, a, b: library_scores(q, k, np.arange(len(q)), np.arange(len(k))), "counted 0, 1, 2"),
        (lambda q, k, a, b: library_scores(q, k, a, b) + 1, "Off for"),
        (lambda q, k, a, b: library_scores(q, k, a, b) if len(q) != len(k) else q @ k.T, "mix up"),
        (lambda q, k, a, b: library_scores(q, k, a % 1000, b % 900), "Five thousand places"),
        (lambda q, k, a, b: library_scores(q, k, a, b) * (1 + 0j), "complex numbers"),
        (lambda q, k, a, b: library_scores(q, k, a, b).T, "scores for 3 queries"),
        (lambda q, k, a, b: None, "scores for 3 queries"),
        (lambda q, k: q @ k.T, "raised TypeError"),
        (3, "Hand in a function"),
        ("rotate", "Hand in a function"),
        (None, "Hand in a function"),
    ],
)
def test_wrong_rotary(answer, hint):
    wrong("position-4", answer, hint)


# position-5: two texts that a causal stack cannot tell apart


@pytest.mark.parametrize(
    "answer",
    [([7, 7], [7, 7, 7]), ([0], [0] * 20), (np.full(3, 4), (4, 4, 4, 4, 4))],
)
def test_blind(answer):
    right("position-5", answer)


@pytest.mark.parametrize(
    "answer,hint",
    [
        (([1, 2, 3], [1, 2, 3]), "one and the same text"),
        (([1, 2, 3], [2, 1, 3]), "fools one layer"),
        (([1, 1], [2, 2]), "the tokens of the two are different"),
        (([1, 2], [1, 1, 2]), "the shares of the tokens differ"),
        (([1, 2], [1, 2, 1, 2]), "the shares of the tokens differ"),
        (([1, 2], [3, 4, 5]), "When does an average not depend"),
        (([3, 3, 3], [3, 3, 4]), "When does an average not depend"),
        (([7] * 21, [7]), "between one and twenty"),
        (([], [7]), "between one and twenty"),
        (([10], [10, 10]), "whole numbers from 0 to 9"),
        (([1.5], [1.5, 1.5]), "whole numbers from 0 to 9"),
        ((["a"], ["a", "a"]), "whole numbers from 0 to 9"),
        (([True], [True, True]), "whole numbers from 0 to 9"),
        ((7, [7]), "Hand in a pair"),
        ([[7, 7]], "Hand in a pair"),
        (7, "Hand in a pair"),
        ("77", "Hand in a pair"),
        (None, "Hand in a pair"),
    ],
)
def test_not_blind(answer, hint):
    wrong("position-5", answer, hint)
