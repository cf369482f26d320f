"""The exercises on many heads: right answers found in another way, and the hint that each typical mistake gets."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from judged import right, wrong

from bertlib.exercises import check

# many-heads-1: what five heads leave behind


def built():
    """The same layer as torch modules, seven heads wide."""
    projections = [torch.nn.Linear(384, 7 * 32) for _ in range(3)]
    layer = torch.nn.ModuleList([*projections, torch.nn.Linear(7 * 32, 384)])
    return sum(parameter.numel() for parameter in layer.parameters())


def test_parameters():
    right("many-heads-1", built())
    right("many-heads-1", 345_120)
    right("many-heads-1", "345120")
    right("many-heads-1", np.float64(345_120))


@pytest.mark.parametrize(
    "answer,hint",
    [
        (591_360, "whole layer"),
        (591_360 - 345_120, "cut out. What is left"),
        (3 * (160 * 384 + 160) + 384 * 160 + 384, "Seven stay"),
        (4 * 224 * 384, "matrices alone"),
        (345_120 - 384, "bias of W_O is missing"),
        (4 * (224 * 384 + 224), "Does that get shorter"),
        (4 * (224 * 384 + 384), "as long as what the projections give"),
        (3 * (224 * 384 + 224), "W_O has parameters too"),
        (3 * (224 * 384 + 224) + 384 * 384 + 384, "W_O loses columns"),
        (4 * (224 * 224 + 224), "still read all 384"),
        (345_120.5, "positive whole number"),
        (-1, "positive whole number"),
        (600_000, "more than the layer had"),
        (345_119, "Four maps"),
        (100, "Four maps"),
        ([345_120], "shape (1,), not one number. Hand in one whole number"),
        ("many", "does not read as numbers"),
        (None, "infinite or not a number"),
        (math.inf, "infinite or not a number"),
        ({"count": 345_120}, "does not read as numbers"),
    ],
)
def test_wrong_parameters(answer, hint):
    wrong("many-heads-1", answer, hint)


# many-heads-2: two heads by hand

X = torch.tensor([[1, 0], [4, math.log(2)], [7, math.log(3)]], dtype=torch.float64)
W_O = torch.tensor([[1, 2], [1, -1]], dtype=torch.float64)


def two_heads(W_O=W_O, queries=((0, 0), (1, 0)), swap=False):
    """By torch's fused kernel, head by head, joined."""
    z = []
    for W_Q in queries:
        q = X @ torch.tensor([W_Q], dtype=torch.float64).T
        z.append(torch.nn.functional.scaled_dot_product_attention(q, X[:, 1:], X[:, :1])[0])
    return (W_O @ torch.cat(z[::-1] if swap else z)).tolist()


def test_two_heads():
    right("many-heads-2", two_heads())
    right("many-heads-2", (14, -1))
    right("many-heads-2", np.array([14.0, -1.0]))
    right("many-heads-2", (Fraction(14), Fraction(-1)))


@pytest.mark.parametrize(
    "answer,hint",
    [
        ((4, 5), "W_O has not been applied"),
        ((5, 4), "wrong order and without W_O"),
        (two_heads(W_O.T), "transpose of W_O"),
        (two_heads(swap=True), "changed places"),
        (two_heads(queries=((0, 0), (0, 0))), "weights are not equal"),
        (two_heads(queries=((0, 0), (1e6, 0))), "value of the best key"),
        (two_heads(queries=((0, 0), (-1, 0))), "First one number a head"),
        ((10, -5), "Head 1 is missing"),
        ((4, 4), "Head 2 is missing"),
        ((11, -4), "all scores are equal"),
        ((64, -26), "head 2 do not sum to 1"),
        ((22, 7), "head 1 do not sum to 1"),
        ((10, 1), "reverse order"),
        ((7, -0.5), "added, not averaged"),
        ((-1, 14), "right, in the wrong order"),
        ((0, 0), "First one number a head"),
        (9, "one number, not an array of shape (2,)"),
        ((14, -1, 0), "shape (3,)"),
        ("14, -1", "does not read as numbers"),
        (None, "Hand in the two components"),
        ((14, math.nan), "infinite or not a number"),
        ([[14], [1, 2]], "does not read as numbers"),
    ],
)
def test_wrong_two_heads(answer, hint):
    wrong("many-heads-2", answer, hint)


# many-heads-3: only corners win


def by_solving(k_1, k_2, k_3):
    return np.linalg.solve([[k_1, k_3], [1, 1]], [k_2, 1])


def by_logarithms(k_1, k_2, k_3):
    """From the weights themselves, for two queries."""
    logs = torch.log_softmax(torch.tensor([[k_1, k_2, k_3], [-k_1, -k_2, -k_3]], dtype=torch.float64), dim=1)
    return torch.linalg.solve(logs[:, [0, 2]], logs[:, 1]).tolist()


def test_corners():
    right("many-heads-3", by_solving)
    right("many-heads-3", by_logarithms)
    right("many-heads-3", lambda a, b, c: ((c - b) / (c - a), (b - a) / (c - a)))


@pytest.mark.parametrize(
    "answer,hint",
    [
        (lambda a, b, c: by_solving(a, b, c)[::-1], "changed places"),
        (lambda a, b, c: (0.5, 0.5), "lies in the middle, and only then"),
        (lambda a, b, c: (c - b, b - a), "must sum to 1"),
        (lambda a, b, c: (0.0, b / c), "do not sum to 1, and the denominator"),
        (lambda a, b, c: (1.0, 1.0), "must sum to 1"),
        (lambda a, b, c: (0.25, 0.75), "is not k_2"),
        (lambda a, b, c: 1.0, "one number, not an array of shape (2,)"),
        (lambda a, b, c: "half", "does not read as numbers"),
        (lambda a, b, c: None, "not an array of shape (2,)"),
        (lambda a, b, c: (math.nan, 1.0), "infinite or not a number"),
        (lambda a, b: (0.5, 0.5), "raised TypeError"),
        (lambda a, b, c: 1 / 0, "raised ZeroDivisionError"),
        ((0.5, 0.5), "Hand in a function"),
        ("half", "Hand in a function"),
        (None, "Hand in a function"),
    ],
)
def test_wrong_corners(answer, hint):
    wrong("many-heads-3", answer, hint)


# many-heads-4: a layer with heads left out


def by_torch(X, W_Q, W_K, W_V, W_O, keep, scale=None, heads_first=False):
    h, n = len(keep), len(X)
    split = [torch.from_numpy(X @ W.T).view(n, h, -1).transpose(0, 1) for W in (W_Q, W_K, W_V)]
    z = torch.nn.functional.scaled_dot_product_attention(*split, scale=scale)
    z = z * torch.tensor(keep)[:, None, None]
    return z.transpose(0, 1).reshape(n, -1).numpy() @ W_O.T


def wrong_layer(**changes):
    """by_torch with the arguments changed on the way."""

    def layer(X, W_Q, W_K, W_V, W_O, keep):
        given = {"X": X, "W_Q": W_Q, "W_K": W_K, "W_V": W_V, "W_O": W_O, "keep": keep}
        given |= {name: change(given[name]) for name, change in changes.items() if name in given}
        extra = {name: value for name, value in changes.items() if name not in given}
        return by_torch(**given, **extra)

    return layer


def averaged(X, W_Q, W_K, W_V, W_O, keep):
    return by_torch(X, W_Q, W_K, W_V, W_O, keep) / max(sum(keep), 1)


def averaged_over_all(X, W_Q, W_K, W_V, W_O, keep):
    return by_torch(X, W_Q, W_K, W_V, W_O, keep) / len(keep)


def scaled_up(X, W_Q, W_K, W_V, W_O, keep):
    return by_torch(X, W_Q, W_K, W_V, W_O, keep) * len(keep) / max(sum(keep), 1)


def one_wide_head(X, W_Q, W_K, W_V, W_O, keep):
    q, k, v = (torch.from_numpy(X @ W.T) for W in (W_Q, W_K, W_V))
    return torch.nn.functional.scaled_dot_product_attention(q, k, v).numpy() @ W_O.T


def tangled(X, W_Q, W_K, W_V, W_O, keep):
    split = [torch.from_numpy(X @ W.T).reshape(len(keep), len(X), -1) for W in (W_Q, W_K, W_V)]
    z = torch.nn.functional.scaled_dot_product_attention(*split) * torch.tensor(keep)[:, None, None]
    return z.transpose(0, 1).reshape(len(X), -1).numpy() @ W_O.T


def tangled_back(X, W_Q, W_K, W_V, W_O, keep):
    split = [torch.from_numpy(X @ W.T).reshape(len(keep), len(X), -1) for W in (W_Q, W_K, W_V)]
    return torch.nn.functional.scaled_dot_product_attention(*split).reshape(len(X), -1).numpy() @ W_O.T


def sliced(X, W_Q, W_K, W_V, W_O, keep):
    identity = np.eye(X.shape[1])
    return by_torch(X, identity, identity, identity, W_O, keep)


def width_from_d(X, W_Q, W_K, W_V, W_O, keep):
    width, Y = X.shape[1] // len(keep), np.zeros(X.shape)
    for r, kept in enumerate(keep):
        block = slice(r * width, (r + 1) * width)
        if kept:
            Y += by_torch(X, W_Q[block], W_K[block], W_V[block], W_O[:, block], [True])
    return Y


def first_columns(X, W_Q, W_K, W_V, W_O, keep):
    """The heads that are kept move up and take the columns of others."""
    width, rows = len(W_Q) // len(keep), np.repeat(keep, len(W_Q) // len(keep))
    if not any(keep):
        return np.zeros(X.shape)
    kept = [W[rows] for W in (W_Q, W_K, W_V)]
    return by_torch(X, *kept, W_O[:, : sum(keep) * width], [True] * sum(keep))


def test_pruned():
    right("many-heads-4", by_torch)


@pytest.mark.parametrize(
    "answer,hint",
    [
        (wrong_layer(scale=1.0), "not divided by √d_k"),
        (wrong_layer(scale=1 / math.sqrt(6)), "root of a head's width"),
        (wrong_layer(scale=1 / 2), "not by d_k"),
        (wrong_layer(W_O=np.transpose), "W_O is used as its transpose"),
        (wrong_layer(W_Q=np.transpose, W_K=np.transpose, W_V=np.transpose), "projections are used as their transposes"),
        (wrong_layer(W_O=lambda W: np.eye(len(W))), "W_O is not applied"),
        (averaged, "added, not averaged"),
        (averaged_over_all, "added, not averaged"),
        (one_wide_head, "one head of full width"),
        (tangled, "mixes tokens and heads"),
        (tangled_back, "mixes tokens and heads"),
        (sliced, "got a slice of X"),
        (wrong_layer(W_Q=lambda W: -W), "With all heads kept the output is off"),
        (lambda *arguments: np.full(arguments[0].shape, np.nan), "not a number"),
        (wrong_layer(keep=lambda keep: [True] * len(keep)), "nothing changes"),
        (
            wrong_layer(keep=lambda keep: keep if all(keep) else [not k for k in keep]),
            "leave out the heads that should",
        ),
        (scaled_up, "not scaled up"),
        (first_columns, "keep their own columns of W_O"),
        (width_from_d, "h d_k is not d"),
        (lambda *a: by_torch(*a) if any(a[-1]) else np.ones(a[0].shape), "With no head kept the output must be zero"),
        (lambda *a: by_torch(*a)[0], "gave a Y of shape (6,)"),
        (lambda *a: by_torch(*a).T[:, :3], "gave a Y of shape (6, 3)"),
        (lambda *a: "output", "must return an array of numbers"),
        (lambda *a: None, "gave a Y of shape ()"),
        (lambda X: X, "raised TypeError"),
        (None, "Hand in a function"),
        ("pruned", "Hand in a function"),
        (np.zeros((6, 6)), "Hand in a function"),
    ],
)
def test_wrong_pruned(answer, hint):
    wrong("many-heads-4", answer, hint)


# many-heads-5: contents that enter differently


def test_way_round():
    right("many-heads-5", (np.eye(4)[:, :2], np.eye(4)[:, 2:]))
    right("many-heads-5", (torch.eye(4)[:, 2:], torch.eye(4)[:, :2]))
    right("many-heads-5", np.random.default_rng(0).normal(size=(2, 4, 2)))
    right("many-heads-5", ([[1, 0], [0, 1], [0, 0], [0, 0]], [[1, 1], [1, 1], [1, 0], [0, 1]]))


LEFT = [[1.0, 0], [0, 1], [0, 0], [0, 0]]


@pytest.mark.parametrize(
    "answer,hint",
    [
        ((LEFT, LEFT), "two matrices are equal"),
        ((LEFT, (-np.array(LEFT)).tolist()), "There is a collision"),
        ((LEFT, (2 * np.array(LEFT)).tolist()), "There is a collision"),
        ((LEFT, [[0, 1], [1, 0], [0, 0], [0, 0]]), "There is a collision"),
        ((LEFT, [[0, 0], [0, 1], [1, 0], [0, 0]]), "There is a collision: u = [0.0,"),
        ((LEFT, np.zeros((4, 2))), "is zero"),
        ((np.zeros((4, 2)), np.zeros((4, 2))), "is zero"),
        ((LEFT, [[0, 0], [0, 0], [1, 1], [1, 1]]), "E_b alone"),
        (([[1, 1], [0, 0], [0, 0], [0, 0]], [[0, 0], [0, 0], [1, 0], [0, 1]]), "E_a alone"),
        ((np.eye(2), np.eye(2)), "shape (2, 2), not an array of shape (4, 2)"),
        ((np.eye(4)[:2], np.eye(4)[2:]), "shape (2, 4), not an array of shape (4, 2)"),
        (np.eye(4), "Hand in a pair"),
        ((LEFT,), "Hand in a pair"),
        ((LEFT, "right"), "does not read as numbers"),
        ((LEFT, None), "not an array of shape (4, 2)"),
        ((LEFT, np.full((4, 2), np.inf)), "infinite or not a number"),
        ("no", "does not read as numbers"),
        ("pair", "Hand in a pair"),
        (None, "Hand in a pair"),
        (5, "Hand in a pair"),
    ],
)
def test_wrong_way_round(answer, hint):
    wrong("many-heads-5", answer, hint)


@pytest.mark.parametrize("number", range(1, 6))
def test_no_answer_yet(number):
    assert check(f"many-heads-{number}", ...).right is None
