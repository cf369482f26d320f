"""The exercises on attention: right answers found in another way, and the hint that each typical mistake gets."""

import math

import numpy as np
import pytest
import torch
from judged import right, wrong

# attention-1: an output by hand

QUERY = torch.tensor([[2.0, 0, 0, 0]], dtype=torch.float64)
KEY = torch.tensor([[0, 1, 0, 1], [math.log(2), 0, 1, 0], [math.log(3), 0, 0, 1]], dtype=torch.float64)
VALUE = torch.tensor([[6.0, 0], [0, 6], [6, 6]], dtype=torch.float64)


def output(scale=None):
    return torch.nn.functional.scaled_dot_product_attention(QUERY, KEY, VALUE, scale=scale)[0].tolist()


def test_output():
    right("attention-1", output())
    right("attention-1", (4, 5))
    right("attention-1", np.array([4.0, 5.0]))


@pytest.mark.parametrize(
    "answer,hint",
    [
        (output(scale=1.0), "raw dot products"),
        (output(scale=1 / 4), "You divided by d_k itself"),
        (output(scale=0.0), "plain average"),
        (output(scale=1e6), "best key alone"),
        (output(scale=-1 / 2), "Three steps"),
        ((24, 30), "sums, not averages"),
        ((4, 3), "reverse order"),
        ((5, 4), "wrong order"),
        (((0 + math.log(3)) * 6 / math.log(6), 6), "scores themselves"),
        ((7, 5), "no component can be below 0 or above 6"),
        ((4, -1), "no component can be below 0 or above 6"),
        ((1, 1), "Three steps"),
        ((4, 5, 6), "shape (3,), not an array of shape (2,)"),
        (4, "That is one number, not an array of shape (2,)"),
        ("4, 5", "does not read as numbers"),
        (("four", "five"), "does not read as numbers"),
        (None, "Hand in the two components"),
        ((4, math.inf), "infinite or not a number"),
        ([[4], [5, 6]], "does not read as numbers"),
    ],
)
def test_wrong_output(answer, hint):
    wrong("attention-1", answer, hint)


# attention-2: the antisymmetric share of a form of rank one


def share():
    form = np.outer([1, 2, 0], [0, 1, 1])
    return (((form - form.T) / 2) ** 2).sum() / (form**2).sum()


def test_share():
    right("attention-2", share())
    right("attention-2", np.sin(np.arccos(2 / np.sqrt(10))) ** 2 / 2)  # half the squared sine of the rows' angle
    right("attention-2", "0.3")  # what reads as a number is a number


@pytest.mark.parametrize(
    "answer,hint",
    [
        (1 - share(), "symmetric share"),
        (np.sqrt(share()), "ratio of norms"),
        (3, "squared norm"),
        (4 * share(), "left out the half"),
        (2 * share(), "factor one half"),
        (0.4, "tr(M²)"),
        ((1 - 4 / 7) / 2, "product of the two"),
        (-0.1, "between 0 and 1"),
        (1.5, "between 0 and 1"),
        (0.1, "three dot products"),
        ([0.3, 0.7], "shape (2,), not one number. Hand in one number"),
        ("three tenths", "does not read as numbers"),
        (None, "infinite or not a number"),
    ],
)
def test_wrong_share(answer, hint):
    wrong("attention-2", answer, hint)


# attention-3: detailed balance


def weights(T, c):
    return torch.softmax(torch.from_numpy(T + c), dim=-1).numpy()


def by_eigenvector(T, c):
    """The stationary distribution of the chain A: its left eigenvector of eigenvalue 1."""
    values, vectors = np.linalg.eig(weights(T, c).T)
    vector = vectors[:, np.argmax(values.real)].real
    return vector / vector.sum()


def test_detailed_balance():
    right("attention-3", by_eigenvector)
    right("attention-3", lambda T, c: np.exp(c) * np.exp(T + c).sum(axis=1))
    right("attention-3", lambda T, c: list(7 * np.exp(c) * np.exp(T + c).sum(axis=1)))


def halfway(T, c):
    pi = np.full(len(c), 1 / len(c))
    for _ in range(4):
        pi = pi @ weights(T, c)
    return pi


@pytest.mark.parametrize(
    "answer,hint",
    [
        (lambda T, c: np.exp(T + c).sum(1), "exp(c_j) stands on one side"),
        (lambda T, c: np.exp(T).sum(1), "right for c = 0"),
        (lambda T, c: np.exp(c), "The popularity is dealt with"),
        (lambda T, c: np.exp(c) * np.exp(T).sum(1), "right for c = 0"),
        (lambda T, c: 1 / (np.exp(c) * np.exp(T + c).sum(1)), "That is 1/π"),
        (lambda T, c: np.ones(len(c)), "constant π"),
        (lambda T, c: -np.exp(c), "must be positive"),
        (lambda T, c: np.zeros(len(c)), "must be positive"),
        (halfway, "only nearly"),
        (lambda T, c: np.exp(T).sum(1) + np.exp(c), "Write both out"),
        (lambda T, c: np.eye(len(c)), "shape (2, 2), not an array of shape (2,)"),
        (lambda T, c: 1.0, "That is one number, not"),
        (lambda T, c: None, "Hand in 2 numbers"),
        (lambda T, c: "pi", "does not read as numbers"),
        (lambda T, c: np.full(len(c), np.nan), "infinite or not a number"),
        (lambda T: T, "TypeError"),
        (lambda T, c: 1 / 0, "ZeroDivisionError"),
        (3.14, "Hand in a function"),
        ("pi", "Hand in a function"),
        (None, "Hand in a function"),
    ],
)
def test_wrong_balance(answer, hint):
    wrong("attention-3", answer, hint)


# attention-4: masked attention


def by_torch(Q, K, V, mask):
    return torch.nn.functional.scaled_dot_product_attention(*map(torch.from_numpy, (Q, K, V, mask))).numpy()


def masked(Q, K, V, mask, late=False, empty="zero", stable=True, fill=-np.inf, axis=1, scale=None):
    """Masked attention with a choice of mistakes."""
    scores = Q @ K.T * (1 / np.sqrt(Q.shape[1]) if scale is None else scale(Q.shape[1]))
    if not late:
        scores = np.where(mask, scores, fill)
    top = scores.max(axis=axis, keepdims=True) if stable else 0
    e = np.exp(scores - np.where(np.isfinite(top), top, 0))
    total = e.sum(axis=axis, keepdims=True)
    if empty == "zero":
        total = np.where(total == 0, 1, total)
    return (e / total * (mask if late else 1)) @ V


def test_masked_attention():
    right("attention-4", by_torch)
    right("attention-4", masked)


def uniform_when_empty(Q, K, V, mask):
    return masked(Q, K, V, np.where(mask.any(1, keepdims=True), mask, True))


def lead_of_masked_key(Q, K, V, mask):
    """Subtracts the largest score of all, masked or not: the keys that count are left with exp(-5000) = 0."""
    scores = Q @ K.T / np.sqrt(Q.shape[1])
    e = np.exp(scores - scores.max(1, keepdims=True)) * mask
    return e / np.maximum(e.sum(1, keepdims=True), 1e-300) @ V


def spoils_the_others(Q, K, V, mask):
    return by_torch(Q, K, V, mask) * (2.0 if not mask.any(1).all() else 1.0)


@pytest.mark.parametrize(
    "answer,hint",
    [
        (lambda Q, K, V, m: masked(Q, K, V, m, scale=lambda d: 1.0), "forget to divide by √d_k"),
        (lambda Q, K, V, m: masked(Q, K, V, m, scale=lambda d: 1 / d), "not by d_k"),
        (lambda Q, K, V, m: masked(Q, K, V, m, axis=0, stable=False), "wrong axis"),
        (lambda Q, K, V, m: np.exp(Q @ K.T / np.sqrt(Q.shape[1])) * m @ V, "do not sum to 1"),
        (lambda Q, K, V, m: by_torch(Q, K, V, ~m), "turned the mask round"),
        (lambda Q, K, V, m: masked(Q, K, V, ~m, empty="nan"), "not a number. Is the mask"),
        (lambda Q, K, V, m: (Q @ K.T) @ V, "not those of attention"),
        (lambda Q, K, V, m: masked(Q, K, V, m, late=True), "after the softmax"),
        (lambda Q, K, V, m: masked(Q, K, V, m, fill=0), "zero is not no weight"),
        (lambda Q, K, V, m: masked(Q, K, V, np.ones_like(m)), "changes nothing"),
        (lambda Q, K, V, m: masked(Q, K, V, m, fill=-1), "as if it were not there"),
        (lambda Q, K, V, m: masked(Q, K, V, m, stable=False), "Scores in the thousands"),
        (lead_of_masked_key, "must not take the others' weight"),
        (lambda Q, K, V, m: masked(Q, K, V, m, fill=-100), "must not take the others' weight"),
        (lambda Q, K, V, m: masked(Q, K, V, m, empty="nan"), "may look at nothing gives NaN"),
        (lambda Q, K, V, m: masked(Q, K, V, m, fill=-1e9), "must give zero"),
        (uniform_when_empty, "must give zero"),
        (spoils_the_others, "spoils the outputs of the others"),
        (lambda Q, K, V, m: by_torch(Q, K, V, m).T, "gave the shape (2, 4)"),
        (lambda Q, K, V, m: None, "gave the shape ()"),
        (lambda Q, K, V, m: "outputs", "ValueError"),
        (lambda Q, K, V: V, "TypeError"),
        (42, "Hand in a function"),
        ("softmax", "Hand in a function"),
        (None, "Hand in a function"),
    ],
)
def test_wrong_masked_attention(answer, hint):
    wrong("attention-4", answer, hint)


# attention-5: masking too late


@pytest.mark.parametrize(
    "answer",
    [
        ([0, 1, 200], [True, True, False]),
        (np.array([0.0, 1.0, 200.0]), np.array([True, True, False])),
        ([0, 1, 200], [1, 1, 0]),
        ([-1000, 1000], [True, False]),
    ],
)
def test_late_mask(answer):
    right("attention-5", answer)


def test_late_mask_by_torch():
    """The check's notion of failure against torch's own float32 softmax."""
    late = torch.softmax(torch.tensor([0.0, 1.0, 200.0]), dim=-1) * torch.tensor([1.0, 1.0, 0.0])
    assert bool((late / late.sum()).isnan().all())


@pytest.mark.parametrize(
    "answer,hint",
    [
        (([0, 1, 200], [True, True, True]), "Nothing is masked"),
        (([0, 1, 200], [False, False, True]), "largest score; is that one masked"),
        (([0, 1, 20], [True, True, False]), "still fit into float32"),
        (([0, 1, 200], [False, False, False]), "Leave at least one key"),
        (([0, 1, 2000], [True, True, False]), "between -1000 and 1000"),
        (([0, 1, math.inf], [True, True, False]), "must be finite"),
        (([0, 1, math.nan], [True, True, False]), "must be finite"),
        (([0, 1, 200], [True, True]), "Hand in a pair"),
        (([], []), "Hand in a pair"),
        (([0, 1, 200], [0.5, 1, 0]), "True and False alone"),
        (([0, 1, 200], ["yes", "yes", "no"]), "True and False alone"),
        ((["a", "b"], [True, False]), "Hand in a pair"),
        (([[0, 1], [2, 3]], [True, False]), "Hand in a pair"),
        ([0, 1, 200], "Hand in a pair"),
        ((5, True), "Hand in a pair"),
        ("ab", "Hand in a pair"),
        (None, "Hand in a pair"),
    ],
)
def test_no_late_mask(answer, hint):
    wrong("attention-5", answer, hint)
