"""The exercises of the chapter on words as points."""

import math
from collections.abc import Callable

import numpy as np

from bertlib.exercises import Hint, exercise
from bertlib.exercises.answers import near, numbers


def _number(answer, expected: str) -> float:
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


@exercise("words-as-points-1")
def fraction_of_the_way(answer) -> None:
    """t = (b - a) · (d - c) / |d - c|² for four points of the plane."""
    t = _number(answer, "t, one number or fraction")
    if math.isclose(t, 3 / 5, abs_tol=2e-3):
        return
    for wrong, hint in (
        (6 / 5, "That is the dot product of step and way. A fraction of the way divides by the way's length, squared."),
        (6 / 5 / math.sqrt(2), "Divide by the squared length of the way, not by its length."),
        (-3 / 5, "The right size with the wrong sign: the way leads from c to d, the step from a to b."),
        (4 / 5, "One of the two products has the wrong sign: take care with the negative numbers."),
        (5 / 3, "That is the other way round: the way's squared length belongs in the denominator."),
        (1.0, "That would be a parallelogram. Is b - a equal to d - c?"),
        (0.5, "That would be the border between c and d. Compute the dot product and the squared length."),
        (-4 / 5, "Check the signs: both the step and the way have a negative first number."),
    ):
        if math.isclose(t, wrong, abs_tol=2e-3):
            raise Hint(hint)
    raise Hint("Not that. Write down the step b - a and the way d - c first, each as two numbers.")


@exercise("words-as-points-2")
def shared_direction(answer) -> None:
    """(|mean|, mean |x - mean|², mean dot product of centred rows) from E|x|² = 25 and E[x · y] = 9."""
    given = numbers(answer, (3,), "three numbers: a length, a squared length, a dot product")
    length, squared, dot = given
    if near(given, (3, 16, 0), 1e-6):
        return
    for wrong, hint in (
        (9, "The first number is a squared length. The length was asked for."),
        (5, "The first number is the typical length of a row, not of the mean vector."),
        (3 / 5, "The first number is a share of a row's length. The length itself was asked for."),
    ):
        if math.isclose(length, wrong, abs_tol=1e-6):
            raise Hint(hint)
    if not math.isclose(length, 3, abs_tol=1e-6):
        raise Hint("The first number is off. What is E[x · y] when x and y are independent?")
    for wrong, hint in (
        (4, "The second number is a length, or a difference of lengths. The mean squared length was asked for."),
        (2, "Lengths cannot be subtracted; their squares can, when a cross term is taken care of."),
        (34, "Taking the mean off makes rows shorter: look at the sign of the cross term."),
        (25, "Taking off the mean changes the lengths. Expand |x - m|²."),
        (22, "Subtract the squared length of the mean vector, not its length."),
        (7, "The cross term is -2 m · x, whose mean is -2 |m|²; then |m|² comes back."),
    ):
        if math.isclose(squared, wrong, abs_tol=1e-6):
            raise Hint(hint)
    if not math.isclose(squared, 16, abs_tol=1e-6):
        raise Hint("The second number is off. Expand |x - m|² and take the mean of each term.")
    raise Hint(f"The third number is not {dot:.3g}. What is the mean of a centred row?")


@exercise("words-as-points-3")
def only_rectangles(answer) -> None:
    """A function of p = (b - a) · (c - a) that returns |b - a + c|² for unit vectors a, b, c."""
    function = _function_of_p(answer)
    rng = np.random.default_rng(0)
    wrong = {
        "root": (lambda p: math.sqrt(max(1 + 2 * p, 0)), "That is the length; its square was asked for."),
        "once": (lambda p: 1 + p, "Nearly: in |s + r|² the product s · r stands twice."),
        "minus": (lambda p: 1 - 2 * p, "The sign of p is wrong. Test it with b = c, where b - a + c = 2b - a."),
        "three": (lambda p: 3 + 2 * p, "Three unit vectors have more products than one: a · b and a · c are not zero."),
        "three alone": (lambda p: 3.0, "That would be right if a, b and c were at right angles to each other."),
        "one": (lambda p: 1.0, "That would make every d a unit vector. Take a = -b = -c: is 2b - a of length 1?"),
        "bare": (lambda p: 2 * p, "At p = 0 the four points form a rectangle. How long is the fourth then?"),
    }
    fits = dict.fromkeys(wrong, True)
    right = True
    for d in (1, 2, 3, 10, 10, 10):
        a, b, c = rng.standard_normal((3, d))
        a, b, c = (x / np.linalg.norm(x) for x in (a, b, c))
        p, expected = float((b - a) @ (c - a)), float(np.sum((b - a + c) ** 2))
        value = _number(function(p), "a function of p that returns one number")
        right &= math.isclose(value, expected, rel_tol=1e-9, abs_tol=1e-9)
        for name, (formula, _) in wrong.items():
            fits[name] &= math.isclose(value, formula(p), rel_tol=1e-9, abs_tol=1e-9)
    if right:
        return
    for name, (_, hint) in wrong.items():
        if fits[name]:
            raise Hint(hint)
    raise Hint("That fails for random unit vectors. Put b = a + s and c = a + r, and use |a + s| = |a + r| = 1.")


def _function_of_p(answer) -> Callable:
    expected = "a function of p, or a sympy expression in one symbol"
    symbols = list(getattr(answer, "free_symbols", ()))
    if symbols and hasattr(answer, "subs"):
        if len(symbols) > 1:
            names = ", ".join(sorted(map(str, symbols)))
            raise Hint(f"Your expression has the symbols {names}; it should depend on p alone.")
        return lambda p: answer.subs(dict.fromkeys(symbols, p))
    if not callable(answer):
        raise Hint(f"Hand in {expected}.")
    return answer


@exercise("words-as-points-4")
def trusted_solver(answer) -> None:
    """A function (table, a, b, c) that solves an analogy by cosine, the three inputs left out."""
    if not callable(answer):
        raise Hint("Hand in a function of table, a, b and c, without calling it.")
    for name, table, given in _solver_cases():
        before = table.copy()
        row = _row_number(answer(table, *given))
        if not np.array_equal(table, before):
            raise Hint("Your function changes the table. Work on a copy.")
        best, unscaled, dotted, inside = _by_loops(table, given)
        if row == best:
            continue
        if row in given:
            if name == "negative":
                raise Hint(
                    "Where all others point away, an input came out. Is 0 low enough, or -1, for what is left out?"
                )
            raise Hint("One of the three inputs came out. They are to be left out of the search.")
        if not 0 <= row < len(table):
            raise Hint(f"There is no row {row}; the table has {len(table)} rows, counted from 0.")
        if not np.any(before[row]):
            raise Hint("The row of zeros came out. It has no direction, hence no cosine, and is never an answer.")
        if row == dotted and name == "long rows":
            raise Hint("A long row came out that points elsewhere: that is the dot product, not the cosine.")
        if row == unscaled:
            raise Hint("The inputs must be scaled to length 1 before they are added and subtracted.")
        if row == inside:
            raise Hint("That is the answer to c - b + a or another order. The sum is b - a + c.")
        raise Hint(f"Wrong in the case of {name}: row {row} has a smaller cosine than another.")


def _row_number(answer) -> int:
    if isinstance(answer, bool | str | bytes) or answer is None:
        raise Hint("Your function should return one row number.")
    array = np.asarray(answer)
    if array.size != 1 or array.dtype.kind not in "iu":
        raise Hint("Your function should return one row number, a whole number, not a vector or a score.")
    return int(array.reshape(()))


def _solver_cases():
    rng = np.random.default_rng(0)
    table = rng.standard_normal((60, 8))
    for given in ((3, 10, 20), (41, 7, 7), (5, 5, 8), (12, 1, 12)):
        yield "an ordinary table", table.copy(), given
    yield "single precision", table.astype(np.float32), (3, 10, 20)
    long_rows = rng.standard_normal((60, 8)) * np.exp(1.5 * rng.standard_normal((60, 1)))
    for given in ((0, 1, 2), (9, 30, 33), (17, 4, 50)):
        yield "long rows", long_rows.copy(), given
    yield "negative", np.array([[1.0, 0.1], [1, -0.1], [1, 0], [-1, 0.2], [-1, 1.5], [-2, 0]]), (0, 1, 2)
    yield "negative", np.array([[-1.0, 0], [1, 0.1], [1, -0.1], [-1, 0.2], [-1, -0.5], [-3, 1]]), (0, 1, 2)
    zeros = np.array([[1.0, 0.1], [1, -0.1], [1, 0], [0, 0], [-1, 1.5], [-2, 0]])
    yield "a row of zeros", zeros, (0, 1, 2)


def _by_loops(table, given) -> tuple[int, int, int, int]:
    """The right row, and those of three typical mistakes, computed row by row."""
    rows = [[float(x) for x in r] for r in table]

    def scaled(r):
        length = math.sqrt(sum(x * x for x in r))
        return [x / length for x in r] if length else r

    def best(target, candidates):
        scores = {
            i: sum(x * y for x, y in zip(r, target, strict=True))
            for i, r in enumerate(candidates)
            if i not in given and any(r)
        }
        return max(scores, key=scores.get)

    def combine(source, i, j, k):
        return [x - y + z for x, y, z in zip(source[i], source[j], source[k], strict=True)]

    a, b, c = given
    units = [scaled(r) for r in rows]
    target = combine(units, b, a, c)
    return (
        best(target, units),
        best(combine(rows, b, a, c), units),
        best(target, rows),
        best(combine(units, a, b, c), units),
    )


@exercise("words-as-points-5")
def move_the_origin(answer) -> None:
    """Points x, y, z and a shift m after which the cosine prefers z, though y is nearer."""
    given = numbers(answer, (4, 2), "four pairs of numbers: x, y, z and the shift m")
    points, shift = given[:3], given[3]
    if np.abs(given).max() > 1e6:
        raise Hint("Use numbers below a million, so that rounding decides nothing.")
    moved = points + shift
    for when, (x, y, z) in (("before", points), ("after", moved)):
        if min(np.linalg.norm(v) for v in (x, y, z)) < 1e-6:
            raise Hint(f"A point lies at the origin {when} the shift, where it has no direction and no cosine.")
    x, y, z = points
    if np.linalg.norm(x - y) > np.linalg.norm(x - z) - 1e-6:
        raise Hint("By distance y must be nearer to x than z is; the shift does not change that.")
    first, second = _cosine(x, y) - _cosine(x, z), _cosine(*moved[:2]) - _cosine(moved[0], moved[2])
    if first < 1e-6:
        raise Hint("Before the shift the cosine of x with y must be larger than with z.")
    if np.abs(shift).max() < 1e-6:
        raise Hint("The shift is zero: nothing moves.")
    if second > -1e-6:
        raise Hint("After the shift the cosine still prefers y. From where must one look, so that x and z are in line?")


def _cosine(x, y) -> float:
    return float(x @ y / (np.linalg.norm(x) * np.linalg.norm(y)))
