"""The exercises on the scaling factor: right answers in several forms, and the hints that typical wrong ones get."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import sympy as sp
from judged import right, wrong

from bertlib.exercises import check

# 1: the variance of a score whose components have means


def enumerated_variance_of_one_product():
    """Var(q k) for q uniform on (0, 1), by its exact moments, and k over its four equally likely quarters."""
    u = sp.symbols("u")
    quarters = [1, 1, 1, -1]
    first = sum(sp.integrate(u * k, (u, 0, 1)) for k in quarters) / 4
    second = sum(sp.integrate((u * k) ** 2, (u, 0, 1)) for k in quarters) / 4
    return second - first**2


def test_1_right():
    by_sympy = 64 * enumerated_variance_of_one_product()
    assert by_sympy == sp.Rational(52, 3)
    for answer in (by_sympy, Fraction(52, 3), 52 / 3, 17.333, np.float32(17.3333)):
        right("scaling-1", answer)


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        (4, "product of the variances"),
        (64 / 3, "subtracts the squared mean"),
        (13 / 48, "a sum of 64"),
        ((52 / 3) ** 0.5, "standard deviation"),
        (16, "the mean of the score"),
        (52 / 24, "the raw score"),
        (64, "means 0 and variances 1"),
        (16 / 3, "the mean of q"),
        (40 / 3, "both variances is missing"),
        (68 / 3, "key's component"),
        (17, "four moments"),
        (-4, "four moments"),
        ("52/3", "does not read as a number"),
        (None, "does not read as a number"),
        (True, "does not read as a number"),
        ([1, 2], "shape"),
        (float("inf"), "infinite"),
        (1j, "does not read as a number"),
    ],
)
def test_1_wrong(answer, hint):
    wrong("scaling-1", answer, hint)


# 2: BERT-large


def test_2_right():
    for answer in (Fraction(1024, 2500) ** 2, 0.4096**2, 0.1678, sp.Rational(256, 625) ** 2):
        right("scaling-2", answer)


def test_2_agrees_with_a_simulation():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 1024))
    x -= x.mean(axis=1, keepdims=True)
    x /= x.std(axis=1, keepdims=True)
    scores = [
        (rng.normal(0, 0.02, (64, 1024)) @ x[0]) @ (rng.normal(0, 0.02, (64, 1024)) @ x[1]) / 8 for _ in range(400)
    ]
    assert np.var(scores) == pytest.approx(0.1678, rel=0.25)


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        (0.4096, "a component of q"),
        (10.737, "raw score"),
        (1.342, "divided the variance by √64"),
        (0.00262, "once too often"),
        (0.0944, "BERT-base"),
        ((64 / 2500) ** 2, "the whole width of the token"),
        (1, "1/32"),
        ((1024 / 50) ** 2, "Square the standard deviation"),
        (0.5, "step by step"),
        ("a sixth", "does not read as a number"),
        (None, "does not read as a number"),
        (np.zeros((2, 2)), "shape"),
    ],
)
def test_2_wrong(answer, hint):
    wrong("scaling-2", answer, hint)


def test_2_hint_for_a_component_does_not_say_how_to_get_on_from_it():
    assert "deviation" not in check("scaling-2", 0.4096).message


# 3: how much a weight can be moved


def test_3_right():
    p = sp.symbols("p")
    w = sp.symbols("w", positive=True)
    for answer in (2 * p * (1 - p), 2 * w - 2 * w**2, lambda p: 2 * p * (1 - p), lambda p: np.array(p - p**2) * 2):
        right("scaling-3", answer)


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        (lambda p: p * (1 - p), "own score alone"),
        (lambda p: 0, "absolute values"),
        (lambda p: 2 * p, "At p = 1/2"),
        (lambda p: p, "Right at p = 1/2"),
        (lambda p: "much", "does not read as a number"),
        (lambda p: 1 / 0, "ZeroDivisionError"),
        (lambda: 1, "TypeError"),
        (0.5, "a function of p"),
        ("2p(1-p)", "a function of p"),
        (None, "a function of p"),
        (sp.symbols("p") * sp.symbols("n"), "the symbols n, p"),
        (sp.Rational(1, 2), "Right at p = 1/2"),
        (sp.symbols("p") * sp.I, "does not read as a number"),
    ],
)
def test_3_wrong(answer, hint):
    wrong("scaling-3", answer, hint)


# 4: the variance of any score


def right_variance(mean_q, cov_q, mean_k, cov_k):
    return np.trace(cov_q @ cov_k) + mean_q @ cov_k @ mean_q + mean_k @ cov_q @ mean_k


def test_4_right():
    right("scaling-4", right_variance)
    right("scaling-4", lambda *moments: np.array([[right_variance(*moments)]]))


def test_4_formula_agrees_with_counting_every_case():
    """A law with finitely many values: q over four vectors, k over three, all pairs equally likely."""
    rng = np.random.default_rng(2)
    queries, keys = rng.standard_normal((4, 3)), rng.standard_normal((3, 3))
    scores = [q @ k for q, k in product(queries, keys)]
    moments = queries.mean(0), np.cov(queries.T, bias=True), keys.mean(0), np.cov(keys.T, bias=True)
    assert right_variance(*moments) == pytest.approx(np.var(scores))


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        (lambda a, S, b, T: right_variance(a, S, b, T) ** 0.5, "standard deviation"),
        (lambda a, S, b, T: np.trace(S) * np.trace(T), "not the product of the traces"),
        (lambda a, S, b, T: np.trace(S @ T), "come from the means are missing"),
        (lambda a, S, b, T: np.trace(S @ T) + a @ S @ a + b @ T @ b, "other vector's covariance"),
        (lambda a, S, b, T: np.diag(S) @ np.diag(T) + a @ T @ a + b @ S @ b, "diagonals alone"),
        (lambda a, S, b, T: np.diag(S) @ np.diag(T), "diagonals alone"),
        (lambda a, S, b, T: right_variance(a, S, b, T) + (a @ b) ** 2, "mean square"),
        (lambda a, S, b, T: right_variance(a, S, b, T) / len(a), "divided by the width"),
        (lambda a, S, b, T: np.trace(S @ T) + a @ T @ a, "One of the two parts"),
        (lambda a, S, b, T: np.trace(S @ T) + b @ S @ b, "One of the two parts"),
        (lambda a, S, b, T: len(a), "Wrong in the case of correlated components without means"),
        (lambda a, S, b, T: S, "shape"),
        (lambda a, S, b, T: None, "does not read as a number"),
        (lambda a, S: 0, "TypeError"),
        (64, "Hand in a function"),
        ("tr(ST)", "Hand in a function"),
        (None, "Hand in a function"),
    ],
)
def test_4_wrong(answer, hint):
    wrong("scaling-4", answer, hint)


def test_4_does_not_let_an_answer_change_what_it_is_compared_with():
    def spoils_its_arguments(mean_q, cov_q, mean_k, cov_k):
        cov_q *= 0
        return 0.0

    assert check("scaling-4", spoils_its_arguments).right is False


# 5: dead in single precision


def test_5_right():
    for answer in ([0.0, 200.0, 0.0], (-150, 0, -150), np.array([0, 0, 120.0]), [300, 100, 150]):
        right("scaling-5", answer)


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        ([5, 20, 5], "In float32 the largest entry is still"),
        ([0, 0, 0], "Equal scores"),
        ([200, 200, 0], "nearly equal"),
        ([0, 1000, 0], "went too far"),
        ([0, float("inf"), 0], "must be finite"),
        ([0, 1e39, 0], "must be finite"),
        ([0, float("nan"), 0], "must be finite"),
        ([0, 200], "shape"),
        ([[0, 200, 0]], "shape"),
        (200, "shape"),
        ("0, 200, 0", "a list of three"),
        (None, "a list of three"),
        (["a", "b", "c"], "a list of three"),
        ({"a": 1}, "a list of three"),
        (lambda: [0, 200, 0], "a list of three"),
    ],
)
def test_5_wrong(answer, hint):
    wrong("scaling-5", answer, hint)
