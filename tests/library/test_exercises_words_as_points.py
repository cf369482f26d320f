"""The exercises of the chapter on words as points: right answers in several forms, and the hints wrong ones get."""

from fractions import Fraction

import numpy as np
import pytest
import sympy as sp
import torch
from judged import right, wrong

from bertlib.exercises import check, names

EXERCISES = [f"words-as-points-{k}" for k in range(1, 6)]


def test_there_are_five():
    assert names("words-as-points") == EXERCISES


@pytest.mark.parametrize("name", EXERCISES)
@pytest.mark.parametrize(
    "answer",
    [
        "a text",
        None,
        True,
        {},
        [],
        object(),
        [[1, 2], [3]],
        np.zeros((2, 7)),
        float("nan"),
        1j,
        lambda: 1,
        lambda *arguments: None,
        lambda *arguments: "a text",
        lambda *arguments: np.zeros(3),
        lambda *arguments: float("nan"),
        lambda *arguments: 1 / 0,
    ],
)
def test_whatever_comes_is_answered_and_never_raises(name, answer):
    result = check(name, answer)
    assert result.right is False and result.message


@pytest.mark.parametrize("name", EXERCISES)
def test_no_answer_yet(name):
    assert check(name, ...).right is None


# 1: t by hand, here by torch


def test_1_right():
    a, b, c, d = torch.tensor([[1, 0], [0, 1], [0.6, 0.8], [-0.8, 0.6]], dtype=torch.float64)
    assert torch.allclose(torch.stack([a, b, c, d]).norm(dim=1), torch.ones(4, dtype=torch.float64))
    t = torch.dot(b - a, d - c) / torch.dot(d - c, d - c)
    target = b - a + c
    assert torch.cosine_similarity(target, d, dim=0) > torch.cosine_similarity(target, c, dim=0)
    for answer in (t, t.item(), Fraction(3, 5), sp.Rational(3, 5), 0.6, [0.6], np.float32(0.6)):
        right("words-as-points-1", answer)


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        (6 / 5, "dot product of step and way"),
        (6 / 5 / 2**0.5, "not by its length"),
        (-3 / 5, "wrong sign"),
        (4 / 5, "negative numbers"),
        (5 / 3, "denominator"),
        (1, "parallelogram"),
        (0.5, "border"),
        (-0.8, "Check the signs"),
        (0.61, "Write down the step"),
        (7, "Write down the step"),
        ("3/5", "does not read as a number"),
        ((3, 5), "shape"),
        (float("inf"), "infinite"),
    ],
)
def test_1_wrong(answer, hint):
    wrong("words-as-points-1", answer, hint)


# 2: what is shared; the answer from a table that has these moments exactly


def test_2_right():
    rows = np.array([[3.0, 4], [3, -4]])  # drawn with probability 1/2 each
    products = rows @ rows.T
    assert products.mean() == 9 and products.diagonal().mean() == 25
    mean = rows.mean(axis=0)
    centred = rows - mean
    answer = (np.linalg.norm(mean), (centred**2).sum(axis=1).mean(), (centred @ centred.T).mean())
    assert answer == (3, 16, 0)
    for form in (answer, list(answer), np.array(answer), torch.tensor(answer), [sp.sqrt(9), 16, 0]):
        right("words-as-points-2", form)


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        ((9, 16, 0), "squared length"),
        ((5, 16, 0), "typical length of a row"),
        ((0.6, 16, 0), "share"),
        ((4, 16, 0), "independent"),
        ((-3, 16, 0), "independent"),
        ((3, 4, 0), "mean squared length was asked"),
        ((3, 2, 0), "Lengths cannot be subtracted"),
        ((3, 34, 0), "cross term"),
        ((3, 25, 0), "Expand"),
        ((3, 22, 0), "not its length"),
        ((3, 7, 0), "comes back"),
        ((3, 12, 0), "Expand"),
        ((3, 16, 9), "third number"),
        ((3, 16, 1), "third number"),
        ((3, 16), "shape"),
        (16, "one number"),
        ((3, 16, float("nan")), "infinite or not a number"),
        ("3, 16, 0", "does not read as numbers"),
    ],
)
def test_2_wrong(answer, hint):
    wrong("words-as-points-2", answer, hint)


# 3: on the sphere


def test_3_right():
    b1, b2, c1, c2 = sp.symbols("b1 b2 c1 c2", real=True)
    b3, c3 = sp.sqrt(1 - b1**2 - b2**2), sp.sqrt(1 - c1**2 - c2**2)
    a, b, c = sp.Matrix([1, 0, 0]), sp.Matrix([b1, b2, b3]), sp.Matrix([c1, c2, c3])
    p = (b - a).dot(c - a)
    assert sp.simplify((b - a + c).dot(b - a + c) - (1 + 2 * p)) == 0
    x = sp.Symbol("x")
    for answer in (lambda p: 1 + 2 * p, lambda p: np.array([2 * p + 1]), 1 + 2 * x, sp.Lambda(x, 1 + 2 * x)):
        right("words-as-points-3", answer)


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        (lambda p: np.sqrt(max(1 + 2 * p, 0)), "its square was asked"),
        (lambda p: 1 + p, "stands twice"),
        (lambda p: 1 - 2 * p, "sign of p"),
        (lambda p: 3 + 2 * p, "more products"),
        (lambda p: 3, "at right angles"),
        (lambda p: 1, "every d a unit vector"),
        (lambda p: 2 * p, "rectangle"),
        (lambda p: 1 + p**2, "random unit vectors"),
        (lambda p: (1 + p) ** 2, "random unit vectors"),
        (lambda p, q: 1, "TypeError"),
        (sp.Symbol("x") + sp.Symbol("y"), "depend on p alone"),
        (sp.Integer(3), "a function of p"),
        (3, "a function of p"),
        ("1 + 2p", "a function of p"),
    ],
)
def test_3_wrong(answer, hint):
    wrong("words-as-points-3", answer, hint)


# 4: the solver, by torch and with typical mistakes


def solver(scale=True, cosine=True, left_out=-np.inf, keep_zeros=False, order=(1, -1, 1)):
    def solve(table, *given):
        table = np.asarray(table, dtype=float)
        lengths = np.linalg.norm(table, axis=1)
        safe = np.where(lengths == 0, 1, lengths)[:, None]
        units = table / safe
        source = units if scale else table
        target = sum(sign * source[i] for sign, i in zip(order, (given[1], given[0], given[2]), strict=True))
        scores = (units if cosine else table) @ target
        scores[list(given)] = left_out
        if not keep_zeros:
            scores[lengths == 0] = -np.inf
        return int(scores.argmax())

    return solve


def by_torch(table, a, b, c):
    units = torch.nn.functional.normalize(torch.from_numpy(table.copy()).double(), dim=1)
    scores = torch.nn.functional.cosine_similarity(units, (units[b] - units[a] + units[c])[None], dim=1)
    scores[[a, b, c]] = float("-inf")
    scores[units.norm(dim=1) == 0] = float("-inf")
    return scores.argmax()


def test_4_right():
    for answer in (by_torch, solver(), lambda *given: np.int64(solver()(*given))):
        right("words-as-points-4", answer)


def normalises_in_place(table, a, b, c):
    table /= np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-300)
    return solver()(table, a, b, c)


def with_nan(table, a, b, c):
    with np.errstate(invalid="ignore"):
        units = table / np.linalg.norm(table, axis=1, keepdims=True)
    scores = units @ (units[b] - units[a] + units[c])
    scores[[a, b, c]] = -np.inf
    return int(scores.argmax())


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        (solver(left_out=np.inf), "left out"),
        (lambda table, a, b, c: c, "left out"),
        (solver(left_out=0), "Is 0 low enough"),
        (solver(left_out=-1), "or -1"),  # b - a + c may be longer than 1, and a score below -1
        (solver(keep_zeros=True), "row of zeros"),
        (with_nan, "row of zeros"),
        (normalises_in_place, "changes the table"),
        (solver(scale=False), "scaled to length 1"),
        (solver(order=(-1, 1, 1)), "order"),
        (solver(order=(1, -1, 0)), "smaller cosine"),
        (lambda table, a, b, c: 10**6, "There is no row"),
        (lambda table, a, b, c: 2.0, "whole number"),
        (lambda table, a, b, c: table[0], "whole number"),
        (lambda table, a, b, c: "queen", "one row number"),
        (lambda table: 1, "TypeError"),
        (7, "Hand in a function"),
    ],
)
def test_4_wrong(answer, hint):
    wrong("words-as-points-4", answer, hint)


def test_4_dot_product_is_told_from_cosine():
    wrong("words-as-points-4", solver(cosine=False), "dot product")


# 5: the origin moves


@pytest.mark.parametrize(
    "answer",
    [
        [(2, 0), (3, 0.5), (2, 3), (-2, 1)],
        np.array([[1, 0], [2, 0], [1, 3], [-1, 1]]),
        torch.tensor([[5.0, 5], [6, 6], [5, 9], [-5, -4.9]]),
    ],
)
def test_5_right(answer):
    points = torch.as_tensor(answer, dtype=torch.float64)
    x, y, z, m = points

    def cosine(u, v):
        return torch.nn.functional.cosine_similarity(u, v, dim=0)

    assert (x - y).norm() < (x - z).norm() and cosine(x, y) > cosine(x, z)
    assert cosine(x + m, y + m) < cosine(x + m, z + m)
    right("words-as-points-5", answer)


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        ([(2, 0), (3, 0.5), (2, 3), (0, 0)], "nothing moves"),
        ([(2, 0), (3, 0.5), (2, 3), (1, 1)], "still prefers y"),
        ([(2, 0), (2, 3), (3, 0.5), (-2, 1)], "By distance"),
        ([(2, 0), (2, 1), (4, 0), (-2, 1)], "Before the shift"),
        ([(0, 0), (3, 0.5), (2, 3), (-2, 1)], "at the origin before"),
        ([(2, 0), (3, 0.5), (2, 3), (-2, 0)], "at the origin after"),
        ([(2, 0), (3, 0.5), (2, 3)], "four pairs"),
        ([(2e7, 0), (3, 0.5), (2, 3), (-2, 1)], "below a million"),
        ([(2, 0), (3, 0.5), (2, float("inf")), (-2, 1)], "infinite"),
        ("x, y, z, m", "does not read as numbers"),
    ],
)
def test_5_wrong(answer, hint):
    wrong("words-as-points-5", answer, hint)
