"""The exercises on LayerNorm, feed-forward, residuals: right answers found in another way, and each mistake's hint."""

import math

import judged
import mpmath
import numpy as np
import pytest
import sympy as sp
import torch
import torch.nn.functional as F

from bertlib import BertConfig
from bertlib.config import count_parameters
from bertlib.exercises import names

CHAPTER = "normalisation-and-feed-forward"


def right(number, answer):
    judged.right(f"{CHAPTER}-{number}", answer)


def wrong(number, answer, hint):
    judged.wrong(f"{CHAPTER}-{number}", answer, hint)


def test_there_are_five():
    assert names(CHAPTER) == [f"{CHAPTER}-{number}" for number in range(1, 6)]


# 1: LayerNorm by hand

X = torch.tensor([2.0, 2, 2, 2, 7], dtype=torch.float64)
GAMMA = torch.tensor([2.0, 4, 6, 8, 1], dtype=torch.float64)
BETA = torch.ones(5, dtype=torch.float64)


def test_layer_norm():
    right(1, F.layer_norm(X, (5,), GAMMA, BETA, eps=0.0).tolist())
    right(1, np.array([0, -1, -2, -3, 3]))


@pytest.mark.parametrize(
    "answer,hint",
    [
        (F.layer_norm(X, (5,)).tolist(), "before γ and β"),
        (F.layer_norm(X, (5,), GAMMA).tolist(), "left out β"),
        (F.layer_norm(X, (5,), None, BETA).tolist(), "left out γ"),
        ((GAMMA * (F.layer_norm(X, (5,)) + 1)).tolist(), "β is added last"),
        ((GAMMA * (X - X.mean()) / X.std() + 1).tolist(), "by d - 1"),
        ((GAMMA * (X - X.mean()) / X.var(correction=0) + 1).tolist(), "by the variance"),
        ((GAMMA * F.normalize(X - X.mean(), dim=0) + 1).tolist(), "by the length"),
        ((GAMMA * (X - X.mean()) + 1).tolist(), "did not divide"),
        ((GAMMA * X / X.std(correction=0) + 1).tolist(), "did not subtract the mean"),
        (F.rms_norm(X, (5,), GAMMA, eps=0.0).add(1).tolist(), "RMSNorm"),
        ((1, 0, -1, -2, 2), "seems to be subtracted or shifted"),
        ((5, 5, 5, 5, 5), "cannot all be equal"),
        ((9, 8, 7, 6, 5), "Four steps"),
        ((0, -1, -2), "shape (3,), not an array of shape (5,)"),
        ("0 -1 -2 -3 3", "does not read as numbers"),
        (None, "Hand in the five components"),
        ((0, -1, -2, -3, math.nan), "infinite or not a number"),
    ],
)
def test_wrong_layer_norm(answer, hint):
    wrong(1, answer, hint)


# 2: the parameters of BERT-large

LARGE = count_parameters(
    BertConfig(hidden_size=1024, num_hidden_layers=1, num_attention_heads=16, intermediate_size=4096), pooler=False
)
NETWORK, ATTENTION = LARGE["feed-forward"], LARGE["attention"]
BLOCK = NETWORK + ATTENTION + 4 * 1024


def test_parameters():
    right(2, (NETWORK, BLOCK))
    right(2, [8_393_728, 12_596_224])


@pytest.mark.parametrize(
    "answer,hint",
    [
        ((BLOCK, NETWORK), "other order"),
        ((2 * 1024 * 4096, BLOCK), "left out the biases"),
        ((1024 * 4096, BLOCK), "two matrices"),
        ((1024 * 4096 + 4096, BLOCK), "way out alone"),
        ((2 * 1024 * 4096 + 2 * 4096, BLOCK), "second bias"),
        ((2 * 1024 * 4096 + 2 * 1024, BLOCK), "first bias"),
        ((4_722_432, 7_087_872), "BERT-base"),
        ((24 * NETWORK, 24 * BLOCK), "all layers"),
        ((12345, BLOCK), "first number is off"),
        ((NETWORK, NETWORK + ATTENTION), "also has two LayerNorms"),
        ((NETWORK, NETWORK + ATTENTION + 2 * 1024), "both γ and β"),
        ((NETWORK, BLOCK - 4 * 1024), "also has two LayerNorms"),
        ((NETWORK, NETWORK + 4 * 1024**2 + 4 * 1024), "also has two LayerNorms"),
        ((NETWORK, NETWORK + 4 * 1024**2), "the attention's biases, and the LayerNorms"),
        ((NETWORK, NETWORK + 3 * (1024**2 + 1024) + 4 * 1024), "W_O"),
        ((NETWORK, NETWORK + 4 * 1024), "no attention"),
        ((NETWORK, NETWORK), "more than its feed-forward network"),
        ((NETWORK, 1), "The first number is right"),
        (NETWORK, "That is one number, not an array of shape (2,)"),
        ("two thirds", "does not read as numbers"),
        (None, "Hand in two whole numbers"),
    ],
)
def test_wrong_parameters(answer, hint):
    wrong(2, answer, hint)


# 3: the second derivative of GELU

x = sp.symbols("x", real=True)
GELU = x * (1 + sp.erf(x / sp.sqrt(2))) / 2
PHI = sp.exp(-(x**2) / 2) / sp.sqrt(2 * sp.pi)


def function(expression):
    return sp.lambdify(x, expression, modules="mpmath")


def test_second_derivative():
    right(3, function(sp.diff(GELU, x, 2)))
    right(3, lambda at: float(mpmath.diff(function(GELU), at, 2)))
    right(
        3,
        lambda at: torch.tensor([(2 - at**2) * math.exp(-(at**2) / 2) / math.sqrt(2 * math.pi)], dtype=torch.float64)[
            0
        ],
    )


@pytest.mark.parametrize(
    "answer,hint",
    [
        (function(sp.diff(GELU, x)), "the slope"),
        (function(GELU), "GELU itself"),
        (function((1 - x**2) * PHI), "One φ is missing"),
        (function((2 + x**2) * PHI), "sign of φ'"),
        (function(2 * PHI), "second factor"),
        (function(-(x**2) * PHI), "both are missing"),
        (function((2 - x) * PHI), "makes a square"),
        (function((x**2 - 2) * PHI), "turned round"),
        (function((2 - x**2) * sp.exp(-(x**2) / 2)), "1/√(2π) is missing"),
        (function((2 - x**2) * sp.exp(-(x**2) / 2) / sp.sqrt(sp.pi)), "not 1/√π"),
        (function((2 - x**2) * sp.exp(-(x**2)) / sp.sqrt(2 * sp.pi)), "in its exponent"),
        (lambda at: (2 - at**2) * math.exp(-(at**2) / 2) / 2.51, "Close, but not exact"),
        (
            lambda at: sum(k * float(GELU.subs(x, at + j / 1e4)) for j, k in ((-1, 1), (0, -2), (1, 1))) * 1e8,
            "finite differences",
        ),
        (lambda at: torch.tensor((2 - at**2) * math.exp(-(at**2) / 2) / math.sqrt(2 * math.pi)), "single precision"),
        (lambda at: 1.0, "must change at"),
        (lambda at: (2 - at**2) * 3, "Differentiate x Φ(x) twice"),
        (lambda at: [1, 2], "not one number"),
        (lambda at: None, "returns one number"),
        (lambda: 1.0, "Your answer raised TypeError"),
        ("(2 - x**2) * phi", "Hand in a function"),
        (None, "Hand in a function"),
    ],
)
def test_wrong_second_derivative(answer, hint):
    wrong(3, answer, hint)


# 4: the backward pass of LayerNorm


def by_autograd(x, gamma, eps, g):
    x = torch.tensor(x, requires_grad=True)
    F.layer_norm(x, x.shape[-1:], torch.tensor(gamma), eps=eps).backward(torch.tensor(g))
    return x.grad.numpy()


def backward(mean=True, along=True, scale=1, gamma_first=True, gamma_last=False, ddof=0, axis=1, inside=True, sign=1):
    def function(x, gamma, eps, g):
        centred = x - x.mean(axis=1, keepdims=True)
        variance = centred.var(axis=1, ddof=ddof, keepdims=True)
        sigma = np.sqrt(variance + eps) if inside else np.sqrt(variance) + eps
        hat, h = centred / sigma, g * gamma if gamma_first else g
        result = h.copy()
        if mean:
            result -= h.mean(axis=axis, keepdims=True)
        if along:
            result -= sign * hat * (h * hat).mean(axis=axis, keepdims=True)
        return result / sigma**scale * (gamma if gamma_last else 1)

    return function


def test_backward():
    right(4, by_autograd)
    right(4, backward())


@pytest.mark.parametrize(
    "answer,hint",
    [
        (backward(gamma_first=False), "γ is missing"),
        (backward(gamma_first=False, gamma_last=True), "first on the way back"),
        (backward(along=False), "the part along x̂ is missing"),
        (backward(mean=False), "The mean depends on x too"),
        (backward(mean=False, along=False), "as constants"),
        (backward(scale=0), "division by σ is missing"),
        (backward(scale=2), "once too often"),
        (backward(sign=-1), "wrong sign"),
        (backward(sign=6), "lacks a factor 1/d"),
        (backward(axis=0), "over the tokens"),
        (backward(ddof=1), "divides by d, not d - 1"),
        (backward(inside=False), "under the root"),
        (lambda x, gamma, eps, g: backward()(x, gamma, 1e-12, g), "wrong when eps counts"),
        (lambda x, gamma, eps, g: backward()(x, gamma, 1e-5, g), "The gradient is off"),
        (lambda x, gamma, eps, g: F.layer_norm(torch.tensor(x), x.shape[1:], torch.tensor(gamma)).numpy(), "is off"),
        (lambda x, gamma, eps, g: backward()(x, gamma, eps, g)[0], "came with the shape"),
        (lambda x, gamma, eps, g: g * math.inf, "infinite or not a number"),
        (lambda x, gamma, eps, g: None, "came with the shape ()"),
        (lambda x: x, "Your answer raised TypeError"),
        ("backward", "Hand in a function"),
        (None, "Hand in a function"),
        (3.0, "Hand in a function"),
    ],
)
def test_wrong_backward(answer, hint):
    wrong(4, answer, hint)


def test_forward_pass_is_recognised():
    def forward(x, gamma, eps, g):
        return F.layer_norm(torch.tensor(x), x.shape[1:], torch.tensor(gamma), eps=eps).numpy()

    wrong(4, forward, "the forward pass")


def test_constant_token_is_tried():
    def careless(x, gamma, eps, g):
        if (np.ptp(x, axis=1) == 0).any():
            return np.zeros_like(x)
        return backward()(x, gamma, eps, g)

    wrong(4, careless, "components are all equal")


# 5: a residual stack that loses a gradient


def turned(matrix):
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
    return turn @ matrix @ turn.T


def test_broken_bypass():
    right(5, np.diag([-0.75, 0, 0]))
    right(5, [[-0.75, 0, 0], [0, -0.75, 0], [0, 0, -0.75]])
    right(5, turned(np.diag([-0.7, 0.75, 0.1])))
    right(5, torch.diag(torch.tensor([0.0, -0.72, 0.0])))


@pytest.mark.parametrize(
    "answer,hint",
    [
        (-np.eye(3), "may exceed 3/4; the largest of yours is 1"),
        (1e9 * np.eye(3), "far larger"),
        (np.zeros((3, 3)), "every layer is the identity"),
        (0.75 * np.eye(3), "No direction is shortened"),
        (-0.5 * np.eye(3), "as large as it may be"),
        (np.diag([-0.1, 0.75, 0]), "cancel the identity"),
        ([[0, 0.75, 0], [-0.75, 0, 0], [0, 0, 0]], "No direction is shortened"),
        ([-0.75, 0, 0], "shape (3,), not an array of shape (3, 3)"),
        ("-3/4 I", "does not read as numbers"),
        (None, "not an array of shape (3, 3)"),
        (np.full((3, 3), math.nan), "infinite or not a number"),
        ([[1, 2], [3]], "does not read as numbers"),
    ],
)
def test_wrong_bypass(answer, hint):
    wrong(5, answer, hint)
