"""The exercises of the chapter on queries and keys as a learned form."""

import warnings

import numpy as np

from bertlib.exercises import Hint, exercise
from bertlib.exercises.answers import near, numbers


@exercise("queries-and-keys-1")
def thinnest_form(answer) -> None:
    """The eigenvalues of the symmetric part of M for W_Q = (3, 1) and W_K = (1, 3), the larger one first."""
    pair = numbers(answer, (2,), "two numbers, the larger eigenvalue first")
    if near(pair, [8, -2], 0.01):
        return
    if near(pair, [-2, 8], 0.01):
        raise Hint("The numbers are right; hand in the larger one first.")
    for wrong, hint in (
        ([6, 0], "These are the eigenvalues of M itself. Take its symmetric part first."),
        (
            [10, 0],
            "These are the singular values of M. Eigenvalues have signs, and M_s has two of them.",
        ),
        ([16, -4], "That is M + M^T. The symmetric part is half of it."),
        ([4, -1], "You halved once too often."),
        ([8, 2], "The sizes are right. Can both signs be the same? Think of the trace."),
        ([6, 6], "That is the trace twice; the two eigenvalues of the symmetric part share it unequally."),
    ):
        if near(sorted(pair), sorted(wrong), 0.01):
            raise Hint(hint)
    if near(pair.sum(), 6, 0.01):
        raise Hint("The sum is right, it is the trace of M. The product must be the determinant of the symmetric part.")
    if pair.min() >= 0 or pair.max() <= 0:
        raise Hint("The two rows are independent, so the theorem gives one eigenvalue of each sign.")
    raise Hint("Write M = W_Q^T W_K out as a table of two by two, average it with its transpose, and take eigenvalues.")


@exercise("queries-and-keys-2")
def counting(answer) -> None:
    """BERT-base: blind directions of a head in both roles, the rank of M_s, idle entries in all heads."""
    blind, rank, idle = numbers(answer, (3,), "three whole numbers: (a), (b) and (c)")
    for part, got, right, known in (
        (
            "(a)",
            blind,
            640,
            {
                704: "that is blind in one role. A token both asks and answers, through different rows.",
                128: "these are the directions that are seen.",
                64: "these are the directions that are seen in one role.",
                656: "it has 64 rows in each of two matrices.",
            },
        ),
        (
            "(b)",
            rank,
            128,
            {
                64: "that is the rank of M. Its symmetric part is made of M and of its transpose.",
                768: "M_s is a sum of two matrices of low rank.",
                32: "how many positive eigenvalues does M_s have, and how many negative ones?",
            },
        ),
        (
            "(c)",
            idle,
            144 * 64**2,
            {
                64**2: "that is one head. How many has the model?",
                12 * 64**2: "that is one layer. How many has the model?",
                2 * 144 * 64**2: "one A belongs to both matrices of a head. (The values are not asked for.)",
                144 * 64: "that counts one number for each component; A is a full matrix.",
                144 * 2 * 64 * 768: "these are all the entries. How many of them can A set as it likes?",
                144 * 64 * 63 // 2: "A need not be orthogonal, only invertible.",
            },
        ),
    ):
        if abs(got - right) <= 0.5:
            continue
        for wrong, hint in known.items():
            if abs(got - wrong) <= 0.5:
                raise Hint(f"{part}: {hint}")
        raise Hint(f"{part} is not right yet. Count independent rows for (a) and (b), and entries of A for (c).")


def _is_function(answer, expected: str) -> None:
    if not callable(answer):
        raise Hint(f"Hand in {expected}.")


def _cases():
    """Pairs of matrices with independent rows; thin, as large as can be, nearly tied, and of very different sizes."""
    generator = np.random.default_rng(0)
    for rows, columns in ((1, 2), (2, 5), (4, 8), (16, 64)):
        yield tuple(generator.normal(size=(2, rows, columns)))
    first = generator.normal(size=(3, 8))
    yield first, first + generator.normal(size=(3, 8)) / 100
    yield 100 * first, generator.normal(size=(3, 8)) / 100


@exercise("queries-and-keys-3")
def shuns_itself(answer) -> None:
    """A function of W_Q and W_K that gives a token whose score with itself is negative."""
    _is_function(answer, "a function of W_Q and W_K that returns a token, a vector of d numbers")
    for W_Q, W_K in _cases():
        rows, columns = W_Q.shape
        expected = f"a vector of {columns} numbers for matrices of {rows} × {columns}"
        token = numbers(answer(W_Q.copy(), W_K.copy()), (columns,), expected)
        query, key = W_Q @ token, W_K @ token
        if not token.any():
            raise Hint("The token 0 scores 0 with itself, and 0 is not negative.")
        size = np.linalg.norm(query) * np.linalg.norm(key)
        if query @ key < -1e-7 * size:
            continue
        if size <= 1e-9 * np.linalg.norm(W_Q) * np.linalg.norm(W_K) * (token @ token):
            raise Hint("Your token has no query or no key to speak of, so its score is 0. Choose both.")
        if near(query, key, 1e-6 * np.abs(query).max()):
            raise Hint("Query and key of your token are equal, which gives the largest score. Which key is the worst?")
        if abs(query @ key) <= 1e-7 * size:
            raise Hint("The score of your token with itself is 0, to rounding. It should be negative.")
        raise Hint(
            f"For one pair of matrices of {rows} × {columns} your token scores above 0 with itself. Which key is the "
            "opposite of a query, and can one token have both?"
        )


@exercise("queries-and-keys-4")
def balanced(answer) -> None:
    """A function of W_Q and W_K that gives the balanced pair with the same product."""
    _is_function(answer, "a function of W_Q and W_K that returns two matrices")
    generator = np.random.default_rng(1)
    low = generator.normal(size=(2, 4, 6))
    low[0, 3] = low[0, 2]
    cases = [*_cases(), tuple(low), (np.zeros((2, 3)), generator.normal(size=(2, 3)))]
    for W_Q, W_K in cases:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pair = answer(W_Q.copy(), W_K.copy())
        try:
            first, second = pair
        except (TypeError, ValueError):
            raise Hint("The function must return two matrices, the new W_Q and the new W_K.") from None
        expected = f"two finite matrices of {W_Q.shape[0]} × {W_Q.shape[1]}, the shape that came in"
        first, second = (numbers(part, W_Q.shape, expected) for part in (first, second))
        form, product = W_Q.T @ W_K, first.T @ second
        U, sigma, Vt = np.linalg.svd(form)
        size = max(sigma[0], 1e-300)
        if not near(product, form, 1e-7 * size):
            rows = len(W_Q)
            thin = U[:, :rows], sigma[:rows], Vt[:rows]
            for wrong, hint in (
                (form.T, "The product is the transpose of M: W_Q and W_K have changed places."),
                ((thin[0] * thin[1] ** 2) @ thin[2], "Each singular value is on both sides whole; share it out."),
                (thin[0] @ thin[2], "The singular values are gone from the product."),
                ((thin[0] * np.sqrt(thin[1])) @ thin[2], "Only one side has a root of the singular values."),
                (-form, "The product has the wrong sign."),
            ):
                if near(product, wrong, 1e-7 * max(np.abs(wrong).max(), 1e-300)):
                    raise Hint(hint)
            raise Hint("The product W_Q^T W_K has changed, and with it the scores.")
        grams = first @ first.T, second @ second.T
        if not near(*grams, 1e-6 * max(size, 1e-9)):
            if near(first, W_Q, 0) and near(second, W_K, 0):
                raise Hint("That is the pair that came in. Its product is right; its Gram matrices differ.")
            if near(np.trace(grams[0]), np.trace(grams[1]), 1e-6 * np.trace(grams[0])):
                raise Hint("The two sides are equally heavy as a whole, but not direction by direction.")
            raise Hint("The product is right, but the Gram matrices differ: one side carries more than the other.")


@exercise("queries-and-keys-5")
def loud_neighbours(answer) -> None:
    """W and tokens X such that, with W on both sides, some token scores higher with another than with itself."""
    expected = "a pair: the matrix W, and the tokens as rows of a matrix X"
    try:
        W, X = answer
        W, X = np.asarray(W, dtype=float), np.asarray(X, dtype=float)
    except (TypeError, ValueError):
        raise Hint(f"Hand in {expected}.") from None
    if W.ndim != 2 or X.ndim != 2 or not W.size or not X.size:
        raise Hint(f"Both must be matrices, with rows and columns. Hand in {expected}.")
    if W.shape[1] != X.shape[1]:
        raise Hint(f"W has {W.shape[1]} columns and X has {X.shape[1]}; both must be the width d of a token.")
    if len(X) < 2:
        raise Hint("One token has no other to be compared with. Hand in at least two.")
    if not (np.isfinite(W).all() and np.isfinite(X).all()):
        raise Hint("All numbers must be finite.")
    with np.errstate(over="ignore", invalid="ignore"):
        seen = X @ W.T
        scores = seen @ seen.T
    size = np.abs(scores).max()
    if size == 0:
        raise Hint("W maps every token to 0, so all scores are 0, and none is larger than another.")
    if not np.isfinite(size):
        raise Hint("The scores overflow. Smaller numbers will do.")
    if (scores.max(axis=1) > np.diagonal(scores) + 1e-9 * size).any():
        return
    lengths = np.linalg.norm(seen, axis=1)
    if np.ptp(lengths) <= 1e-9 * lengths.max():
        raise Hint("After W all your tokens are equally long, and then Cauchy and Schwarz prove your colleague right.")
    raise Hint("Every token still prefers itself. A dot product grows with two things; one of them is not the angle.")
