"""The exercises of the chapter on LayerNorm, the feed-forward network and residual connections."""

import math
import warnings

import numpy as np

from bertlib.exercises import Hint, exercise
from bertlib.exercises.answers import near, numbers


@exercise("normalisation-and-feed-forward-1")
def layer_norm_by_hand(answer) -> None:
    """LayerNorm of (2, 2, 2, 2, 7) with gamma (2, 4, 6, 8, 1) and beta all 1."""
    output = numbers(answer, (5,), "the five components of the output")
    x, gamma = np.array([2, 2, 2, 2, 7]), np.array([2, 4, 6, 8, 1])
    centred = x - 3
    if near(output, [0, -1, -2, -3, 3], 1e-3):
        return
    for wrong, hint in (
        (centred / 2, "That is x̂, before γ and β."),
        (gamma * centred / 2, "You left out β."),
        (centred / 2 + 1, "You left out γ."),
        (gamma * (centred / 2 + 1), "β is added last: γ multiplies x̂ alone."),
        (gamma * centred / math.sqrt(5) + 1, "You divided the squares by d - 1. LayerNorm takes their mean."),
        (gamma * centred / 4 + 1, "You divided by the variance. Divide by its square root."),
        (gamma * centred / math.sqrt(20) + 1, "You divided by the length: the sum of squares needs a division by d."),
        (gamma * centred + 1, "You subtracted the mean and did not divide by the standard deviation."),
        (gamma * x / 2 + 1, "You did not subtract the mean before dividing."),
        (gamma * x / math.sqrt(13) + 1, "Without subtracting the mean this is another norm (RMSNorm)."),
        ([1, 0, -1, -2, 2], "β seems to be subtracted or shifted; it is added, once, to each component."),
    ):
        if near(output, wrong, 1e-3):
            raise Hint(hint)
    if near(np.ptp(output), 0, 1e-9):
        raise Hint("The components of x and of γ differ: the results cannot all be equal.")
    raise Hint("Four steps: mean, deviations, the root of the mean squared deviation, then γ and β.")


@exercise("normalisation-and-feed-forward-2")
def parameters_of_bert_large(answer) -> None:
    """The parameters of BERT-large's feed-forward network, and of one of its blocks."""
    counts = numbers(answer, (2,), "two whole numbers: the feed-forward network's, then the whole block's")
    d, wide = 1024, 4096
    matrices, biases = 2 * d * wide, d + wide
    attention, norms = 4 * (d * d + d), 4 * d
    network, block = counts
    right_network = matrices + biases
    if network == right_network and block == right_network + attention + norms:
        return
    if block == right_network and network == right_network + attention + norms:
        raise Hint("Both are right, in the other order: the feed-forward network first.")
    if network != right_network:
        base = 4_722_432
        for wrong, hint in (
            (matrices, "Of the feed-forward network you counted the matrices and left out the biases."),
            (matrices // 2, "The feed-forward network has two matrices, one out and one back."),
            (matrices // 2 + wide, "That is the way out alone. The feed-forward network comes back too."),
            (matrices + 2 * wide, "The second bias is as wide as the output, not as the middle."),
            (matrices + 2 * d, "The first bias is as wide as the middle, not as the input."),
            (base, "That is the feed-forward network of BERT-base."),
            (24 * right_network, "That is the feed-forward networks of all layers. One is asked."),
        ):
            if network == wrong:
                raise Hint(hint)
        raise Hint("The first number is off. Two matrices between widths 1024 and 4096, and a bias after each.")
    extra = block - right_network
    for wrong, hint in (
        (attention, "The block also has two LayerNorms, each with γ and β."),
        (attention + norms // 2, "There are two LayerNorms in a block, and each has both γ and β."),
        (4 * d * d + norms, "You left out the biases of the attention's four matrices."),
        (4 * d * d, "You left out the attention's biases, and the LayerNorms."),
        (3 * (d * d + d) + norms, "Attention has a fourth matrix, W_O, that maps the joined heads."),
        (norms, "That block has no attention."),
        (0, "The block is more than its feed-forward network."),
    ):
        if extra == wrong:
            raise Hint(hint)
    raise Hint("The first number is right. A block adds attention's four d × d maps with biases, and two LayerNorms.")


def _bell(x: float) -> float:
    return math.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def _gate(x: float) -> float:
    return math.erfc(-x / math.sqrt(2)) / 2


@exercise("normalisation-and-feed-forward-3")
def second_derivative_of_gelu(answer) -> None:
    """A function of x that gives the second derivative of GELU."""
    if not callable(answer):
        raise Hint("Hand in a function of one number x that returns GELU''(x).")
    points = [-6.0, -2.0, -math.sqrt(2), -1.0, -0.3, 0.0, 0.5, 1.0, math.sqrt(2), 2.5, 5.0]
    values = np.array([float(numbers(answer(x), (), "a function that returns one number")) for x in points])

    def gives(formula, tolerance=1e-9):
        return near(values, [formula(x) for x in points], tolerance)

    def right(x):
        return (2 - x * x) * _bell(x)

    if gives(right):
        return
    for wrong, hint in (
        (lambda x: _gate(x) + x * _bell(x), "That is the first derivative, the slope."),
        (lambda x: x * _gate(x), "That is GELU itself."),
        (lambda x: (1 - x * x) * _bell(x), "One φ is missing: both terms of the slope give one when differentiated."),
        (lambda x: (2 + x * x) * _bell(x), "Check the sign of φ': the density falls where x is positive."),
        (lambda x: 2 * _bell(x), "x φ(x) is a product: the derivative of its second factor is missing."),
        (lambda x: -x * x * _bell(x), "x φ(x) and Φ(x) each give a φ; both are missing."),
        (lambda x: (2 - x) * _bell(x), "φ'(x) is -x φ(x); with the factor x in front, that makes a square."),
        (lambda x: -right(x), "The sign is turned round: GELU is convex near 0."),
        (lambda x: right(x) * math.sqrt(2 * math.pi), "The density's constant 1/√(2π) is missing."),
        (lambda x: right(x) * math.sqrt(2), "The density's constant is 1/√(2π), not 1/√π."),
        (lambda x: (2 - x * x) * math.exp(-x * x) / math.sqrt(2 * math.pi), "The density has -x²/2 in its exponent."),
    ):
        if gives(wrong):
            raise Hint(hint)
    if gives(right, 1e-2):
        raise Hint("Close, but not exact: finite differences, single precision, or the tanh form of GELU?")
    signs = [value > 0 for value in values]
    if signs != [right(x) > 0 for x in points]:
        raise Hint("The sign is wrong somewhere: it must change at -√2 and at √2 and nowhere else.")
    raise Hint("Differentiate x Φ(x) twice by the product rule. Φ' is φ, and φ'(x) is -x φ(x).")


def _layer_norm(x: np.ndarray, gamma: np.ndarray, eps: float) -> np.ndarray:
    centred = x - x.mean(axis=1, keepdims=True)
    return gamma * centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + eps)


def _ln_gradient(x: np.ndarray, gamma: np.ndarray, eps: float, g: np.ndarray) -> np.ndarray:
    """Row by row through the Jacobian written out in full, (d, d)."""
    d = x.shape[1]
    rows = []
    for row, gradient in zip(x, g, strict=True):
        centre, centred = np.eye(d) - np.ones((d, d)) / d, row - row.mean()
        sigma = math.sqrt(centred @ centred / d + eps)
        jacobian = centre / sigma - np.outer(centred, centred) / (d * sigma**3)
        rows.append(jacobian.T @ (gamma * gradient))
    return np.array(rows)


@exercise("normalisation-and-feed-forward-4")
def layer_norm_backward(answer) -> None:
    """A function of x, gamma, eps and g that gives the gradient in x of LayerNorm."""
    if not callable(answer):
        raise Hint("Hand in a function of x, gamma, eps and g that returns the gradient in x.")
    generator = np.random.default_rng(0)

    def run(x, gamma, eps, g):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            gradient = np.asarray(answer(x.copy(), gamma.copy(), eps, g.copy()), dtype=float)
        if gradient.shape != x.shape:
            raise Hint(f"For x of shape {x.shape} the gradient came with the shape {gradient.shape}.")
        if not np.isfinite(gradient).all():
            raise Hint("Some of the gradient is infinite or not a number. Where is eps?")
        return gradient

    def agree(a, b):
        return near(a, b, 1e-8 * max(np.abs(b).max(), 1e-300))

    x, g = 2 * generator.normal(size=(4, 6)) + 1, generator.normal(size=(4, 6))
    gamma, eps = generator.uniform(1 / 2, 2, size=6), 1e-12
    found, right = run(x, gamma, eps, g), _ln_gradient(x, gamma, eps, g)
    if not agree(found, right):
        sigma = np.sqrt(x.var(axis=1, keepdims=True) + eps)
        hat = (x - x.mean(axis=1, keepdims=True)) / sigma
        h = gamma * g
        mean, along = h.mean(axis=1, keepdims=True), (h * hat).mean(axis=1, keepdims=True)
        down = h.mean(axis=0, keepdims=True), (h * hat).mean(axis=0, keepdims=True)
        root = np.sqrt(x.var(axis=1, ddof=1, keepdims=True) + eps)
        other = (x - x.mean(axis=1, keepdims=True)) / root
        for wrong, hint in (
            (_ln_gradient(x, np.ones(6), eps, g), "γ is missing: the gradient passes through it first."),
            (gamma * _ln_gradient(x, np.ones(6), eps, g), "γ comes last on the way out, so first on the way back."),
            ((h - mean) / sigma, "σ depends on x too: the part along x̂ is missing."),
            ((h - hat * along) / sigma, "The mean depends on x too: its part is missing."),
            (h / sigma, "The mean and σ both depend on x; you treated them as constants."),
            (h - mean - hat * along, "The division by σ is missing."),
            ((h - mean - hat * along) / sigma**2, "You divide by σ once too often: by the variance."),
            ((h - mean - 6 * hat * along) / sigma, "The part along x̂ lacks a factor 1/d: a mean, not a sum."),
            ((h - 6 * mean - hat * along) / sigma, "A factor 1/d is missing in front of the sum of the gradient."),
            ((h - mean + hat * along) / sigma, "The part along x̂ has the wrong sign."),
            ((h - down[0] - hat * down[1]) / sigma, "You take the means over the tokens. Each token has its own."),
            ((h - mean - other * (h * other).mean(1, keepdims=True)) / root, "The variance divides by d, not d - 1."),
            (_layer_norm(x, gamma, eps), "That is the forward pass."),
        ):
            if agree(found, wrong):
                raise Hint(hint)
        raise Hint("The gradient is off. Through γ first, then the theorem's J, which is symmetric.")
    for shape, size, eps in (((1, 2), 1.0, 1e-12), ((3, 5), 1e-6, 1e-12), ((2, 4), 1e-9, 1e-12), ((5, 7), 1.0, 1 / 2)):
        x, g = size * generator.normal(size=shape), generator.normal(size=shape)
        gamma = generator.normal(size=shape[1])
        slack = 1e-8 * np.abs(gamma * g).max() / math.sqrt(x.var(axis=1).min() + eps)
        if not near(run(x, gamma, eps, g), _ln_gradient(x, gamma, eps, g), slack):
            if shape == (1, 2):
                raise Hint("One token of two components goes wrong, where nearly nothing of the gradient is left.")
            raise Hint("Right for ordinary tokens, wrong when eps counts. It belongs under the root, in σ and in x̂.")
    x, g = np.full((2, 3), 5.0), np.eye(2, 3)
    if not agree(run(x, np.ones(3), 1e-12, g), _ln_gradient(x, np.ones(3), 1e-12, g)):
        raise Hint("A token whose components are all equal goes wrong: there x̂ is 0 and σ is √eps.")


@exercise("normalisation-and-feed-forward-5")
def broken_bypass(answer) -> None:
    """A 3 x 3 matrix of norm at most 3/4 for which (I + M) twelve times shortens some vector to a millionth."""
    matrix = numbers(answer, (3, 3), "a 3 × 3 matrix, as three rows of three numbers")
    if np.abs(matrix).max() > 1e6:
        raise Hint("No singular value of M may exceed 3/4; yours is far larger.")
    largest = np.linalg.svd(matrix, compute_uv=False)[0]
    if largest > 3 / 4 + 1e-9:
        raise Hint(f"No singular value of M may exceed 3/4; the largest of yours is {largest:.3g}.")
    twelve = np.linalg.matrix_power(np.eye(3) + matrix, 12)
    shortest = np.linalg.svd(twelve, compute_uv=False)[-1]
    if shortest < 1e-6:
        return
    if largest < 1e-9:
        raise Hint("With M = 0 every layer is the identity, and nothing is lost.")
    symmetric = np.linalg.eigvalsh((matrix + matrix.T) / 2)
    if symmetric[0] >= -1e-9:
        raise Hint("No direction is shortened by this M: x and Mx must point against one another somewhere.")
    if largest < 3 / 4 - 1e-6:
        raise Hint(f"Twelve layers leave {shortest:.1e} of the shortest gradient. Is M as large as it may be?")
    raise Hint(f"Twelve layers leave {shortest:.1e} of the shortest gradient. What must M do to cancel the identity?")
