"""The exercises of the chapter on the block, the stack and BERT-base."""

import math
import warnings
from functools import partial
from itertools import product

import numpy as np

from bertlib.exercises import Hint, exercise
from bertlib.exercises.answers import near, numbers


def _whole(answer, expected: str) -> int:
    number = float(numbers(answer, (), expected))
    if number != round(number):
        raise Hint(f"That is not a whole number. Hand in {expected}.")
    return round(number)


def _parameters(layers: int, width: int, inner: int, vocabulary: int, places: int, segments: int) -> int:
    tables = (vocabulary + places + segments + 2) * width
    layer = 4 * (width**2 + width) + (2 * width * inner + inner + width) + 4 * width
    return tables + layers * layer + width**2 + width


@exercise("the-block-and-the-stack-1")
def count_by_hand(answer) -> None:
    """The parameters of a BERT of 3 layers, width 8, inner width 20, 20 pieces, 10 places, 3 segments and a pooler."""
    number = _whole(answer, "the number of parameters")
    right = _parameters(3, 8, 20, 20, 10, 3)
    if number == right:
        return
    for off, hint in (
        (-72, "You left out the pooler, a square matrix and a bias at the end."),
        (-64, "One square matrix is missing: has the pooler its weights as well as its bias?"),
        (-8, "One bias of 8 numbers is missing: has the pooler one?"),
        (-24, "A table is missing: what does BERT add to words and places?"),
        (-80, "A table is missing, that of the places."),
        (-16, "One LayerNorm is missing: which one stands before the first layer?"),
        (-48, "One LayerNorm a layer is missing: a block has two."),
        (
            -3 * 32,
            "96 are missing: the biases of the attention maps, or the LayerNorms of the blocks; both are 4 d a block.",
        ),
        (-3 * 16 - 8, "A LayerNorm has a gain and a shift, two numbers a component."),
        (-3 * 72, "Each layer has four square maps in attention, W_O among them."),
        (-3 * 28, "The biases of the feed-forward network are missing."),
        (-3 * 60 - 8, "The biases are missing, of all linear maps."),
        (-3 * 2 * 72, "Attention has four maps a layer: three projections and W_O."),
        (_parameters(3, 8, 32, 20, 10, 3) - right, "The inner width is 20 here, not four times the width."),
        (_parameters(1, 8, 20, 20, 10, 3) - right, "There are three layers, each with weights of its own."),
        (3 * 3 * 72, "The projections of the two heads are stacked in one square matrix; heads cost nothing."),
    ):
        if number == right + off:
            raise Hint(hint)
    size = "too many" if number > right else "too few"
    raise Hint(
        f"These are {size}. Count tables, then one layer (attention, feed-forward, two LayerNorms), then the rest."
    )


@exercise("the-block-and-the-stack-2")
def crossing_by_hand(answer) -> None:
    """The length at which scores and averages cost as much as the linear maps, for width 512 and inner width 1536."""
    length = float(numbers(answer, (), "the number of tokens"))
    width, inner = 512, 1536
    if abs(length - (2 * width + inner)) <= 1:
        return
    for wrong, hint in (
        (6 * width, "6 d holds for f = 4d. Here the network widens threefold only."),
        (4 * width + 2 * inner, "Two products grow with the square: the scores, and the averages of the values."),
        (2 * width, "The feed-forward network is a linear map for each token too."),
        (width + inner / 2, "That is half: operations were set against multiplications, or a product counted twice."),
        (1.5 * width + inner, "Attention has four linear maps, W_O among them."),
        (width + inner, "There are maps for queries, keys, values, and W_O."),
        (2 * width + inner / 2, "The feed-forward network has two maps, out and back."),
        (8 * (2 * width + inner), "The heads' width is d/h, and there are h of them: the number of heads cancels."),
        ((2 * width + inner) / 8, "Each of the h heads scores every pair: the number of heads cancels."),
        (
            2 * width * (2 * width + inner),
            "You are nearly there: divide by the cost of one pair, not of one component.",
        ),
    ):
        if abs(length - wrong) <= 1:
            raise Hint(hint)
    raise Hint("Write both costs for n tokens, one with n and one with n², and set them equal.")


def _invisible(vocabulary: int, places: int, segments: int, width: int) -> int:
    """The dimension by brute force: the kernel of the map from the tables to all centred sums."""
    rows = vocabulary + places + segments
    incidence = np.zeros((vocabulary * places * segments, rows))
    for number, (i, j, k) in enumerate(product(range(vocabulary), range(places), range(segments))):
        incidence[number, [i, vocabulary + j, vocabulary + places + k]] = 1
    centring = np.eye(width) - 1 / width
    return rows * width - int(np.linalg.matrix_rank(np.kron(incidence, centring)))


@exercise("the-block-and-the-stack-3")
def invisible_parameters(answer) -> None:
    """A function of V, P, S and d that gives the dimension of the changes of the tables that no input can show."""
    if not callable(answer):
        raise Hint("Hand in a function of V, P, S and d that returns a whole number.")
    for sizes in ((3, 2, 2, 5), (4, 3, 1, 5), (5, 2, 3, 2), (1, 1, 1, 3), (2, 4, 2, 7)):
        number = _whole(answer(*sizes), "a function that returns the dimension, one whole number")
        right = _invisible(*sizes)
        if number == right:
            continue
        rows, width = sum(sizes[:3]), sizes[3]
        for wrong, hint in (
            (rows, "That counts the constant shifts of each row. Vectors can also be moved from table to table."),
            (2 * width, "That counts the shifts from table to table. What does subtracting the mean hide in each row?"),
            (
                2 * (width - 1),
                "That counts the shifts from table to table. What does subtracting the mean hide in a row?",
            ),
            (rows + 2 * width, "Moving a constant vector from table to table was counted twice."),
            (rows + width - 1, "There are three tables: how many independent ways to move a vector between them?"),
            (rows + 3 * (width - 1), "The three shifts must cancel: they are not all free."),
            (rows + 3 * width, "The three shifts must cancel: they are not all free. And constant ones were counted."),
            (rows * width, "That is every change of the tables; some of them are visible."),
            (rows * width - right, "That is the dimension of the visible changes."),
        ):
            if number == wrong:
                raise Hint(hint)
        shown = "V = {}, P = {}, S = {}, d = {}".format(*sizes)
        size = "too large" if number > right else "too small"
        raise Hint(f"For {shown} that is {size}. First: when is C(u_i + v_j + w_k) = 0 for all i, j, k?")


_erf = np.vectorize(math.erf, otypes=[float])


def _softmax(scores: np.ndarray, axis: int = -1) -> np.ndarray:
    exponentials = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return exponentials / exponentials.sum(axis=axis, keepdims=True)


def _gelu(x: np.ndarray) -> np.ndarray:
    return x * (1 + _erf(x / math.sqrt(2))) / 2


def _gelu_tanh(x: np.ndarray) -> np.ndarray:
    return x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2


def _relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


def _norm(x, gain, shift, eps=1e-12, ddof=0, outside=False) -> np.ndarray:
    x = x - x.mean(axis=1, keepdims=True)
    variance = x.var(axis=1, ddof=ddof, keepdims=True)
    return gain * x / (np.sqrt(variance) + eps if outside else np.sqrt(variance + eps)) + shift


def _cut(x: np.ndarray, heads: int, interleaved: bool) -> np.ndarray:
    n, d = x.shape
    if interleaved:
        return x.reshape(n, d // heads, heads).transpose(2, 0, 1)
    return x.reshape(n, heads, d // heads).transpose(1, 0, 2)


def _block(
    x,
    w,
    heads,
    *,
    scale="root",
    axis=-1,
    interleaved=False,
    act=_gelu,
    norm=_norm,
    order="post",
    bias=1,
    second="normed",
) -> np.ndarray:
    """A block; the keywords plant the mistakes that the check knows."""

    def linear(x, name):
        return x @ w["W_" + name].T + bias * w["b_" + name]

    def normed(x, number):
        return norm(x, w[f"gain_{number}"], w[f"shift_{number}"])

    def attend(x):
        q, k, v = (_cut(linear(x, name), heads, interleaved) for name in "QKV")
        by = {"root": math.sqrt(q.shape[2]), "none": 1.0, "whole": q.shape[2], "width": math.sqrt(x.shape[1])}[scale]
        z = _softmax(q @ k.transpose(0, 2, 1) / by, axis) @ v
        return linear(z.transpose(1, 0, 2).reshape(x.shape), "O")

    def feed(x):
        return linear(act(linear(x, "1")), "2")

    if order == "pre":
        x = x + attend(normed(x, 1))
        return x + feed(normed(x, 2))
    if order == "inside":
        x = x + normed(attend(x), 1)
        return x + normed(feed(x), 2)
    if order == "bare":
        return normed(feed(normed(attend(x), 1)), 2)
    summed = x + attend(x)
    middle = normed(summed, 1)
    if second == "none":
        return normed(feed(middle), 2)
    if second == "input":
        return normed(x + feed(middle), 2)
    if second == "unnormed":
        return normed(summed + feed(summed), 2)
    return normed(middle + feed(middle), 2)


_MISTAKES = (
    ({"order": "pre"}, "You normalise before each branch. BERT adds first and normalises the sum."),
    ({"order": "inside"}, "You normalise what the branch gives and add then. BERT adds first and normalises the sum."),
    ({"order": "bare"}, "The residual sums are missing: each branch is added to what came in."),
    ({"second": "none"}, "The second residual sum is missing."),
    ({"second": "input"}, "The second sum starts from the output of the first LayerNorm, not from the block's input."),
    (
        {"second": "unnormed"},
        "The first LayerNorm is missing; its output goes into the feed-forward network and the sum.",
    ),
    ({"scale": "none"}, "The scores are not divided by √d_k."),
    ({"scale": "whole"}, "Divide the scores by √d_k, not by d_k."),
    ({"scale": "width"}, "Divide the scores by the root of the head's width, not of d."),
    ({"axis": -2}, "The softmax runs along the wrong axis: each row of weights must sum to 1."),
    ({"bias": 0}, "The biases are missing."),
    ({"act": _relu}, "The activation is GELU, not ReLU."),
    ({"act": lambda x: x}, "The activation between the two maps is missing."),
    ({"act": _gelu_tanh}, "That is the tanh form of GELU; take x Φ(x) with the error function."),
    (
        {"norm": partial(_norm, ddof=1)},
        "LayerNorm divides by the root of the mean square, with n and not n - 1 components.",
    ),
    ({"interleaved": True}, "The heads are cut wrongly: head i has the components from i d_k up to (i + 1) d_k."),
)


def _case(generator, n, d, f, spread=1.0):
    def draw(*shape):
        return generator.normal(size=shape)

    w = {f"W_{name}": draw(d, d) / math.sqrt(d) for name in "QKVO"}
    w |= {"W_1": draw(f, d) / math.sqrt(d), "W_2": draw(d, f) / math.sqrt(f)}
    w |= {f"b_{name}": draw(f if name == "1" else d) / 2 for name in "QKVO12"}
    w |= {f"gain_{i}": 1 + draw(d) / 4 for i in (1, 2)} | {f"shift_{i}": draw(d) / 4 for i in (1, 2)}
    return spread * draw(n, d), w


@exercise("the-block-and-the-stack-4")
def a_block(answer) -> None:
    """A function of X, a dictionary of weights and h that computes one block of BERT."""
    if not callable(answer):
        raise Hint("Hand in a function of X, w and h that returns the new X.")
    generator = np.random.default_rng(0)

    def run(x, w, heads):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            given = {name: array.copy() for name, array in w.items()}
            output = np.asarray(answer(x.copy(), given, heads), dtype=float)
        if output.shape != x.shape:
            raise Hint(f"An input of shape {x.shape} gave an output of shape {output.shape}.")
        if not np.isfinite(output).all():
            raise Hint("Some of the outputs are infinite or not a number.")
        return output

    for n, d, f, heads in ((5, 12, 20, 3), (4, 8, 32, 1), (1, 6, 7, 2), (7, 16, 16, 16)):
        x, w = _case(generator, n, d, f)
        output, right = run(x, w, heads), _block(x, w, heads)
        if near(output, right, 1e-9):
            continue
        for mistake, hint in _MISTAKES:
            if near(output, _block(x, w, heads, **mistake), 1e-9):
                raise Hint(hint)
        if near(output, right, 1e-3):
            raise Hint("Nearly: a detail is off, such as eps (BERT has 1e-12), single precision or the form of GELU.")
        raise Hint(
            f"For n = {n}, d = {d}, f = {f} and h = {heads} it is not a block of BERT. Test each branch by itself."
        )

    x, w = _case(generator, 3, 8, 12, spread=1e-3)  # the sum has next to no spread
    for name in ("W_O", "b_O"):
        w[name] = w[name] * 1e-3
    output, right = run(x, w, 2), _block(x, w, 2)
    if not near(output, right, 1e-7):
        if near(output, _block(x, w, 2, norm=partial(_norm, eps=1e-12, outside=True)), 1e-7):
            raise Hint("The eps belongs under the root, beside the variance.")
        raise Hint("Right on ordinary inputs, wrong on vectors with little spread: is your eps 1e-12, under the root?")
    output = run(np.ones((2, 8)) * np.array([[50.0], [-50.0]]), w, 2)
    if not near(output, _block(np.ones((2, 8)) * np.array([[50.0], [-50.0]]), w, 2), 1e-6):
        raise Hint("Right on ordinary inputs, wrong on vectors whose components are all nearly equal.")


@exercise("the-block-and-the-stack-5")
def a_double(answer) -> None:
    """Another shape (L, d, h, f) with exactly as many parameters as BERT-large."""
    shape = numbers(answer, (4,), "four whole numbers: layers, width, heads, inner width")
    if (shape != np.round(shape)).any() or shape.min() < 1 or shape.max() > 10**9:
        raise Hint("All four must be whole numbers from 1 up.")
    layers, width, heads, inner = (round(size) for size in shape.tolist())
    if layers > 100 or width < 256 or heads < 2:
        raise Hint("At most 100 layers, a width of at least 256 and at least two heads.")
    if width % heads:
        raise Hint(f"{heads} heads do not divide a width of {width}.")
    if (layers, width, inner) == (24, 1024, 4096):
        raise Hint("That is BERT-large itself: heads cost nothing, so another number of them is no other size.")
    off = _parameters(layers, width, inner, 30522, 512, 2) - _parameters(24, 1024, 4096, 30522, 512, 2)
    if off:
        size = "too many" if off > 0 else "too few"
        raise Hint(f"That has {abs(off):,} parameters {size}. The count is linear in f: when is the rest divisible?")
