"""The exercises on softmax: a right answer is right, and each typical mistake gets the hint that names it."""

import math

import numpy as np
import pytest
import sympy as sp
import torch

from bertlib.exercises import check

NONSENSE = [None, "one half", [], {}, [1, 2], [[1, 2], [3]], float("nan"), object(), [math.inf] * 3]


def hint(name, answer):
    result = check(name, answer)
    assert result.right is False, f"{answer!r} was judged right"
    return result.message


@pytest.mark.parametrize("number", range(1, 6))
@pytest.mark.parametrize("nonsense", NONSENSE)
def test_nonsense_gets_a_hint(number, nonsense):
    assert len(hint(f"softmax-{number}", nonsense)) > 10


# 1: a temperature by hand ------------------------------------------------------------------------------------------


def test_the_temperature_found_by_sympy_is_right():
    x = sp.symbols("x", positive=True)
    (root,) = (r for r in sp.solve(sum((s - sp.Rational(10, 7)) * x**s for s in range(3)), x) if r > 0)
    assert root == 2
    weights = [root**s / (1 + root + root**2) for s in range(3)]
    assert check("softmax-1", (1 / sp.log(root), weights)).right
    assert check("softmax-1", (1.44, [0.143, 0.286, 0.571])).right, "three digits are enough"
    assert check("softmax-1", [1.4427, torch.tensor([1, 2, 4]) / 7]).right


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ((math.log(2), [1 / 7, 2 / 7, 4 / 7]), "1/τ"),
        ((-1 / math.log(2), [1 / 7, 2 / 7, 4 / 7]), "sign of the temperature"),
        ((2, [1 / 7, 2 / 7, 4 / 7]), "not the temperature"),
        ((1 / math.log2(2), [1 / 7, 2 / 7, 4 / 7]), "not that to base 2"),
        ((1 / math.log10(2), [1 / 7, 2 / 7, 4 / 7]), "not that to base 10"),
        ((3.0, [1 / 7, 2 / 7, 4 / 7]), "the temperature is not"),
        ((1.4427, [4 / 7, 2 / 7, 1 / 7]), "reverse order"),
        ((1.4427, [1, 2, 4]), "Divide by the sum Z"),
        ((1.4427, [1 / 3, 1 / 3, 1 / 3]), "mean score of these weights is 1.000"),
        ((1.4427, [1 / 7 + 0.05, 2 / 7 - 0.1, 4 / 7 + 0.05]), "ratio of neighbouring"),
        ((1.4427, [16 / 21, -20 / 21, 25 / 21]), "two roots"),
        ([1 / 7, 2 / 7, 4 / 7], "a pair"),
        ((1.4427, "a seventh"), "does not read as numbers"),
        (([1.4], [1 / 7, 2 / 7, 4 / 7]), "shape (1,), not one number"),
        ((1.4427, [math.nan] * 3), "not a number"),
    ],
)
def test_a_wrong_temperature_is_told_why(answer, told):
    assert told in hint("softmax-1", answer)


# 2: a Jacobian by hand ---------------------------------------------------------------------------------------------


def torch_jacobian():
    scores = 2 * torch.log(torch.tensor([0.5, 0.25, 0.25], dtype=torch.float64))
    return torch.autograd.functional.jacobian(lambda s: torch.softmax(s / 2, 0), scores)


def test_the_jacobian_of_torch_is_right():
    assert check("softmax-2", torch_jacobian()).right
    assert check("softmax-2", torch_jacobian().numpy().round(4).tolist()).right


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda j: 2 * j, "τ = 1"),
        (lambda j: 4 * j, "multiplied by τ"),
        (lambda j: -j, "sign"),
        (lambda j: np.diag([1 / 4, 1 / 8, 1 / 8]), "off the diagonal"),
        (lambda j: np.diag(np.diag(j)), "off it are not zero"),
        (lambda j: np.diag([1 / 2, 1 / 4, 1 / 4]) - j, "sum to zero"),
        (lambda j: j + np.eye(3, k=1) / 10, "symmetric"),
        (lambda j: 3 * j, "the entries are off"),
        (lambda j: j + np.eye(3), "sum to zero"),
        (lambda j: j.ravel(), "shape"),
        (lambda j: j * np.nan, "not a number"),
    ],
)
def test_a_wrong_jacobian_is_told_why(spoil, told):
    assert told in hint("softmax-2", spoil(torch_jacobian().numpy()))


# 3: the slope of the entropy in the temperature --------------------------------------------------------------------


def entropy_slope_by_torch(scores, tau):
    t = torch.tensor(float(tau), dtype=torch.float64, requires_grad=True)
    log_p = torch.log_softmax(torch.as_tensor(scores) / t, 0)
    entropy = -(log_p.exp() * log_p).sum()
    return torch.autograd.grad(entropy, t)[0].item()


def variance(scores, tau):
    p = torch.softmax(torch.as_tensor(scores) / tau, 0).numpy()
    return p @ (scores - p @ scores) ** 2


def test_the_slope_by_autograd_and_by_finite_difference_is_right():
    assert check("softmax-3", entropy_slope_by_torch).right

    def by_difference(scores, tau, step=1e-4):
        def entropy(t):
            return torch.distributions.Categorical(logits=torch.as_tensor(scores) / t).entropy().item()

        return (entropy(tau + step) - entropy(tau - step)) / (2 * step)

    assert np.isclose(by_difference(np.array([0.0, 1.0, 3.0]), 1.7), variance(np.array([0.0, 1.0, 3.0]), 1.7) / 1.7**3)
    assert check("softmax-3", lambda s, t: variance(s, t) / t**3).right


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (lambda s, t: -variance(s, t) / t**3, "sign is not"),
        (lambda s, t: variance(s, t) / t**2, "power of τ"),
        (lambda s, t: variance(s, t) / t, "power of τ"),
        (lambda s, t: -variance(s, t) / t, "dH/dβ"),
        (lambda s, t: -variance(s, t) / t**2, "power of τ and the sign"),
        (lambda s, t: s.var() / t**3, "not under equal weights"),
        (lambda s, t: math.sqrt(variance(s, t)) / t**3, "standard deviation"),
        (lambda s, t: torch.softmax(torch.as_tensor(s) / t, 0).numpy() @ s**2 / t**3, "mean square"),
        (lambda s, t: variance(s, t) / t**3 / math.log(2), "bits"),
        (lambda s, t: s.max() / t, "1 is added"),
        (lambda s, t: 1.0, "Start from"),
        (lambda s, t: s, "one number"),
        (lambda s, t: "steep", "one number"),
        (lambda s, t: None, "one number"),
        (lambda s: 1.0, "raised TypeError"),
        (3.0, "Hand in a function"),
        ("Var/tau^3", "Hand in a function"),
    ],
)
def test_a_wrong_slope_is_told_why(answer, told):
    assert told in hint("softmax-3", answer)


# 4: the logarithm of a softmax -------------------------------------------------------------------------------------


def log_softmax_by_torch(scores):
    return torch.log_softmax(torch.from_numpy(scores), dim=-1).numpy()


def shifted(scores, axis=-1, keepdims=True):
    moved = scores - scores.max(axis=axis, keepdims=keepdims)
    return moved - np.log(np.exp(moved).sum(axis=-1, keepdims=True))


def in_place(scores):
    scores -= scores.max(axis=-1, keepdims=True)
    scores -= np.log(np.exp(scores).sum(axis=-1, keepdims=True))
    return scores


def in_place_but_returned_whole(scores):
    result = shifted(scores)
    scores[:] = 0
    return result


def finite_only(scores):
    return np.where(np.isfinite(scores), shifted(np.maximum(scores, -1e9)), 0)


def test_torchs_log_softmax_is_right():
    assert check("softmax-4", log_softmax_by_torch).right
    assert check("softmax-4", shifted).right


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (lambda s: np.exp(shifted(s)), "asks for their logarithms"),
        (lambda s: shifted(s) / np.log(2), "base 2"),
        (lambda s: s - np.log(np.exp(s).sum(axis=0)), "columns"),
        (lambda s: s - np.log(np.exp(s).sum()), "whole array"),
        (lambda s: shifted(s[:, ::-1]), "not the softmax of its scores"),
        (lambda s: s, "must sum to 1"),
        (lambda s: s - np.log(np.exp(s).sum(axis=1, keepdims=True)), "overflow"),
        (lambda s: np.log(np.exp(shifted(s))), "before its logarithm"),
        (lambda s: s - s.max() - np.log(np.exp(s - s.max()).sum(axis=1, keepdims=True)), "its own shift"),
        (finite_only, "masked score"),
        (lambda s: shifted(s.astype(float)), "float32"),
        (in_place, "changes the array"),
        (in_place_but_returned_whole, "changes the array"),
        (lambda s: shifted(s)[0], "as many results"),
        (lambda s: None, "as many results"),
        (lambda s: "logs", "array of numbers"),
        (lambda: 1, "raised TypeError"),
        (np.zeros((2, 2)), "the function itself"),
    ],
)
def test_a_wrong_log_softmax_is_told_why(answer, told):
    assert told in hint("softmax-4", answer)


# 5: failing without infinity ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", [[-200, -201, -203], (-1e4, -1e4, -1e4), np.array([-150.0, -105, -120])])
def test_scores_that_underflow_are_right(answer):
    scores = torch.tensor(answer, dtype=torch.float32)
    assert scores.exp().sum() == 0 and torch.isfinite(torch.softmax(scores, 0)).all()
    assert check("softmax-5", answer).right


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ([1000, 1001, 1003], "overflows"),
        ([89, 0, 0], "overflows"),
        ([0, 1, 3], "still gives weights"),
        ([-200, -200, 0], "rounded to zero"),
        ([1e300, 0, 0], "infinite in float32"),
        ([-1e300] * 3, "infinite in float32"),
        ([-math.inf] * 3, "infinite"),
        ([-200, -200], "shape"),
        ("low", "numbers"),
    ],
)
def test_scores_that_do_not_fail_so_are_told_why(answer, told):
    assert told in hint("softmax-5", answer)
