"""The exercises of the chapter on a trained BERT from the inside."""

import math
import warnings

import numpy as np

from bertlib.exercises import Hint, exercise
from bertlib.exercises.answers import near, numbers


def _one_of(value: float, hints: tuple[tuple[float, str], ...]) -> None:
    """Raise the hint whose number the value is."""
    for wrong, hint in hints:
        if abs(value - wrong) <= 1e-3:
            raise Hint(hint)


def _one_number(answer, expected: str) -> float:
    if isinstance(answer, str | bytes | bool):
        raise Hint(f"That does not read as a number. Hand in {expected}.")
    return float(numbers(answer, (), expected))


@exercise("a-trained-bert-1")
def divergence_by_hand(answer) -> None:
    """JS / log 2 of (1/2, 1/2, 0) and (0, 1/2, 1/2)."""
    value = _one_number(answer, "the divergence over log 2, one number")
    if abs(value - 0.5) <= 1e-3:
        return
    _one_of(
        value,
        (
            (math.log(2) / 2, "That is in nats. Divide by log 2."),
            (math.sqrt(0.5), "That is the square root, which is a distance; the divergence is asked for."),
            (1.5, "That is the entropy of the mean alone. Two entropies are still to be taken off, half of each."),
            (1.5 * math.log(2), "That is the entropy of the mean, in nats. Two entropies are still to be taken off."),
            (-0.5, "Each entropy counts one half: they are averaged, not added. And a divergence is not negative."),
            (-0.5 * math.log(2), "Each entropy counts one half: they are averaged, not added."),
            (1.0, "One is the divergence of rows that share no token. These share the second one."),
            (0.0, "Zero is the divergence of equal rows."),
        ),
    )
    if not 0 <= value <= 1:
        raise Hint("Divided by log 2 the divergence lies between 0 and 1.")
    raise Hint("Three entropies: of the mean of the two rows, and of each row. 0 log 0 counts as 0.")


@exercise("a-trained-bert-2")
def chance_by_hand(answer) -> None:
    """The mean share right of leave-one-out nearest neighbour with 12 and 8 random labels."""
    value = _one_number(answer, "the share, one number or fraction")
    if abs(value - 47 / 95) <= 5e-4:
        return
    _one_of(
        value,
        (
            (0.5, "One half would need two senses equally frequent, and a neighbour that may be the sentence itself."),
            (0.52, "That lets a sentence be its own neighbour. It is left out: 19 others remain."),
            (11 / 19, "That is the share among the sentences of the first sense. The other sense has another."),
            (7 / 19, "That is the share among the sentences of the second sense. The other sense has another."),
            (9 / 19, "The two senses count by how many sentences they have, not alike."),
            (48 / 95, "That is the share guessed wrong."),
            (9.5 / 19, "Count, sense by sense, how many of the 19 others agree."),
            (0.6, "That would be the share of the commoner sense: nobody guesses by frequency here."),
            (12 / 19, "A sentence of the first sense has 11 others of its own sense, not 12."),
        ),
    )
    if not 0 <= value <= 1:
        raise Hint("A share lies between 0 and 1.")
    raise Hint("Take a sentence of each sense in turn: of the 19 others, how many agree with it?")


def _is_function(answer, expected: str) -> None:
    if not callable(answer):
        raise Hint(f"Hand in {expected}.")


@exercise("a-trained-bert-3")
def cosine_with_common_part(answer) -> None:
    """A function of ρ and c that gives the cosine of m + e_i and m + e_j."""
    expected = "a function of ρ and c that returns one number"
    _is_function(answer, expected)
    generator = np.random.default_rng(0)
    fits: dict[str, bool] = {}
    right = True
    for _ in range(20):
        rho, c = generator.uniform(0.05, 0.95), generator.uniform(-1, 1)
        value = _one_number(answer(rho, c), expected)
        right &= abs(value - _by_vectors(rho, c)) <= 1e-9
        for hint, wrong in (
            ("You have the roles of ρ and 1 - ρ exchanged.", (1 - rho) + rho * c),
            ("Two terms: the common part adds something of its own to the dot product.", (1 - rho) * c),
            ("Something is missing at the second term: the e's are shorter than the x's.", rho + c),
            ("That is c itself; at ρ near 1 all cosines must be near 1.", c),
            ("That is the way back, from the cosine of the x's to that of the e's.", (c - rho) / (1 - rho)),
            ("ρ is a ratio of squared lengths already; no square root and no square.", rho**2 + (1 - rho**2) * c),
            ("ρ is a ratio of squared lengths already; no square.", math.sqrt(rho) + (1 - math.sqrt(rho)) * c),
            ("You divided by the sum of squares twice, or left the denominator out.", rho + (1 - rho) ** 2 * c),
        ):
            fits[hint] = fits.get(hint, True) and abs(value - wrong) <= 1e-9
    if right:
        return
    for hint, fit in fits.items():
        if fit:
            raise Hint(hint)
    if abs(_one_number(answer(0.5, 1.0), expected) - 1) > 1e-9:
        raise Hint("For equal vectors, c = 1, the cosine must be 1.")
    if abs(_one_number(answer(0.0, 0.3), expected) - 0.3) > 1e-9:
        raise Hint("Without a common part, ρ = 0, the cosine must be c.")
    raise Hint("Write out the dot product of m + e_i and m + e_j, and the squared length; which terms vanish?")


def _by_vectors(rho: float, c: float) -> float:
    """The cosine from three-dimensional vectors themselves."""
    side = math.sqrt(1 - rho)
    x = np.array([math.sqrt(rho), side, 0])
    y = np.array([math.sqrt(rho), side * c, side * math.sqrt(1 - c * c)])
    return float(x @ y / math.sqrt((x @ x) * (y @ y)))


@exercise("a-trained-bert-4")
def another_row(answer) -> None:
    """A function (a, V) that gives other weights with the same output, one of them zero."""
    _is_function(answer, "a function of a and V that returns another row of weights")
    for name, a, values in _rows():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            given = answer(a.copy(), values.copy())
        b = numbers(given, a.shape, f"{len(a)} weights for a row of {len(a)}")
        if b.min() < -1e-12:
            raise Hint(f"With {name}: a weight is negative. How far may you go before the first one reaches zero?")
        if abs(b.sum() - 1) > 1e-8:
            if abs((b / b.sum() if b.sum() else b) @ values - a @ values).max() > 1e-8:
                raise Hint(f"With {name}: the weights no longer sum to 1. The direction must sum to zero as well.")
            raise Hint(f"With {name}: the weights do not sum to 1.")
        if not near(b @ values, a @ values, 1e-8 * max(1.0, float(np.abs(values).max()))):
            dropped = np.where(np.arange(len(a)) == a.argmin(), 0, a)
            if near(b, dropped / dropped.sum(), 1e-9):
                raise Hint(
                    "You left out the smallest weight and shared it out among the others. That moves the output."
                )
            raise Hint(f"With {name}: the output has moved. Along which directions does it stay?")
        if near(b, a, 1e-9):
            raise Hint(f"With {name}: that is the row itself. Another one is wanted.")
        if b.min() > 1e-12:
            raise Hint(f"With {name}: right so far, but no weight is zero yet. Go on until one is.")


def _rows():
    """Cases: general position, all values equal, values on a line, and one weight that is nearly all."""
    generator = np.random.default_rng(0)

    def weights(n):
        return generator.dirichlet(np.ones(n))

    yield "six values in the plane", weights(6), generator.normal(size=(6, 2))
    yield "as few tokens as possible", weights(5), generator.normal(size=(5, 3))
    yield "forty values in thirty-two dimensions", weights(40), generator.normal(size=(40, 32))
    yield "equal values", weights(5), np.ones((5, 2))
    yield "values on a line", weights(7), np.outer(generator.normal(size=7), [1.0, 2.0])
    sharp = np.full(6, 1e-3)
    sharp[2] = 1 - 5e-3
    yield "a sharp row", sharp, generator.normal(size=(6, 2))


def _right_by_cosine(vectors: np.ndarray) -> list[bool]:
    """For each of four vectors, two of each sense, whether its nearest by cosine shares its sense; ties are wrong."""
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = units @ units.T
    mates = [1, 0, 3, 2]
    found = []
    for i, mate in enumerate(mates):
        others = [j for j in range(4) if j not in (i, mate)]
        found.append(bool(cosines[i, mate] > cosines[i, others].max() + 1e-9))
    return found


def _wrong_by_cosine(vectors: np.ndarray) -> list[bool]:
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = units @ units.T
    mates = [1, 0, 3, 2]
    return [
        bool(cosines[i, [j for j in range(4) if j not in (i, mate)]].max() > cosines[i, mate] + 1e-9)
        for i, mate in enumerate(mates)
    ]


@exercise("a-trained-bert-5")
def mean_that_spoils(answer) -> None:
    """Four vectors of the plane that pass the examination as they are and fail it less their mean."""
    vectors = numbers(answer, (4, 2), "a list of four pairs of numbers, sense one first")
    if np.linalg.norm(vectors, axis=1).min() < 1e-9:
        raise Hint("The zero vector has no cosine with anything.")
    centred = vectors - vectors.mean(axis=0)
    size = np.linalg.norm(vectors, axis=1).max()
    if np.linalg.norm(centred, axis=1).min() < 1e-9 * size:
        raise Hint("A vector becomes zero when the mean is taken off, and has no cosine any more.")
    before, after = _right_by_cosine(vectors), _wrong_by_cosine(centred)
    if not all(before):
        raise Hint(f"As they are, {sum(before)} of the four are right. All four must be, without a tie.")
    if all(after):
        return
    lengths = np.linalg.norm(vectors, axis=1)
    if np.ptp(lengths) < 1e-6 * lengths.max():
        raise Hint("All four are equally long. What does the mean see that the cosine does not?")
    raise Hint(f"Less the mean, {sum(after)} of the four are wrong. All four must be, without a tie.")
