"""The exercises of the chapter on the scaling factor."""

import math
from collections.abc import Callable

import numpy as np

from bertlib.exercises import Hint, exercise


def _number(answer, expected: str) -> float:
    """The answer as one finite number; `expected` says what to hand in."""
    if isinstance(answer, str | bytes | bool) or answer is None:
        raise Hint(f"That does not read as a number. Hand in {expected}.")
    try:
        array = np.asarray(answer, dtype=float)
    except (TypeError, ValueError):
        raise Hint(f"That does not read as a number. Hand in {expected}.") from None
    if array.size != 1:
        raise Hint(f"That has the shape {array.shape}. Hand in {expected}.")
    number = float(array.reshape(()))
    if not math.isfinite(number):
        raise Hint(f"That is infinite or not a number. Hand in {expected}.")
    return number


def _compare(answer: float, right: float, hints: tuple[tuple[float, str], ...], otherwise: str) -> None:
    if math.isclose(answer, right, rel_tol=2e-3):
        return
    for wrong, hint in hints:
        if math.isclose(answer, wrong, rel_tol=2e-3):
            raise Hint(hint)
    raise Hint(otherwise)


@exercise("scaling-1")
def score_with_means(answer) -> None:
    """The variance of q·k at d_k = 64, q uniform on (0, 1) and k = ±1 with P(1) = 3/4."""
    answer = _number(answer, "the variance, one number or fraction")
    right = 52 / 3
    _compare(
        answer,
        right,
        (
            (4.0, "That is the product of the variances, 64 times. The means are not zero and add two more parts."),
            (64 / 3, "That is the mean square of one product, 64 times. A variance also subtracts the squared mean."),
            (right / 64, "That is the variance of one product. The score is a sum of 64 of them."),
            (math.sqrt(right), "That is the standard deviation."),
            (16.0, "That is the mean of the score, and also what the variance is without the part μ_k² σ_q²."),
            (
                right / 8,
                "Scaling by √64 divides the variance by 64, not by 8; and the question is about the raw score.",
            ),
            (64.0, "That would be right for means 0 and variances 1. Start with the moments of each component."),
            (16 / 3, "One of the parts that come from the means is missing: the one with the mean of q."),
            (40 / 3, "The part with both variances is missing."),
            (68 / 3, "Check the variance of the key's component: its mean square is 1, and its mean is not 0."),
        ),
        "Not that. You need four moments, mean and variance of each kind of component, and then the first theorem.",
    )


@exercise("scaling-2")
def bert_large(answer) -> None:
    """The variance of a scaled score of a freshly initialised BERT-large."""
    answer = _number(answer, "the variance, one number or fraction")
    component = 1024 / 2500
    _compare(
        answer,
        component**2,
        (
            (component, "That is the variance of a component of q."),
            (64 * component**2, "That is the raw score. The division by √64 is still to come."),
            (8 * component**2, "You divided the variance by √64. Dividing a score by c divides its variance by c²."),
            (
                component**2 / 64,
                "You divided once too often: the sum of 64 products multiplies the variance by 64 first.",
            ),
            ((768 / 2500) ** 2, "That is BERT-base. How long is a layer-normalised vector of width 1024?"),
            (
                (64 / 2500) ** 2,
                "A component of q is a sum over the whole width of the token, not over the width of the head.",
            ),
            (1.0, "That would need weights of standard deviation 1/32."),
            ((1024 / 50) ** 2, "Square the standard deviation of the weights to get their variance."),
        ),
        "Not that. Go step by step: a component of q, then a raw score, then the division.",
    )


@exercise("scaling-3")
def response_of_a_weight(answer) -> None:
    """R(p) = Σ_j |∂p_i/∂s_j| as a function of p_i, or as a sympy expression in one symbol."""
    function = _function_of_one(answer)
    rng = np.random.default_rng(0)
    wrong = {
        "diagonal": "That is the response to the weight's own score alone. The other scores move it as well.",
        "others": "That is the response to the other scores alone. The weight's own score moves it as well.",
        "signed": "Added with their signs the entries of a row cancel. Take absolute values first.",
        "squares": "Those are squares: the question asks for the sum of absolute values.",
    }
    fits = dict.fromkeys(wrong, True)
    right = True
    for n in (2, 3, 7, 40):
        weights = np.exp(2 * rng.standard_normal(n))
        weights /= weights.sum()
        jacobian = np.diag(weights) - np.outer(weights, weights)
        for i in range(min(n, 3)):
            value = _number(function(float(weights[i])), "a function that returns one number")
            row = jacobian[i]
            right &= math.isclose(value, np.abs(row).sum(), rel_tol=1e-6, abs_tol=1e-9)
            for name, other in (
                ("diagonal", row[i]),
                ("others", np.abs(row).sum() - row[i]),
                ("signed", 0.0),
                ("squares", (row**2).sum()),
            ):
                fits[name] &= math.isclose(value, other, rel_tol=1e-6, abs_tol=1e-9)
    if right:
        return
    # "diagonal" and "others" agree by the theorem itself, so the first of them speaks for both.
    for name, hint in wrong.items():
        if fits[name]:
            raise Hint(hint)
    half = _number(function(0.5), "a function that returns one number")
    if not math.isclose(half, 0.5, rel_tol=1e-6):
        raise Hint(f"At p = 1/2 your formula gives {half:.3g}. Write out the case of two tokens and compare.")
    raise Hint(
        "Right at p = 1/2, but not elsewhere. Take the entries off the diagonal together: what do the others sum to?"
    )


def _function_of_one(answer) -> Callable:
    expected = "a function of p, or a sympy expression in one symbol"
    if hasattr(answer, "free_symbols"):
        symbols = list(answer.free_symbols)
        if len(symbols) > 1:
            names = ", ".join(sorted(map(str, symbols)))
            raise Hint(f"Your expression has the symbols {names}; it should depend on one weight alone.")
        if not hasattr(answer, "subs"):
            raise Hint(f"Hand in {expected}.")
        return lambda p: answer.subs(dict.fromkeys(symbols, p))
    if not callable(answer):
        raise Hint(f"Hand in {expected}.")
    return answer


@exercise("scaling-4")
def variance_of_any_score(answer) -> None:
    """A function (mean_q, cov_q, mean_k, cov_k) that returns Var(q·k) for independent q and k."""
    if not callable(answer):
        raise Hint("Hand in a function of mean_q, cov_q, mean_k and cov_k, without calling it.")
    for name, case in _moments().items():
        before = [array.copy() for array in case]
        given = _number(answer(*(array.copy() for array in case)), "a function that returns one number")
        right = _by_second_moments(*before)
        if math.isclose(given, right, rel_tol=1e-8, abs_tol=1e-10):
            continue
        raise Hint(_which_part(given, *before) or f"Wrong in the case of {name}.")


def _moments() -> dict[str, tuple]:
    rng = np.random.default_rng(1)

    def covariance(size):
        root = rng.standard_normal((size, size))
        return root @ root.T

    def zeros(size):
        return np.zeros(size)

    eye = np.eye(64)
    return {
        "independent components at width 64": (zeros(64), eye, zeros(64), eye),
        "correlated components without means": (zeros(5), covariance(5), zeros(5), covariance(5)),
        "correlated components with means": (
            rng.standard_normal(4),
            covariance(4),
            rng.standard_normal(4),
            covariance(4),
        ),
        "width 1": (np.array([2.0]), np.array([[0.5]]), np.array([-1.0]), np.array([[3.0]])),
        "a key that is always the same": (
            rng.standard_normal(3),
            covariance(3),
            rng.standard_normal(3),
            np.zeros((3, 3)),
        ),
    }


def _by_second_moments(mean_q, cov_q, mean_k, cov_k) -> float:
    """Var(q·k) as Σ_ij E[q_i q_j] E[k_i k_j] − (E[q]·E[k])², a road that the chapter does not take."""
    second_q = cov_q + np.outer(mean_q, mean_q)
    second_k = cov_k + np.outer(mean_k, mean_k)
    return float(np.einsum("ij,ij->", second_q, second_k) - (mean_q @ mean_k) ** 2)


def _which_part(given, mean_q, cov_q, mean_k, cov_k) -> str:
    trace = np.einsum("ij,ji->", cov_q, cov_k)
    crossed = mean_q @ cov_k @ mean_q + mean_k @ cov_q @ mean_k
    variances = np.diag(cov_q) @ np.diag(cov_k)
    right = trace + crossed
    for wrong, hint in (
        (math.sqrt(max(right, 0)), "That is the standard deviation."),
        (np.trace(cov_q) * np.trace(cov_k) + crossed, "The trace of a product is not the product of the traces."),
        (np.trace(cov_q) * np.trace(cov_k), "The trace of a product is not the product of the traces."),
        (trace, "The parts that come from the means are missing."),
        (
            trace + mean_q @ cov_q @ mean_q + mean_k @ cov_k @ mean_k,
            "Each mean goes with the other vector's covariance.",
        ),
        (variances + crossed, "You used the diagonals alone: that is the case of uncorrelated components."),
        (variances, "You used the diagonals alone: that is the case of uncorrelated components without means."),
        (right + (mean_q @ mean_k) ** 2, "That is the mean square. A variance subtracts the square of the mean."),
        (right / len(mean_q), "You divided by the width; the question is about the raw score."),
        (trace + mean_q @ cov_k @ mean_q, "One of the two parts that come from the means is missing."),
        (trace + mean_k @ cov_q @ mean_k, "One of the two parts that come from the means is missing."),
    ):
        if math.isclose(given, wrong, rel_tol=1e-8, abs_tol=1e-10):
            return hint
    return ""


@exercise("scaling-5")
def dead_in_single_precision(answer) -> None:
    """Three finite scores with a softmax Jacobian that is zero in float32 and not in float64."""
    import torch  # only this exercise needs it

    expected = "a list of three finite numbers"
    if isinstance(answer, str | bytes | dict | set) or answer is None:
        raise Hint(f"Hand in {expected}.")
    try:
        scores = np.array(answer, dtype=float)
    except (TypeError, ValueError):
        raise Hint(f"Hand in {expected}.") from None
    if scores.shape != (3,):
        raise Hint(f"That has the shape {scores.shape}. Hand in {expected}.")
    if not np.isfinite(scores).all() or np.abs(scores).max() > np.finfo(np.float32).max:
        raise Hint("The scores must be finite, in float32 too: a masked token is another matter.")

    def jacobian(dtype):
        row = torch.from_numpy(scores).to(dtype)
        return torch.autograd.functional.jacobian(lambda s: s.softmax(-1), row)

    single, double = jacobian(torch.float32).abs().max().item(), jacobian(torch.float64).abs().max().item()
    if single > 0:
        if len(set(scores)) == 1:
            raise Hint(
                "Equal scores give equal weights, whose gradient is far from zero. Softmax sees only differences."
            )
        if np.diff(np.sort(scores))[-1] < 1:
            raise Hint(
                "The two highest scores are nearly equal, so their two tokens share the weight and both can move."
            )
        raise Hint(f"In float32 the largest entry is still {single:.2g}. How small a number can float32 hold?")
    if double == 0:
        raise Hint("In float64 the Jacobian is zero as well: you went too far. Look for what only float64 can hold.")
