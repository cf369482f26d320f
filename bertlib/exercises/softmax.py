"""The exercises of the chapter on softmax and maximum entropy."""

import numpy as np

from bertlib.exercises import Hint, exercise
from bertlib.exercises.answers import near, numbers


@exercise("softmax-1")
def temperature_by_hand(answer) -> None:
    """A pair: the temperature, and the weights of the scores 0, 1, 2 whose mean score is 10/7."""
    expected = "a pair, the temperature and the list of three weights"
    try:
        temperature, weights = answer
    except (TypeError, ValueError):
        raise Hint(f"Hand in {expected}.") from None
    temperature = float(numbers(temperature, (), expected))
    weights = numbers(weights, (3,), expected)
    right = np.array([1, 2, 4]) / 7
    if not near(weights.sum(), 1, 2e-3):
        raise Hint(f"The weights sum to {weights.sum():.3f}. Divide by the sum Z.")
    if weights.min() <= 0:
        raise Hint(
            "Every weight must be positive. The quadratic has two roots, and an exponential is only one of them."
        )
    if not near(weights, right, 2e-3):
        if near(weights, right[::-1], 2e-3):
            raise Hint("The weights stand in the reverse order: check which token has the highest score.")
        if not near(weights @ [0, 1, 2], 10 / 7, 5e-3):
            raise Hint(f"The mean score of these weights is {weights @ [0, 1, 2]:.3f}, which is not 10/7.")
        raise Hint(
            "Sum and mean score are right, but the ratio of neighbouring weights must be the same at every step."
        )
    tau = 1 / np.log(2)
    if not near(temperature, tau, 5e-3):
        for wrong, hint in (
            (1 / tau, "The weights are right; the number you give is 1/τ."),
            (
                -tau,
                "The weights are right; the sign of the temperature is not. Is 10/7 above or below the plain average?",
            ),
            (
                2.0,
                "The weights are right. The ratio of two neighbouring weights is not the temperature: it is exp(1/τ).",
            ),
            (1.0, "The weights are right; the logarithm in τ is the natural one, not that to base 2."),
            (1 / np.log10(2), "The weights are right; the logarithm in τ is the natural one, not that to base 10."),
        ):
            if near(temperature, wrong, 5e-3):
                raise Hint(hint)
        raise Hint(
            "The weights are right, the temperature is not. What does the ratio of two neighbouring weights equal?"
        )


@exercise("softmax-2")
def jacobian_by_hand(answer) -> None:
    """The Jacobian of softmax(s/τ) in s at the weights (1/2, 1/4, 1/4) and τ = 2."""
    jacobian = numbers(answer, (3, 3), "the Jacobian, three rows of three numbers")
    p = np.array([1 / 2, 1 / 4, 1 / 4])
    right = (np.diag(p) - np.outer(p, p)) / 2
    if near(jacobian, right, 1e-3):
        return
    for wrong, hint in (
        (2 * right, "That is the Jacobian at τ = 1: the scores are divided by τ before they enter."),
        (4 * right, "You multiplied by τ. Which way does a higher temperature change the response?"),
        (-right, "The sign is turned round: a higher score must raise its own weight."),
        (np.diag(p) / 2, "A weight also moves when another score does: the entries off the diagonal are not zero."),
        (
            (np.diag(p) + np.outer(p, p)) / 2,
            "Each row must sum to zero, for adding the same number to all scores changes nothing.",
        ),
        (np.diag(np.diag(right)), "The diagonal is right; the entries off it are not zero."),
    ):
        if near(jacobian, wrong, 1e-3):
            raise Hint(hint)
    if not near(jacobian, jacobian.T, 1e-3):
        raise Hint("The Jacobian of softmax is symmetric; yours is not.")
    if not near(jacobian.sum(axis=1), 0, 1e-3):
        raise Hint("Each row must sum to zero, for adding the same number to all scores changes nothing.")
    raise Hint("Symmetric, and the rows sum to zero, but the entries are off. Write out one diagonal entry by itself.")


@exercise("softmax-3")
def slope_of_entropy(answer) -> None:
    """A function of (scores, tau) that returns dH/dτ for the weights softmax(scores / tau)."""
    if not callable(answer):
        raise Hint("Hand in a function of the scores and the temperature, without calling it.")
    rng = np.random.default_rng(11)
    points = [(rng.normal(size=n), tau) for n in (2, 3, 5, 8) for tau in (0.6, 1.7, -0.8, -2.5)]
    given, right, candidates = [], [], []
    for s, tau in points:
        p = np.exp(s / tau)
        p /= p.sum()
        variance = p @ (s - p @ s) ** 2
        given.append(float(numbers(answer(s.copy(), tau), (), "a function that returns one number")))
        right.append(variance / tau**3)
        candidates.append(
            [
                -variance / tau**3,
                variance / tau**2,
                variance / tau,
                -variance / tau,
                -variance / tau**2,
                s.var() / tau**3,
                np.sqrt(variance) / tau**3,
                (p @ s**2) / tau**3,
                variance / tau**3 / np.log(2),
            ]
        )
    given, right = np.array(given), np.array(right)
    if np.allclose(given, right, rtol=1e-5, atol=1e-8):
        return
    hints = (
        "The size is right and the sign is not: a positive temperature that rises evens out the weights.",
        "The variance is right, the power of τ is not: dH/dτ is dH/dβ times dβ/dτ, and both factors hold powers of τ.",
        "The variance is right, the power of τ is not: use the chain rule from β = 1/τ to τ.",
        "That is dH/dβ, the slope in β = 1/τ. One more factor takes it to the slope in τ.",
        "The variance is right, the power of τ and the sign are not: dH/dτ is dH/dβ times dβ/dτ.",
        "The variance is to be taken under the weights, not under equal weights.",
        "That has the standard deviation where the variance belongs.",
        "That is the mean square, not the variance: adding a constant to all scores must change nothing.",
        "That is the slope in bits. The book measures entropy in nats.",
    )
    for wrong, hint in zip(np.array(candidates).T, hints, strict=True):
        if np.allclose(given, wrong, rtol=1e-5, atol=1e-8):
            raise Hint(hint)
    s, tau = points[4]
    if abs(float(answer(s + 1, tau)) - float(answer(s.copy(), tau))) > 1e-8:
        raise Hint(
            "Your slope changes when 1 is added to all scores, which leaves the weights and their entropy alone."
        )
    raise Hint("Start from H = log Z − βc with β = 1/τ, find dH/dβ first, and remember that c depends on β too.")


@exercise("softmax-4")
def stable_log_softmax(answer) -> None:
    """A function of a two-dimensional array that returns log(softmax) of each row, however large the scores."""
    if not callable(answer):
        raise Hint("Hand in the function itself, without calling it.")
    with np.errstate(all="ignore"):
        _judge_log_softmax(answer)


def _judge_log_softmax(function) -> None:
    def value(scores):
        found = function(scores.copy())
        try:
            found = np.asarray(found, dtype=float)
        except (TypeError, ValueError):
            raise Hint("The function must return an array of numbers.") from None
        if found.shape != scores.shape:
            raise Hint(f"Scores of the shape {scores.shape} must give as many results, not {found.shape}.")
        return found

    mild = np.random.default_rng(12).normal(size=(4, 3))
    found, right = value(mild), _log_softmax(mild)
    if not np.allclose(found, right, atol=1e-9):
        if np.allclose(found, np.exp(right)):
            raise Hint("These are the weights; the exercise asks for their logarithms.")
        if np.allclose(found, right / np.log(2)):
            raise Hint("That is the logarithm to base 2; take the natural one.")
        if np.allclose(np.exp(found).sum(axis=0), 1):
            raise Hint("You normalised the columns; each row is a distribution.")
        if np.allclose(np.exp(found).sum(), 1):
            raise Hint("You normalised over the whole array; each row is a distribution of its own.")
        if np.allclose(np.exp(found).sum(axis=1), 1):
            raise Hint("The exponentials of each row sum to 1, but they are not the softmax of its scores.")
        raise Hint("The exponentials of a row must sum to 1, and already for small scores they do not.")
    if not np.allclose(value(np.array([[1e4, 1e4]])), -np.log(2)):
        raise Hint("Large scores overflow: exp(10000) is infinite. Use that a shift of the whole row changes nothing.")
    if not np.allclose(value(np.array([[1e4, 0.0]])), [[0, -1e4]]):
        raise Hint("A small weight becomes 0 before its logarithm is taken. Take the logarithm on paper first.")
    if not np.allclose(value(np.array([[-1e4, -1e4]])), -np.log(2)):
        raise Hint("Very negative scores fail: each row needs its own shift, by its own largest score.")
    if not np.allclose(value(np.array([[1e4, 0.0], [0.0, 1.0]])), _log_softmax(np.array([[1e4, 0.0], [0.0, 1.0]]))):
        raise Hint("A row with large scores spoils the row beneath it: each row needs its own shift.")
    masked = np.array([[0.0, -np.inf, 1.0]])
    if not np.allclose(value(masked), _log_softmax(masked)):
        raise Hint("A masked score of −∞ must give the logarithm −∞ and leave the others finite.")
    single = np.array([[1.0, 2.0]], dtype=np.float32)
    if np.asarray(function(single.copy())).dtype != np.float32:
        raise Hint("Scores in float32 must give results in float32.")
    kept = mild.copy()
    function(kept)
    if not np.array_equal(kept, mild):
        raise Hint("The function changes the array that it is given. Work on a new one.")


def _log_softmax(scores: np.ndarray) -> np.ndarray:
    return scores - np.logaddexp.reduce(scores, axis=-1, keepdims=True)


@exercise("softmax-5")
def failing_scores(answer) -> None:
    """Three finite scores for which the plain quotient fails in float32 although no exponential overflows."""
    scores = numbers(answer, (3,), "a list of three scores")
    with np.errstate(all="ignore"):
        scores = scores.astype(np.float32)
        exponentials = np.exp(scores)
        weights = exponentials / exponentials.sum()
    if not np.isfinite(scores).all():
        raise Hint("These scores are infinite in float32 already. Keep them finite.")
    if np.isinf(exponentials).any():
        raise Hint("An exponential overflows to infinity. Find a failure in which none does.")
    if not np.isnan(weights).any():
        if (weights == 0).any():
            raise Hint("One weight is rounded to zero, but the quotient is still a number. Go on in this direction.")
        raise Hint("The plain quotient still gives weights. Which other quotient of two numbers is not a number?")
