"""Checks for the exercises of the chapter "A worked example, number by number"."""

import math

import numpy as np
import sympy as sp

from bertlib.exercises import Hint, exercise

TOKENS = np.array([[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0], [1.0, 1.0, 0.0, 0.0]])
FOURTH = np.array([0.0, 0.0, 1.0, 1.0])
STEPS = 100  # how often the last exercise applies attention


def _weights(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def _numbers(answer, shape: tuple[int, ...], what: str) -> np.ndarray:
    """The answer as a finite array of this shape, or a hint that says what came instead."""
    if hasattr(answer, "detach"):  # a torch tensor, perhaps one that carries a gradient
        answer = answer.detach().cpu().numpy()
    try:
        array = np.array(answer, dtype=float)
    except (TypeError, ValueError) as error:
        raise Hint(f"Hand in {what}, as numbers.") from error
    if array.squeeze().shape == tuple(size for size in shape if size != 1):
        array = array.reshape(shape)  # a row or a column will do for a list
    if array.shape != shape:
        raise Hint(f"Hand in {what}; what came has the shape {array.shape}.")
    if not np.isfinite(array).all():
        raise Hint("There is something in it that is not a finite number.")
    return array


def _near(a, b, tolerance: float = 1e-3) -> bool:
    return bool(np.allclose(a, b, rtol=0, atol=tolerance))


@exercise("worked-example-1")
def _fourth_token(answer) -> None:
    tokens = np.vstack([TOKENS, FOURTH])
    scores = tokens @ FOURTH
    right = _weights(scores / 2)
    given = _numbers(answer, (4,), "the four weights of token 4")
    if _near(given, right):
        return
    if _near(given, right, 6e-3):
        raise Hint("Nearly: give at least three digits after the point.")
    if _near(given, _weights(scores)):
        raise Hint("These weights come from the raw scores: the division by the root of the width is missing.")
    if _near(given, scores) or _near(given, scores / 2):
        raise Hint("These are scores; the exponential and the division by the sum are still to come.")
    if _near(given, np.exp(scores / 2), 5e-3):
        raise Hint("These are the powers of e; they still have to be divided by their sum.")
    if _near(given, right @ tokens, 5e-3):
        raise Hint("These are the coordinates of output 4. The question is about its weights.")
    if _near(given, np.exp(scores / 2) / np.exp(scores[:3] / 2).sum(), 5e-3):
        raise Hint("The sum leaves out token 4. A token attends to itself too.")
    if abs(given.sum() - 1) > 5e-3:
        raise Hint(f"A row of weights sums to one; this one sums to {given.sum():.3f}.")
    if _near(np.sort(given), np.sort(right)):
        raise Hint(
            "The right four numbers in the wrong order: first the weight on token 1, last the weight on token 4."
        )
    raise Hint("Not these. Begin with the four dot products of token 4 with all tokens, itself included.")


@exercise("worked-example-2")
def _scale_of_two_thirds(answer) -> None:
    given = float(_numbers(answer, (), "one number, the scale"))
    right = math.log(1 + math.sqrt(3))
    if _near(given, right):
        return
    if _near(given, math.exp(right), 5e-3):
        raise Hint("That is the power of e that solves the equation; the scale is its exponent.")
    if _near(given, 2 * right, 3e-3):
        raise Hint("This multiplies the scores after they were halved. The scale multiplies the raw scores.")
    if _near(given, 1 / right, 2e-3):
        raise Hint("That is the temperature, one over the scale.")
    if _near(given, math.log(4), 2e-3):
        raise Hint(
            "At this scale token 3 keeps two thirds. The question is about token 1, whose two neighbours differ."
        )
    if _near(given, 1.0, 3e-3):
        raise Hint("Close, but at scale one the weight is not quite two thirds. Solve for the power of e, exactly.")
    kept = math.exp(2 * given) / (math.exp(2 * given) + math.exp(given) + 1) if abs(given) < 300 else float(given > 0)
    side = "too much: the scale is too large" if kept > 2 / 3 else "too little: the scale is too small"
    raise Hint(f"With this scale token 1 keeps {side}.")


@exercise("worked-example-3")
def _who_moves_less(answer) -> None:
    if isinstance(answer, sp.Poly):
        answer = answer.as_expr()
    if not isinstance(answer, sp.Expr):
        raise Hint("Hand in a sympy expression in one symbol, the polynomial itself and not a text or a number.")
    if len(answer.free_symbols) != 1:
        raise Hint(f"The polynomial has one unknown, t = exp(scale); this has {len(answer.free_symbols)}.")
    (t,) = answer.free_symbols
    given = sp.nsimplify(sp.together(sp.expand(answer)))
    if not given.is_polynomial(t):
        raise Hint("Not a polynomial yet: compare the squares of the two distances and multiply the denominators out.")
    right = t**4 - 2 * t**3 - 8 * t**2 - 12 * t - 6
    quotient = sp.cancel(given / right)
    if quotient.is_number and quotient != 0:
        if quotient > 0:
            return
        raise Hint("Right but for its sign: it has to be negative where token 3 moves less.")
    if sp.rem(given, right, t) == 0:
        raise Hint("The right polynomial is a factor of this one; divide out what is positive for every t.")
    share = sp.cancel(given / (t**2 - t))
    if share.is_number or sp.cancel(given / (t - 1)).is_number:
        raise Hint("This compares the weights that are given away. How far off the other tokens lie counts as well.")
    if sp.degree(given, t) > 4:
        raise Hint("The degree is too high. Something cancels, or is positive for every t and can be divided out.")
    raise Hint("Not this one. Write both distances as functions of t, square them, and subtract after multiplying out.")


def _pull(tokens: np.ndarray, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """The share of weight each token gives away, (n,), and the mean of the others that it moves towards, (n, d)."""
    scores = scale * tokens @ tokens.T
    others = scores.copy()
    np.fill_diagonal(others, -np.inf)
    off = _weights(scores)
    np.fill_diagonal(off, 0.0)
    return off.sum(axis=1), _weights(others) @ tokens


def _pull_inputs() -> list[tuple[str, np.ndarray, float]]:
    return [
        ("the three tokens of the chapter at scale 1/2", TOKENS, 0.5),
        ("the three tokens of the chapter at scale 1", TOKENS, 1.0),
        ("five random tokens of width three", np.random.default_rng(5).normal(size=(5, 3)), 0.7),
        ("two tokens", TOKENS[:2], 0.5),
        ("two equal tokens", np.ones((2, 3)), 0.5),
        ("three tokens ten times as long", 10 * TOKENS, 0.5),  # gives away about 1e-22
        ("three tokens forty times as long", 40 * TOKENS, 0.5),  # nothing, and powers overflow
    ]


@exercise("worked-example-4")
def _pull_of_the_others(answer) -> None:
    if not callable(answer):
        raise Hint("Hand in the function itself: check(name, pull), without calling it.")
    for what, tokens, scale in _pull_inputs():
        handed = tokens.copy()
        with np.errstate(all="ignore"):
            result = answer(handed, scale)
        if not np.array_equal(handed, tokens):
            raise Hint("The function changes the tokens it was given. Work on a copy.")
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise Hint("The function returns two things: the shares given away and the points moved towards.")
        n, width = tokens.shape
        try:
            share = np.array(result[0], dtype=float)
            target = np.array(result[1], dtype=float)
        except (TypeError, ValueError) as error:
            raise Hint("Both results have to be arrays of numbers.") from error
        if share.shape != (n,) or target.shape != (n, width):
            raise Hint(
                f"For {n} tokens of width {width} the shapes are ({n},) and ({n}, {width}), "
                f"not {share.shape} and {target.shape}."
            )
        _judge_pull(what, tokens, scale, share, target)


def _judge_pull(what: str, tokens: np.ndarray, scale: float, share: np.ndarray, target: np.ndarray) -> None:
    right_share, right_target = _pull(tokens, scale)
    if not (np.isfinite(share).all() and np.isfinite(target).all()):
        raise Hint(
            f"Not finite for {what}. There a token keeps all its weight to the last bit, or the powers overflow: "
            "weigh the others among themselves, without dividing by what was given away."
        )
    exact_share = np.allclose(share, right_share, rtol=1e-6, atol=0)
    if exact_share and _near(target, right_target, 1e-6):
        return
    if not exact_share and _near(share, right_share, 1e-9) and _near(target, right_target, 1e-6):
        raise Hint(f"The share is lost in rounding for {what}: add up what the others get.")
    if _near(share, 1 - right_share, 1e-9) and not _near(share, right_share, 1e-9):
        raise Hint("The share is what a token keeps; asked is what it gives away.")
    if scale != 1 and _near(share, _pull(tokens, 1.0)[0], 1e-9):
        raise Hint(f"For {what} the scale was left out.")
    if scale != 0.5 and _near(share, _pull(tokens, 0.5)[0], 1e-9):
        raise Hint(f"For {what} the function uses scale 1/2, whatever it is given.")
    if _near(target, tokens + right_share[:, None] * (right_target - tokens), 1e-9):
        raise Hint("The second result is the output. Asked is the mean of the others alone, towards which it moves.")
    if _near(target, right_share[:, None] * right_target, 1e-9):
        raise Hint("The weights of the others do not sum to one yet, so their average is too short.")
    if _near(share, right_share, 1e-9):
        raise Hint(f"The shares are right for {what}, the points moved towards are not.")
    raise Hint(f"Not right for {what}.")


def _closest(tokens: np.ndarray) -> float:
    """The smallest distance between two of the three tokens."""
    return min(float(np.linalg.norm(tokens[i] - tokens[j])) for i, j in ((0, 1), (0, 2), (1, 2)))


@exercise("worked-example-5")
def _stay_apart(answer) -> None:
    tokens = _numbers(answer, (3, 4), "three tokens of width four, an array (3, 4)")
    if np.abs(tokens).max() > 10:
        raise Hint("No entry may be larger in size than ten.")
    if _closest(tokens) < 1:
        raise Hint("Two of the tokens are less than one apart from the start.")
    for step in range(1, STEPS + 1):
        tokens = _weights(tokens @ tokens.T / 2) @ tokens
        if _closest(tokens) < 1:
            raise Hint(
                f"After {step} application(s) two tokens are less than one apart. What keeps a token where it is?"
            )
