"""The checks of the chapter "A worked example, number by number": right answers, and the hint each wrong one gets."""

import math

import numpy as np
import pytest
import sympy as sp
import torch
from judged import right, wrong

from bertlib.exercises import check, names

R = math.sqrt(math.e)
# By hand: the halved scores of (0, 0, 1, 1) are 1/2, 1/2, 0, 1.
FOURTH = [R / (1 + R) ** 2, R / (1 + R) ** 2, 1 / (1 + R) ** 2, math.e / (1 + R) ** 2]
TOKENS = np.array([[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0], [1.0, 1.0, 0.0, 0.0]])
t = sp.Symbol("t")
QUARTIC = t**4 - 2 * t**3 - 8 * t**2 - 12 * t - 6
EXERCISES = [f"worked-example-{k}" for k in range(1, 6)]


def test_there_are_five():
    assert names("worked-example") == EXERCISES


@pytest.mark.parametrize("name", EXERCISES)
@pytest.mark.parametrize(
    "answer", ["a text", None, {}, [], object(), [[1, 2], [3]], np.zeros((2, 7)), float("nan"), 1j]
)
def test_whatever_comes_is_answered_and_never_raises(name, answer):
    result = check(name, answer)
    assert result.right is False and result.message


@pytest.mark.parametrize("name", EXERCISES)
def test_no_answer_yet(name):
    assert check(name, ...).right is None


@pytest.mark.parametrize(
    "answer",
    [
        FOURTH,
        tuple(FOURTH),
        np.array(FOURTH),
        np.array([FOURTH]),
        torch.tensor(FOURTH, requires_grad=True),
        [round(p, 3) for p in FOURTH],
        sp.Matrix([[sp.sqrt(sp.E), sp.sqrt(sp.E), 1, sp.E]]) / (1 + sp.sqrt(sp.E)) ** 2,
    ],
)
def test_fourth_token_right(answer):
    right("worked-example-1", answer)


def test_fourth_token_wrong():
    wrong("worked-example-1", torch.tensor([1.0, 1.0, 0.0, 2.0]).softmax(0), "raw scores")
    wrong("worked-example-1", [1, 1, 0, 2], "These are scores")
    wrong("worked-example-1", [0.5, 0.5, 0, 1], "These are scores")
    wrong("worked-example-1", [R, R, 1, math.e], "powers of e")
    output = torch.tensor(FOURTH) @ torch.tensor([[1.0, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1]])
    wrong("worked-example-1", output, "coordinates of output 4")
    wrong("worked-example-1", np.array([R, R, 1, math.e]) / (2 * R + 1), "leaves out token 4")
    wrong("worked-example-1", [0.3, 0.3, 0.3, 0.3], "sums to one")
    wrong("worked-example-1", FOURTH[::-1], "wrong order")
    wrong("worked-example-1", [0.24, 0.23, 0.14, 0.39], "three digits")
    correctly_rounded = [round(p, 2) for p in FOURTH]
    assert sum(correctly_rounded) == pytest.approx(1.01)  # and yet the fault is the digits, not the sum
    wrong("worked-example-1", correctly_rounded, "three digits")
    wrong("worked-example-1", [0.25, 0.25, 0.25, 0.25], "Not these")
    wrong("worked-example-1", FOURTH[:3], "shape (3,)")
    wrong("worked-example-1", [1, 2, 3, math.inf], "not a finite number")


@pytest.mark.parametrize(
    "answer", [math.log(1 + math.sqrt(3)), 1.005, sp.log(1 + sp.sqrt(3)), [1.00505], torch.tensor(1.00505)]
)
def test_two_thirds_right(answer):
    right("worked-example-2", answer)


def test_two_thirds_wrong():
    wrong("worked-example-2", 1 + math.sqrt(3), "exponent")
    wrong("worked-example-2", 2 * math.log(1 + math.sqrt(3)), "after they were halved")
    wrong("worked-example-2", 1 / math.log(1 + math.sqrt(3)), "temperature")
    wrong("worked-example-2", math.log(4), "token 3")
    wrong("worked-example-2", 1, "not quite two thirds")
    wrong("worked-example-2", 0.5, "too small")
    wrong("worked-example-2", -1000, "too small")
    wrong("worked-example-2", 1e9, "too large")
    wrong("worked-example-2", [1, 2], "one number")


def test_the_quartic_is_the_one_that_decides():
    """Against the distances themselves, computed in torch."""
    x = torch.from_numpy(TOKENS)
    for beta in np.linspace(0.05, 3, 60):
        move = ((beta * x @ x.T).softmax(-1) @ x - x).norm(dim=-1)
        assert (move[2] < move[0]) == (float(QUARTIC.subs(t, math.exp(beta))) < 0)


@pytest.mark.parametrize(
    "answer",
    [
        QUARTIC,
        sp.Poly(QUARTIC, t),
        2 * QUARTIC,
        QUARTIC.subs(t, sp.Symbol("z", positive=True)),
        t * (t * (t * (t - 2) - 8) - 12) - 6,
        1.0 * t**4 - 2.0 * t**3 - 8.0 * t**2 - 12.0 * t - 6.0,
    ],
)
def test_polynomial_right(answer):
    right("worked-example-3", answer)


def test_polynomial_wrong():
    wrong("worked-example-3", -QUARTIC, "but for its sign")
    wrong("worked-example-3", "t**4 - 2*t**3 - 8*t**2 - 12*t - 6", "sympy expression")
    wrong("worked-example-3", 7, "sympy expression")
    wrong("worked-example-3", sp.Integer(7), "one unknown")
    wrong("worked-example-3", QUARTIC + sp.Symbol("u"), "one unknown")
    distances = 4 / (2 + t) ** 2 - (2 * t**2 + 4 * t + 4) / (t**2 + t + 1) ** 2
    wrong("worked-example-3", distances, "multiply the denominators out")
    wrong("worked-example-3", QUARTIC.subs(t, sp.sqrt(t)), "Not a polynomial")
    wrong("worked-example-3", sp.expand(QUARTIC * (t + 2) ** 2), "divide out")
    wrong("worked-example-3", t**2 - t, "given away")
    wrong("worked-example-3", t - 1, "given away")
    wrong("worked-example-3", t**6 + 1, "too high")
    wrong("worked-example-3", QUARTIC + 1, "Not this one")
    wrong("worked-example-3", sp.Integer(0) * t, "one unknown")


def softmax(scores):
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def pull(x, scale):
    """Token by token, in plain loops."""
    shares, targets = [], []
    for i, token in enumerate(x):
        others = np.delete(x, i, axis=0)
        scores = scale * others @ token
        powers = np.exp(scores - scores.max())
        targets.append(powers @ others / powers.sum())
        with np.errstate(over="ignore"):
            shares.append(1 / (1 + np.exp(scale * token @ token - scores.max()) / powers.sum()))
    return np.array(shares), np.array(targets)


def test_the_share_that_rounding_loses():
    """By hand: ten times as long, a halved score with oneself is 100, with an orthogonal token 0, with token 3 50."""
    assert (loses_the_share(10 * TOKENS, 0.5)[0] == 0).all()
    by_hand = [math.exp(-50), math.exp(-50), 2 * math.exp(-50)]
    assert pull(10 * TOKENS, 0.5)[0] == pytest.approx(by_hand, rel=1e-12, abs=0)


def test_pull_right():
    right("worked-example-4", pull)
    right("worked-example-4", lambda x, scale: [list(part) for part in pull(x, scale)])


def naive(x, scale):
    weights = softmax(scale * x @ x.T)
    given = 1 - np.diag(weights)
    return given, (weights @ x - np.diag(weights)[:, None] * x) / given[:, None]


def overflows(x, scale):
    powers = np.exp(scale * x @ x.T)
    given = (powers - np.diag(np.diag(powers))).sum(axis=1) / powers.sum(axis=1)
    return given, pull(x, scale)[1]


def loses_the_share(x, scale):
    return 1 - np.diag(softmax(scale * x @ x.T)), pull(x, scale)[1]


def changes_its_input(x, scale):
    result = pull(x, scale)
    x *= 2
    return result


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (naive, "Not finite for three tokens ten times as long"),
        (overflows, "Not finite for three tokens forty times as long"),
        (loses_the_share, "lost in rounding for three tokens ten times as long"),
        (changes_its_input, "changes the tokens"),
        (pull(TOKENS, 0.5), "the function itself"),
        (lambda x, scale: pull(x, scale)[0], "two things"),
        (lambda x, scale: None, "two things"),
        (lambda x, scale: ("a", "b"), "arrays of numbers"),
        (lambda x, scale: pull(x, scale)[::-1], "the shapes are"),
        (lambda x, scale: (1 - pull(x, scale)[0], pull(x, scale)[1]), "what it gives away"),
        (lambda x, scale: pull(x, 1.0), "scale was left out"),
        (lambda x, scale: pull(x, 0.5), "uses scale 1/2"),
        (lambda x, scale: (pull(x, scale)[0], softmax(scale * x @ x.T) @ x), "is the output"),
        (lambda x, scale: (pull(x, scale)[0], pull(x, scale)[0][:, None] * pull(x, scale)[1]), "too short"),
        (lambda x, scale: (pull(x, scale)[0], x), "points moved towards are not"),
        (lambda x, scale: (0 * x[:, 0], x), "Not right"),
        (lambda x: x, "TypeError"),
    ],
)
def test_pull_wrong(answer, words):
    wrong("worked-example-4", answer, words)


@pytest.mark.parametrize("answer", [5 * TOKENS, (6 * TOKENS).tolist(), torch.from_numpy(8 * TOKENS), 9 * np.eye(3, 4)])
def test_tokens_that_stay_apart(answer):
    right("worked-example-5", answer)


def test_tokens_that_do_not_stay_apart():
    wrong("worked-example-5", TOKENS, "After 1 application(s)")
    wrong("worked-example-5", 3 * TOKENS, "After 14 application(s)")
    wrong("worked-example-5", 11 * TOKENS, "larger in size than ten")
    wrong("worked-example-5", 5 * TOKENS[[0, 0, 1]], "from the start")
    wrong("worked-example-5", 5 * TOKENS.T, "shape (4, 3)")
    wrong("worked-example-5", np.full((3, 4), np.nan), "not a finite number")
