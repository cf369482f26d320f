"""The exercises on the block, the stack and BERT-base: right answers found in another way, and the hints."""

import numpy as np
import pytest
import torch
from judged import right, wrong

from bertlib import Bert, BertConfig, count_parameters

# the-block-and-the-stack-1: the parameters of a very small BERT

SMALL = BertConfig(
    vocab_size=20,
    max_position_embeddings=10,
    type_vocab_size=3,
    hidden_size=8,
    num_hidden_layers=3,
    num_attention_heads=2,
    intermediate_size=20,
)


def held(**changes):
    config = BertConfig.from_dict(SMALL.to_dict() | changes)
    return sum(parameter.numel() for parameter in Bert(config).parameters())


def test_count():
    right("the-block-and-the-stack-1", held())
    right("the-block-and-the-stack-1", sum(count_parameters(SMALL).values()))
    right("the-block-and-the-stack-1", "2356")


def without(*kinds):
    """The count without the parameters whose names contain one of these."""
    model = Bert(SMALL)
    return sum(p.numel() for name, p in model.named_parameters() if not any(kind in name for kind in kinds))


@pytest.mark.parametrize(
    "answer,hint",
    [
        (without("pooler"), "left out the pooler"),
        (without("pooler.weight"), "One square matrix is missing"),
        (without("pooler.bias"), "One bias of 8 numbers"),
        (without("segment"), "what does BERT add to words and places"),
        (without("position"), "that of the places"),
        (without("embeddings.norm"), "before the first layer"),
        (without("attention_norm"), "a block has two"),
        (without("attention_norm", "feed_forward_norm"), "the LayerNorms of the blocks; both"),
        (without("norm.bias"), "a gain and a shift, two numbers"),
        (without("attention.output"), "four square maps in attention"),
        (without("attention.output", "attention.value"), "three projections and W_O"),
        (held() - 3 * 4 * 8, "biases of the attention maps"),
        (held() - 3 * (20 + 8), "biases of the feed-forward network"),
        (held() - 3 * (4 * 8 + 20 + 8) - 8, "of all linear maps"),
        (held(intermediate_size=32), "not four times the width"),
        (held(num_hidden_layers=1), "three layers"),
        (held() + 3 * 3 * 72, "heads cost nothing"),
        (1000, "too few"),
        (10**7, "too many"),
        (2356.5, "not a whole number"),
        ([2356], "shape (1,), not one number"),
        ("many", "does not read as numbers"),
        (None, "infinite or not a number"),
        (float("inf"), "infinite or not a number"),
    ],
)
def test_wrong_count(answer, hint):
    wrong("the-block-and-the-stack-1", answer, hint)


# the-block-and-the-stack-2: when the square takes over


def multiplications(length, quadratic):
    """Of one layer of width 512 with 8 heads and inner width 1536, summed map by map."""
    if quadratic:
        return 8 * (length * length * 64) + 8 * (length * length * 64)
    return length * (4 * 512 * 512 + 512 * 1536 + 1536 * 512)


def test_crossing():
    (length,) = [n for n in range(1, 5000) if multiplications(n, True) == multiplications(n, False)]
    right("the-block-and-the-stack-2", length)
    right("the-block-and-the-stack-2", float(length))


@pytest.mark.parametrize(
    "answer,hint",
    [
        (6 * 512, "6 d holds for f = 4d"),
        (4 * 512 + 2 * 1536, "Two products grow with the square"),
        (2 * 512, "linear map for each token too"),
        (512 + 1536 / 2, "That is half"),
        (1.5 * 512 + 1536, "W_O among them"),
        (512 + 1536, "queries, keys, values"),
        (2 * 512 + 1536 / 2, "two maps, out and back"),
        (8 * 2560, "there are h of them"),
        (2560 / 8, "every pair"),
        (2 * 512 * 2560, "nearly there"),
        (512, "Write both costs"),
        (-2560, "Write both costs"),
        ((1, 2), "not one number"),
        ("long", "does not read as numbers"),
        (None, "infinite or not a number"),
    ],
)
def test_wrong_crossing(answer, hint):
    wrong("the-block-and-the-stack-2", answer, hint)


# the-block-and-the-stack-3: parameters that nobody can see


def by_svd(V, P, S, d):
    """The kernel's dimension from the singular values of the map itself, built by feeding it unit vectors."""

    def sums(tables):
        t, p, s = np.split(tables.reshape(-1, d), [V, V + P])
        x = t[:, None, None] + p[None, :, None] + s[None, None]
        return (x - x.mean(-1, keepdims=True)).ravel()

    size = (V + P + S) * d
    values = np.linalg.svd(np.stack([sums(unit) for unit in np.eye(size)]), compute_uv=False)
    return size - int((values > 1e-9).sum())


def test_invisible():
    right("the-block-and-the-stack-3", by_svd)
    right("the-block-and-the-stack-3", lambda V, P, S, d: V + P + S + 2 * d - 2)


@pytest.mark.parametrize(
    "answer,hint",
    [
        (lambda V, P, S, d: V + P + S, "constant shifts of each row"),
        (lambda V, P, S, d: 2 * d, "subtracting the mean hide"),
        (lambda V, P, S, d: 2 * (d - 1), "subtracting the mean hide"),
        (lambda V, P, S, d: V + P + S + 2 * d, "counted twice"),
        (lambda V, P, S, d: V + P + S + d - 1, "how many independent ways"),
        (lambda V, P, S, d: V + P + S + 3 * (d - 1), "not all free"),
        (lambda V, P, S, d: V + P + S + 3 * d, "And constant ones"),
        (lambda V, P, S, d: (V + P + S) * d, "every change of the tables"),
        (lambda V, P, S, d: (V + P + S - 2) * (d - 1), "visible changes"),
        (lambda V, P, S, d: 0, "too small"),
        (lambda V, P, S, d: 10**6, "too large"),
        (lambda V, P, S, d: 1.5, "not a whole number"),
        (lambda V, P, S, d: (V, P), "not one number"),
        (lambda V, P, S, d: "few", "does not read as numbers"),
        (lambda V, P, S, d: None, "infinite or not a number"),
        (lambda V: V, "TypeError"),
        (15, "Hand in a function"),
        ("V + P + S", "Hand in a function"),
        (None, "Hand in a function"),
    ],
)
def test_wrong_invisible(answer, hint):
    wrong("the-block-and-the-stack-3", answer, hint)


# the-block-and-the-stack-4: a block, by torch's own encoder layer


def by_torch(X, w, h, norm_first=False, activation="gelu", eps=1e-12, dtype=torch.float64, swap=None):
    d, f = X.shape[1], len(w["W_1"])
    layer = torch.nn.TransformerEncoderLayer(
        d, h, f, 0.0, activation, layer_norm_eps=eps, batch_first=True, norm_first=norm_first, dtype=dtype
    )

    def tensor(*names):
        return torch.from_numpy(np.concatenate([w[name] for name in names])).to(dtype)

    layer.load_state_dict(
        {
            "self_attn.in_proj_weight": tensor("W_Q", "W_K", "W_V"),
            "self_attn.in_proj_bias": tensor("b_Q", "b_K", "b_V"),
            "self_attn.out_proj.weight": tensor("W_O"),
            "self_attn.out_proj.bias": tensor("b_O"),
            "linear1.weight": tensor("W_1"),
            "linear1.bias": tensor("b_1"),
            "linear2.weight": tensor("W_2"),
            "linear2.bias": tensor("b_2"),
            "norm1.weight": tensor("gain_1"),
            "norm1.bias": tensor("shift_1"),
            "norm2.weight": tensor("gain_2"),
            "norm2.bias": tensor("shift_2"),
        }
    )
    with torch.no_grad():
        return layer.train()(torch.from_numpy(X).to(dtype)[None])[0].numpy()


def block(X, w, h, order="post", scale=None, axis=-1, cut="heads", act=None, ddof=0, eps=1e-12, bias=1, outside=False):
    """A block by torch's functions, with a choice of mistakes."""
    w = {name: torch.from_numpy(array) for name, array in w.items()}
    x = torch.from_numpy(X)
    n, d = x.shape

    def lin(x, name):
        return x @ w["W_" + name].T + bias * w["b_" + name]

    def norm(x, i):
        x = x - x.mean(-1, keepdim=True)
        variance = (x**2).sum(-1, keepdim=True) / (d - ddof)
        root = variance.sqrt() + eps if outside else (variance + eps).sqrt()
        return x / root * w[f"gain_{i}"] + w[f"shift_{i}"]

    def split(x):
        x = x.view(n, h, -1) if cut == "heads" else x.view(n, -1, h).transpose(1, 2)
        return x.transpose(0, 1)

    def attend(x):
        q, k, v = (split(lin(x, name)) for name in "QKV")
        by = q.shape[-1] ** 0.5 if scale is None else scale(q.shape[-1], d)
        z = (q @ k.transpose(1, 2) / by).softmax(axis) @ v
        return lin(z.transpose(0, 1).reshape(n, d), "O")

    def feed(x):
        return lin((act or torch.nn.functional.gelu)(lin(x, "1")), "2")

    if order == "pre":
        x = x + attend(norm(x, 1))
        return (x + feed(norm(x, 2))).numpy()
    if order == "inside":
        x = x + norm(attend(x), 1)
        return (x + norm(feed(x), 2)).numpy()
    if order == "bare":
        return norm(feed(norm(attend(x), 1)), 2).numpy()
    summed = x + attend(x)
    middle = norm(summed, 1)
    second = {"post": middle, "no second": 0, "from input": x, "unnormed": summed}[order]
    return norm(second + feed(summed if order == "unnormed" else middle), 2).numpy()


def test_block():
    right("the-block-and-the-stack-4", by_torch)
    right("the-block-and-the-stack-4", block)


def bert_layer(X, w, h):
    """bertlib's own layer."""
    from bertlib.encoder import EncoderLayer

    layer = EncoderLayer(BertConfig(hidden_size=X.shape[1], num_attention_heads=h, intermediate_size=len(w["W_1"])))
    layer = layer.double().eval()
    names = {"attention.query": "Q", "attention.key": "K", "attention.value": "V", "attention.output": "O"}
    names |= {"feed_forward.inner": "1", "feed_forward.outer": "2"}
    state = {f"{ours}.weight": w["W_" + name] for ours, name in names.items()}
    state |= {f"{ours}.bias": w["b_" + name] for ours, name in names.items()}
    for ours, i in (("attention_norm", 1), ("feed_forward_norm", 2)):
        state |= {f"{ours}.weight": w[f"gain_{i}"], f"{ours}.bias": w[f"shift_{i}"]}
    layer.load_state_dict({name: torch.from_numpy(array) for name, array in state.items()})
    with torch.no_grad():
        return layer(torch.from_numpy(X), [len(X)])[0].numpy()


def test_block_of_the_library():
    right("the-block-and-the-stack-4", bert_layer)


def faulty(**fault):
    return lambda X, w, h: block(X, w, h, **fault)


def only_for_one_head(X, w, h):
    return block(X, w, 1)


def spoils_its_input(X, w, h):
    X *= 0
    w.clear()
    return X


@pytest.mark.parametrize(
    "answer,hint",
    [
        (lambda X, w, h: by_torch(X, w, h, norm_first=True), "You normalise before each branch"),
        (faulty(order="pre"), "You normalise before each branch"),
        (faulty(order="inside"), "You normalise what the branch gives"),
        (faulty(order="bare"), "The residual sums are missing"),
        (faulty(order="no second"), "The second residual sum is missing"),
        (faulty(order="from input"), "not from the block's input"),
        (faulty(order="unnormed"), "The first LayerNorm is missing"),
        (faulty(scale=lambda d_k, d: 1), "not divided by √d_k"),
        (faulty(scale=lambda d_k, d: d_k), "not by d_k"),
        (faulty(scale=lambda d_k, d: d**0.5), "not of d"),
        (faulty(axis=-2), "wrong axis"),
        (faulty(cut="interleaved"), "The heads are cut wrongly"),
        (faulty(act=torch.relu), "GELU, not ReLU"),
        (lambda X, w, h: by_torch(X, w, h, activation="relu"), "GELU, not ReLU"),
        (faulty(act=lambda x: x), "activation between the two maps"),
        (faulty(act=lambda x: torch.nn.functional.gelu(x, approximate="tanh")), "tanh form"),
        (faulty(ddof=1), "not n - 1 components"),
        (faulty(bias=0), "The biases are missing"),
        (faulty(eps=1e-5), "a detail is off"),
        (lambda X, w, h: by_torch(X, w, h, dtype=torch.float32), "a detail is off"),
        (faulty(eps=1e-10), "little spread"),
        (faulty(outside=True), "under the root, beside the variance"),
        (only_for_one_head, "not a block of BERT"),
        (lambda X, w, h: X, "not a block of BERT"),
        (spoils_its_input, "not a block of BERT"),
        (lambda X, w, h: block(X, w, h) * np.nan, "infinite or not a number"),
        (lambda X, w, h: block(X, w, h).T, "gave an output of shape (12, 5)"),
        (lambda X, w, h: None, "gave an output of shape ()"),
        (lambda X, w, h: "block", "ValueError"),
        (lambda X, w: X, "TypeError"),
        (lambda X, w, h: w["W_q"], "KeyError"),
        (5, "Hand in a function"),
        ("block", "Hand in a function"),
        (None, "Hand in a function"),
    ],
)
def test_wrong_block(answer, hint):
    wrong("the-block-and-the-stack-4", answer, hint)


# the-block-and-the-stack-5: a double of BERT-large


@pytest.mark.parametrize("shape", [(22, 323, 17, 22184), (11, 648, 12, 20752), (4, 725, 5, 52322), (4, 2253, 3, 9920)])
def test_double(shape):
    right("the-block-and-the-stack-5", shape)
    right("the-block-and-the-stack-5", np.array(shape, dtype=float))
    layers, width, heads, inner = shape
    large = dict(num_hidden_layers=24, hidden_size=1024, num_attention_heads=16, intermediate_size=4096)
    double = dict(num_hidden_layers=layers, hidden_size=width, num_attention_heads=heads, intermediate_size=inner)
    with torch.device("meta"):
        counts = [sum(p.numel() for p in Bert(BertConfig(**sizes)).parameters()) for sizes in (large, double)]
    assert counts[0] == counts[1] == 335_141_888


@pytest.mark.parametrize(
    "answer,hint",
    [
        ((24, 1024, 16, 4096), "BERT-large itself"),
        ((24, 1024, 32, 4096), "BERT-large itself"),
        ((24, 1024, 16, 4097), "49,176 parameters too many"),
        ((24, 1024, 16, 4095), "49,176 parameters too few"),
        ((11, 648, 20752, 12), "do not divide"),
        ((11, 648, 7, 20752), "7 heads do not divide"),
        ((11, 648, 1, 20752), "at least two heads"),
        ((101, 648, 2, 1), "At most 100 layers"),
        ((4, 8, 2, 10**6), "a width of at least 256"),
        ((11, 648, 12, 20752.5), "whole numbers"),
        ((0, 648, 12, 20752), "whole numbers"),
        ((11, 648, 12, -5), "whole numbers"),
        ((11, 648, 12, 1e300), "whole numbers"),
        ((11, 648, 12), "shape (3,), not an array of shape (4,)"),
        ("11, 648, 12, 20752", "does not read as numbers"),
        (None, "not an array of shape (4,)"),
        ((11, 648, 12, float("nan")), "infinite or not a number"),
        (lambda: 0, "does not read as numbers"),
    ],
)
def test_wrong_double(answer, hint):
    wrong("the-block-and-the-stack-5", answer, hint)
