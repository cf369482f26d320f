"""The exercises on position: bags of tokens, clocks, fair weights, rotary scores, a blind spot of causal masks."""

import math
from itertools import permutations

import numpy as np

from bertlib.exercises import Hint, exercise
from bertlib.exercises.answers import near, numbers


@exercise("position-1")
def orders_and_outputs(answer) -> None:
    """Orders of nine words of which two stand twice, and the different outputs that they can have without positions."""
    orders, outputs = numbers(answer, (2,), "two numbers: the orders, and the different output vectors")
    right_orders, right_outputs = math.factorial(9) // 4, 7
    if (orders, outputs) == (right_orders, right_outputs):
        return
    if (orders, outputs) == (right_outputs, right_orders):
        raise Hint("Both numbers are right, in the wrong order: the orders come first.")
    if orders != right_orders:
        for wrong, hint in (
            (
                math.factorial(9),
                "Exchanging the two 'the', or the two 'in', gives the same order: you counted it twice.",
            ),
            (math.factorial(9) // 2, "Two words stand twice; you took account of one of them."),
            (
                math.factorial(9) // math.factorial(4),
                "The two pairs exchange each on its own, not all four words freely.",
            ),
            (math.factorial(7), "The second 'the' and the second 'in' take up places too: nine places are filled."),
            (
                9**9 // 4,
                "Each word is used as often as it stands in the sentence: orders, not choices with repetition.",
            ),
        ):
            if orders == wrong:
                raise Hint(hint)
        raise Hint("The number of orders is off: count the orders of nine different words first, then what coincides.")
    if outputs == 9:
        raise Hint("The orders are right. Are nine outputs really different? Two of the words stand twice.")
    if outputs == right_orders or outputs == 9 * right_orders:
        raise Hint("The orders are right. But the outputs follow their tokens: another order makes no new vector.")
    if outputs == 1:
        raise Hint("The orders are right. There is one bag of outputs, but more than one vector in it.")
    raise Hint("The orders are right. Which tokens must have equal outputs, and does the order matter to them?")


@exercise("position-2")
def two_clocks(answer) -> None:
    """The inner products of two sinusoidal places k = 0, 1, 2, 3 apart, with frequencies pi/2 and pi/6."""
    products = numbers(answer, (4,), "four numbers, for k = 0, 1, 2, 3")
    k = np.arange(4)
    fast, slow = np.cos(k * np.pi / 2), np.cos(k * np.pi / 6)
    if near(products, fast + slow, 5e-3):
        return
    for wrong, hint in (
        (fast, "You have the pair of frequency π/2 alone; the inner product sums over both pairs."),
        (slow, "You have the pair of frequency π/6 alone; the inner product sums over both pairs."),
        ((fast + slow) / 2, "That is the mean over the two pairs; the inner product is their sum."),
        (fast * slow, "You multiplied the two cosines. An inner product adds what the pairs contribute."),
        (
            np.sin(k * np.pi / 2) + np.sin(k * np.pi / 6),
            "Sines: but at k = 0 a vector meets itself. Which is its length?",
        ),
        ((fast + slow)[::-1], "The numbers are right, in the wrong order: begin with k = 0."),
        (np.cos(k / 2) + np.cos(k / 6), "The frequencies are π/2 and π/6 a place; where is your π?"),
        (
            np.cos(np.radians(k * np.pi / 2)) + np.cos(np.radians(k * np.pi / 6)),
            "Your cosine took radians for degrees.",
        ),
        ((fast + slow) / np.sqrt(2), "You divided by the length once; the inner product itself is asked for."),
    ):
        if near(products, wrong, 5e-3):
            raise Hint(hint)
    if abs(products[0] - 2) > 5e-3:
        raise Hint("At k = 0 each pair contributes cos² + sin².")
    raise Hint("For k = 0 it is right. Each pair contributes the cosine of its frequency times k.")


def _is_function(answer, expected: str) -> None:
    if not callable(answer):
        raise Hint(f"Hand in {expected}.")


def _average_over_all(table: np.ndarray) -> np.ndarray:
    """The mean over all permutations, one after the other."""
    return np.mean([table[np.ix_(order, order)] for order in permutations(range(len(table)))], axis=0)


@exercise("position-3")
def fair_weights(answer) -> None:
    """A function of a square T that gives the mean of P^T T P over all permutations P."""
    _is_function(answer, "a function of the matrix T that returns the mean")
    generator = np.random.default_rng(0)
    for n in (3, 2, 5, 1):
        table = generator.normal(size=(n, n))
        mean = numbers(answer(table.copy()), (n, n), f"a matrix of {n} rows for a T of {n} rows")
        right = _average_over_all(table)
        if near(mean, right, 1e-9):
            continue
        trace, total = np.trace(table), table.sum()
        same = np.eye(n, dtype=bool)
        rest = (total - trace) / max(n * (n - 1), 1)
        for wrong, hint in (
            (
                np.full((n, n), total / n**2),
                "You averaged all entries together. Can a permutation bring (1, 1) to (1, 2)?",
            ),
            (np.where(same, trace / n, 0), "The diagonal is right. Off it the mean is not zero."),
            (np.where(same, np.diag(table), rest), "Off the diagonal it is right; the diagonal is averaged too."),
            (np.where(same, trace / n, table), "The diagonal is right; what is off it is averaged too."),
            ((table + table.T) / 2, "That is the mean over T and its transpose, not over all permutations."),
            (np.where(same, trace / n, (total - trace) / n**2), "Off the diagonal: how many entries are there?"),
            (
                np.where(same, trace / n, (total - trace) / max(n * n - 1, 1)),
                "Off the diagonal: how many entries are there?",
            ),
            (np.where(same, trace, total - trace), "These are sums; you want means."),
            (table, "That is T itself: it is one of the n! matrices and not their mean."),
            (
                np.diag(table.mean(axis=0)),
                "A mean over rows treats columns apart, and a permutation exchanges them too.",
            ),
        ):
            if near(mean, wrong, 1e-9):
                raise Hint(hint)
        if n == 1:
            raise Hint("For one token there is one permutation and nothing off the diagonal.")
        order = generator.permutation(n)[::-1]
        if not near(mean[np.ix_(order, order)], mean, 1e-9):
            raise Hint("Your result is not equivariant yet: another order of the tokens changes it.")
        raise Hint(f"It is equivariant, but for {n} tokens not the mean. Which entries can come to which place?")
    big = generator.normal(size=(60, 60))
    mean = numbers(answer(big.copy()), (60, 60), "a matrix of 60 rows for a T of 60 rows")
    if not near((np.trace(mean), mean.sum()), (np.trace(big), big.sum()), 1e-6):
        raise Hint("For 60 tokens it is off: the mean has the trace of T and the sum of its entries.")
    if np.ptp(np.diag(mean)) > 1e-9 or np.ptp(mean[~np.eye(60, dtype=bool)]) > 1e-9:
        raise Hint("For 60 tokens it is not equivariant.")


def _turned_scores(query, key, query_places, key_places, base=10000.0) -> np.ndarray:
    """Pair by pair: a q and a k of a pair at the angle between their places."""
    width = query.shape[1]
    scores = np.zeros((len(query), len(key)))
    for r in range(width // 2):
        angle = np.subtract.outer(query_places, key_places) * base ** (-2 * r / width)
        q, k = query[:, [r, r + width // 2]], key[:, [r, r + width // 2]]
        straight = q @ k.T
        across = np.outer(q[:, 0], k[:, 1]) - np.outer(q[:, 1], k[:, 0])
        scores += straight * np.cos(angle) + across * np.sin(angle)
    return scores / np.sqrt(width)


def _neighbours_first(x: np.ndarray) -> np.ndarray:
    """Components reordered, so that pairing r with r + d/2 pairs neighbours of the given order."""
    return np.hstack([x[:, 0::2], x[:, 1::2]])


@exercise("position-4")
def rotary_scores(answer) -> None:
    """A function of Q, K and the places of both that gives the scaled scores of rotary attention."""
    _is_function(answer, "a function of Q, K and the places of both that returns the scores")
    generator = np.random.default_rng(0)

    def run(query, key, at_q, at_k):
        scores = answer(query.copy(), key.copy(), at_q.copy(), at_k.copy())
        if np.iscomplexobj(scores):
            raise Hint("Your scores are complex numbers. A score is real; which part do you want?")
        n, m = len(query), len(key)
        return numbers(scores, (n, m), f"{n} × {m} scores for {n} queries and {m} keys")

    for n, m, width in ((3, 4, 6), (5, 5, 8), (1, 2, 2)):
        query, key = generator.normal(size=(n, width)), generator.normal(size=(m, width))
        at_q, at_k = generator.integers(0, 60, n), generator.integers(0, 60, m)
        right, scores = _turned_scores(query, key, at_q, at_k), run(query, key, at_q, at_k)
        if near(scores, right, 1e-9):
            continue
        zero_q, zero_k = np.zeros(n, dtype=int), np.zeros(m, dtype=int)
        paired = _turned_scores(_neighbours_first(query), _neighbours_first(key), at_q, at_k)
        rates = _turned_scores(query, key, at_q, at_k, base=100.0)
        for wrong, hint in (
            (right * np.sqrt(width), "Divide by √d_k."),
            (right / np.sqrt(width), "You divided by d_k, or twice by its root: by √d_k, once."),
            (query @ key.T / np.sqrt(width), "The places change nothing in your scores."),
            (_turned_scores(query, key, at_q, zero_k), "You turned the queries and left the keys as they were."),
            (_turned_scores(query, key, zero_q, at_k), "You turned the keys and left the queries as they were."),
            (_turned_scores(query, key, at_q, -at_k), "Query and key turn in opposite senses: the places add up."),
            (paired, "You paired neighbours, (0, 1), (2, 3), ...; component r pairs with r + d_k/2 here."),
            (rates, "The frequencies are off: the exponent is -2r/d_k, twice what you have."),
            (
                _turned_scores(query, key, at_k[:n], at_q[:m]) if n == m else rates,
                "You exchanged the two lists of places.",
            ),
            (
                _turned_scores(query, key, np.arange(n), np.arange(m)),
                "You counted 0, 1, 2, ... instead of using the places.",
            ),
        ):
            if near(scores, wrong, 1e-9):
                raise Hint(hint)
        if n != m or width == 2:
            raise Hint(
                f"Off for {n} queries, {m} keys and d_k = {width}. With all places equal you should get Q Kᵀ/√d_k."
            )
        raise Hint("Off for as many queries as keys, though right before. Do your loops mix up the two?")
    query, key = generator.normal(size=(2, 3, 4))
    places = np.array([0, 1, 2])
    near_by, far_off = run(query, key, places, places), run(query, key, places + 5000, places + 5000)
    if not near(near_by, far_off, 1e-6):
        raise Hint("Five thousand places further on your scores change. They may depend on differences alone.")


def _causal_last(tokens: list[int]) -> np.ndarray:
    """The last output of a causal stack of four layers of random weights without positions."""
    generator = np.random.default_rng(5)
    x = generator.normal(size=(10, 16))[tokens]
    for _ in range(4):
        score, value, inner, outer = generator.normal(size=(4, 16, 16)) / 4
        scores = np.where(np.tri(len(x), dtype=bool), x @ score @ x.T, -np.inf)
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        x = x + weights / weights.sum(axis=1, keepdims=True) @ x @ value
        x = x + np.tanh(x @ inner) @ outer
        x = (x - x.mean(axis=1, keepdims=True)) / x.std(axis=1, keepdims=True)
    return x[-1]


@exercise("position-5")
def blind_in_four_layers(answer) -> None:
    """Two different texts whose last outputs agree in a causal encoder of four layers without positions."""
    expected = "a pair of lists of tokens, whole numbers from 0 to 9"
    try:
        first, second = ([*text] for text in answer)
    except (TypeError, ValueError):
        raise Hint(f"Hand in {expected}.") from None
    for text in (first, second):
        if not all(isinstance(t, int | np.integer) and not isinstance(t, bool) and 0 <= t <= 9 for t in text):
            raise Hint(f"Hand in {expected}.")
        if not 1 <= len(text) <= 20:
            raise Hint("Each text has between one and twenty tokens.")
    if first == second:
        raise Hint("These are one and the same text. They must differ.")
    distance = float(np.abs(_causal_last(first) - _causal_last(second)).max())
    if distance <= 1e-9:
        return
    if sorted(first) == sorted(second) and first[-1] == second[-1]:
        raise Hint("The same tokens in another order: that fools one layer. Behind it the earlier outputs differ.")
    if len(set(first)) == len(set(second)) == 1 and len(first) == len(second):
        raise Hint("Each is blind in itself, but the tokens of the two are different, and so are the outputs.")
    if len(first) != len(second) and set(first) == set(second):
        raise Hint(
            "Different lengths, the same tokens: a good idea. But the shares of the tokens differ. When can they not?"
        )
    raise Hint(f"Their last outputs differ by up to {distance:.2g}. When does an average not depend on its weights?")
