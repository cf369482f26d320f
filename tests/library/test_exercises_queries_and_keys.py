"""The exercises on queries and keys: right answers found in another way, and the hint each typical mistake gets."""

import numpy as np
import pytest
import sympy as sp
import torch
from judged import right, wrong

from bertlib.exercises import check

# queries-and-keys-1: the symmetric part of a form of rank one


def eigenvalues():
    form = sp.Matrix([3, 1]) * sp.Matrix([[1, 3]])
    return sorted(((form + form.T) / 2).eigenvals(), reverse=True)


def test_thinnest_form():
    right("queries-and-keys-1", eigenvalues())
    right("queries-and-keys-1", np.array([8.0, -2.0]))
    right("queries-and-keys-1", ((6 + 10) / 2, (6 - 10) / 2))


@pytest.mark.parametrize(
    "answer,hint",
    [
        (eigenvalues()[::-1], "larger one first"),
        ((6, 0), "eigenvalues of M itself"),
        ((0, 6), "eigenvalues of M itself"),
        ((10, 0), "singular values"),
        ((16, -4), "half of it"),
        ((4, -1), "once too often"),
        ((8, 2), "Think of the trace"),
        ((6, 6), "trace twice"),
        ((7, -1), "The sum is right"),
        ((5, 3), "one eigenvalue of each sign"),
        ((-5, -3), "one eigenvalue of each sign"),
        ((9, -1), "average it with its transpose"),
        ((8, -2, 0), "shape (3,)"),
        (8, "one number, not an array of shape (2,)"),
        ("8, -2", "does not read as numbers"),
        (None, "Hand in two numbers"),
        ((8, np.nan), "infinite or not a number"),
        ([[8], [1, 2]], "does not read as numbers"),
    ],
)
def test_wrong_thinnest_form(answer, hint):
    wrong("queries-and-keys-1", answer, hint)


# queries-and-keys-2: counting


def counted():
    """The same counts on a small head by ranks, scaled up by the rule that they show."""
    generator = np.random.default_rng(0)
    W_Q, W_K = generator.normal(size=(2, 4, 20))
    form = W_Q.T @ W_K
    blind = 20 - np.linalg.matrix_rank(np.vstack([form, form.T]))
    rank = np.linalg.matrix_rank(form + form.T)
    assert (blind, rank) == (20 - 2 * 4, 2 * 4)
    moves = [np.kron(unit.reshape(4, 4), np.eye(1)) for unit in np.eye(16)]
    idle = np.linalg.matrix_rank(np.array([np.concatenate([(G @ W_Q).ravel(), (-G.T @ W_K).ravel()]) for G in moves]))
    assert idle == 4 * 4
    return 768 - 2 * 64, 2 * 64, 12 * 12 * 64 * 64


def test_counting():
    right("queries-and-keys-2", counted())
    right("queries-and-keys-2", [640.0, 128.0, 589824.0])


@pytest.mark.parametrize(
    "answer,hint",
    [
        ((704, 128, 589824), "(a): that is blind in one role"),
        ((128, 128, 589824), "(a): these are the directions that are seen"),
        ((64, 128, 589824), "(a): these are the directions that are seen in one role"),
        ((1, 128, 589824), "(a) is not right yet"),
        ((640, 64, 589824), "(b): that is the rank of M"),
        ((640, 768, 589824), "(b): M_s is a sum"),
        ((640, 3, 589824), "(b) is not right yet"),
        ((640, 128, 4096), "(c): that is one head"),
        ((640, 128, 49152), "(c): that is one layer"),
        ((640, 128, 1179648), "(c): one A belongs"),
        ((640, 128, 9216), "(c): that counts one number"),
        ((640, 128, 14155776), "(c): these are all the entries"),
        ((640, 128, 144 * 64 * 63 // 2), "(c): A need not be orthogonal"),
        ((640, 128, 0), "(c) is not right yet"),
        ((640, 128), "shape (2,)"),
        (640, "one number"),
        ("640 128 589824", "does not read as numbers"),
        (None, "Hand in three whole numbers"),
        ((640, 128, np.inf), "infinite"),
    ],
)
def test_wrong_counting(answer, hint):
    wrong("queries-and-keys-2", answer, hint)


# queries-and-keys-3: a token that shuns itself


def by_eigenvector(W_Q, W_K):
    form = W_Q.T @ W_K
    return np.linalg.eigh(form + form.T)[1][:, 0]


def by_pseudo_inverse(W_Q, W_K):
    stacked = torch.from_numpy(np.vstack([W_Q, W_K]))
    u = torch.arange(1, len(W_Q) + 1, dtype=torch.float64)
    return (torch.linalg.pinv(stacked) @ torch.cat([u, -u])).numpy()


def test_shuns_itself():
    right("queries-and-keys-3", by_eigenvector)
    right("queries-and-keys-3", by_pseudo_inverse)
    right("queries-and-keys-3", lambda W_Q, W_K: by_pseudo_inverse(W_K, W_Q).tolist())


def solved(W_Q, W_K, sign):
    u = np.ones(len(W_Q))
    return np.linalg.pinv(np.vstack([W_Q, W_K])) @ np.concatenate([u, sign * u])


@pytest.mark.parametrize(
    "answer,hint",
    [
        (lambda W_Q, W_K: np.zeros(W_Q.shape[1]), "The token 0"),
        (lambda W_Q, W_K: solved(W_Q, W_K, 1), "Query and key of your token are equal"),
        (lambda W_Q, W_K: solved(W_Q, W_K, 0), "no query or no key"),
        (lambda W_Q, W_K: np.linalg.eigh(W_Q.T @ W_K + W_K.T @ W_Q)[1][:, -1], "scores above 0 with itself"),
        (lambda W_Q, W_K: solved(W_Q, W_K, -1)[:-1], "Hand in a vector of 2 numbers"),
        (lambda W_Q, W_K: np.full(W_Q.shape[1], np.nan), "infinite or not a number"),
        (lambda W_Q, W_K: "x", "does not read as numbers"),
        (lambda W_Q, W_K: None, "Hand in a vector"),
        (lambda W_Q, W_K: W_Q, "an array of shape"),
        (lambda W_Q: W_Q, "raised TypeError"),
        (np.ones(3), "Hand in a function"),
        ("function", "Hand in a function"),
        (None, "Hand in a function"),
    ],
)
def test_wrong_shuns_itself(answer, hint):
    wrong("queries-and-keys-3", answer, hint)


def test_a_lucky_direction_is_not_enough():
    wrong("queries-and-keys-3", lambda W_Q, W_K: -(W_Q[0] - W_K[0]) + 5 * W_Q[0], "Which key is the opposite")


def test_a_score_of_zero_is_not_negative():
    def orthogonal(W_Q, W_K):
        if len(W_Q) < 2:
            return by_pseudo_inverse(W_Q, W_K)
        u, v = np.eye(len(W_Q))[:2]
        return np.linalg.pinv(np.vstack([W_Q, W_K])) @ np.concatenate([u, v])

    wrong("queries-and-keys-3", orthogonal, "to rounding")


# queries-and-keys-4: the balanced pair


def by_large_svd(W_Q, W_K):
    U, sigma, Vt = torch.linalg.svd(torch.from_numpy(W_Q.T @ W_K))
    root = sigma[: len(W_Q)].sqrt()[:, None]
    return (root * U[:, : len(W_Q)].T).numpy(), (root * Vt[: len(W_Q)]).numpy()


def turned(W_Q, W_K):
    """The balanced pair is balanced in any orthogonal dress."""
    Q = np.linalg.qr(np.random.default_rng(5).normal(size=(len(W_Q), len(W_Q))))[0]
    first, second = by_large_svd(W_Q, W_K)
    return [(Q @ first).tolist(), (Q @ second).tolist()]


def test_balanced():
    right("queries-and-keys-4", by_large_svd)
    right("queries-and-keys-4", turned)


def powers(a, b):
    def pair(W_Q, W_K):
        U, sigma, Vt = np.linalg.svd(W_Q.T @ W_K)
        r = len(W_Q)
        return (U[:, :r] * sigma[:r] ** a).T, sigma[:r, None] ** b * Vt[:r]

    return pair


def equal_weight(W_Q, W_K):
    ratio = np.sqrt(np.linalg.norm(W_K) / np.linalg.norm(W_Q))
    return W_Q * ratio, W_K / ratio


def by_inverse(W_Q, W_K):
    """Right for full rank; divides by singular values, and so breaks where one of them is zero."""
    first, _ = by_large_svd(W_Q, W_K)
    return first, first @ W_Q.T @ W_K / (first**2).sum(axis=1, keepdims=True)


@pytest.mark.parametrize(
    "answer,hint",
    [
        (lambda W_Q, W_K: (W_Q, W_K), "That is the pair that came in"),
        (lambda W_Q, W_K: by_large_svd(W_K, W_Q), "changed places"),
        (lambda W_Q, W_K: by_large_svd(-W_Q, W_K), "wrong sign"),
        (powers(1, 1), "on both sides whole"),
        (powers(0, 0), "singular values are gone"),
        (powers(1 / 2, 0), "Only one side has a root"),
        (powers(1, 0), "one side carries more"),
        (powers(1 / 4, 1 / 4), "Only one side has a root"),
        (lambda W_Q, W_K: (W_Q / 2, W_K), "has changed"),
        (lambda W_Q, W_K: equal_weight(W_Q, W_K), "direction by direction"),
        (lambda W_Q, W_K: W_Q.T @ W_K, "Hand in two finite matrices"),
        (lambda W_Q, W_K: [m.T for m in by_large_svd(W_Q, W_K)], "Hand in two finite matrices"),
        (lambda W_Q, W_K: None, "must return two matrices"),
        (lambda W_Q, W_K: ("a", "b"), "does not read as numbers"),
        (lambda W_Q, W_K: 3, "must return two matrices"),
        (lambda W_Q: W_Q, "raised TypeError"),
        ((1, 2), "Hand in a function"),
        (None, "Hand in a function"),
    ],
)
def test_wrong_balanced(answer, hint):
    wrong("queries-and-keys-4", answer, hint)


def test_a_form_of_low_rank_is_a_corner_case():
    result = check("queries-and-keys-4", by_inverse)
    assert result.right is False and ("infinite or not a number" in result.message or "Gram" in result.message)


# queries-and-keys-5: loud neighbours


def test_loud_neighbours():
    right("queries-and-keys-5", (np.eye(2), [[1, 0], [2, 0]]))
    right("queries-and-keys-5", ([[1.0]], [[1.0], [3.0]]))
    generator = np.random.default_rng(0)
    W, X = generator.normal(size=(2, 6)), generator.normal(size=(50, 6))
    scores = torch.from_numpy(X @ W.T) @ torch.from_numpy(X @ W.T).T
    assert (scores.argmax(dim=1) != torch.arange(50)).any()
    right("queries-and-keys-5", [W.tolist(), X.tolist()])


@pytest.mark.parametrize(
    "answer,hint",
    [
        ((np.eye(2), [[1, 0], [0, 1]]), "equally long"),
        ((np.eye(2), [[1, 0], [1, 0]]), "equally long"),
        ((np.eye(2), [[1, 0], [0, 2]]), "Every token still prefers itself"),
        ((np.eye(2), [[1, 0], [-2, 0]]), "Every token still prefers itself"),
        ((np.zeros((2, 2)), [[1, 0], [2, 0]]), "maps every token to 0"),
        (([[0, 1]], [[1, 0], [2, 0]]), "maps every token to 0"),
        ((np.eye(2), [[1, 0]]), "at least two"),
        ((np.eye(3), [[1, 0], [2, 0]]), "the width d"),
        (([1, 0], [[1, 0], [2, 0]]), "Both must be matrices"),
        ((np.eye(2), []), "Both must be matrices"),
        ((np.eye(2), [[1, 0], [np.inf, 0]]), "finite"),
        ((1e200 * np.eye(2), [[1, 0], [2, 0]]), "overflow"),
        (np.eye(3), "Hand in a pair"),
        ("W, X", "Hand in a pair"),
        (("W", "X"), "Hand in a pair"),
        ((None, None), "Both must be matrices"),
        (5, "Hand in a pair"),
        (None, "Hand in a pair"),
        (([[1, 0], [1]], [[1, 0], [2, 0]]), "Hand in a pair"),
    ],
)
def test_wrong_loud_neighbours(answer, hint):
    wrong("queries-and-keys-5", answer, hint)
