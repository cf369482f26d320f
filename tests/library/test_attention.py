"""The attention of bertlib: the spelled-out form against hand-made figures, finite differences, torch's own layers and
properties that any weighted average has; the fused form against the spelled-out one, masks and gradients included.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bertlib import BertConfig
from bertlib.attention import (
    MultiHeadAttention,
    attention,
    attention_scores,
    attention_weights,
    causal_mask,
    fused_attention,
    padding_mask,
)

FORMS = {"spelled out": lambda *args, **kwargs: attention(*args, **kwargs)[0], "fused": fused_attention}
CONFIG = BertConfig(hidden_size=24, num_attention_heads=3, attention_probs_dropout_prob=0.0)


@pytest.fixture(params=FORMS, ids=lambda name: name.replace(" ", "_"))
def form(request):
    return FORMS[request.param]


def draw(*shape, seed=0, dtype=torch.float64):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape)).to(dtype)


def triple(*leading, n=5, m=7, d_k=4, d_v=3, seed=0, dtype=torch.float64):
    """Queries, keys and values of unequal lengths and widths."""
    return (
        draw(*leading, n, d_k, seed=seed, dtype=dtype),
        draw(*leading, m, d_k, seed=seed + 1, dtype=dtype),
        draw(*leading, m, d_v, seed=seed + 2, dtype=dtype),
    )


def draw_mask(*shape, seed=0, share=0.6):
    return torch.from_numpy(np.random.default_rng(seed).random(shape) < share)


def loop_attention(query, key, value, mask=None, scale=None):
    """Attention of one sequence by the definition: one query, one key, one number at a time, in Python's own floats."""
    query, key, value = query.tolist(), key.tolist(), value.tolist()
    scale = 1 / math.sqrt(len(query[0])) if scale is None else scale
    outputs, weights = [], []
    for i, q in enumerate(query):
        allowed = [j for j in range(len(key)) if mask is None or bool(mask[i][j])]
        scores = {j: scale * sum(a * b for a, b in zip(q, key[j], strict=True)) for j in allowed}
        top = max(scores.values(), default=0.0)
        total = sum(math.exp(s - top) for s in scores.values())
        row = [math.exp(scores[j] - top) / total if j in scores else 0.0 for j in range(len(key))]
        weights.append(row)
        outputs.append([sum(a * v[c] for a, v in zip(row, value, strict=True)) for c in range(len(value[0]))])
    return torch.tensor(outputs, dtype=torch.float64), torch.tensor(weights, dtype=torch.float64)


# The formula


def test_scores_by_hand():
    query = torch.tensor([[1.0, 2.0, 0.0, 1.0]])
    key = torch.tensor([[3.0, 1.0, 5.0, 1.0], [0.0, -1.0, 2.0, 4.0]])
    assert torch.equal(attention_scores(query, key, scale=1.0), torch.tensor([[6.0, 2.0]]))
    assert torch.equal(attention_scores(query, key), torch.tensor([[3.0, 1.0]]))  # d_k = 4: halved


def test_weights_and_output_by_hand(form):
    """Scores 0, ln 2 and ln 3 give weights 1/6, 1/3 and 1/2."""
    query = torch.tensor([[2.0, 0.0, 0.0, 0.0]], dtype=torch.float64)
    key = torch.zeros(3, 4, dtype=torch.float64)
    key[:, 0] = torch.tensor([0.0, math.log(2), math.log(3)])
    value = torch.tensor([[6.0, 0.0], [0.0, 6.0], [6.0, 6.0]], dtype=torch.float64)
    torch.testing.assert_close(form(query, key, value), torch.tensor([[4.0, 5.0]], dtype=torch.float64))
    weights = attention(query, key, value)[1]
    torch.testing.assert_close(weights, torch.tensor([[1 / 6, 1 / 3, 1 / 2]], dtype=torch.float64))


@pytest.mark.parametrize("scale", [None, 1.0, 0.3, -2.0, 0.0])
@pytest.mark.parametrize("masked", [False, True])
def test_equal_to_the_loop(form, scale, masked):
    query, key, value = triple()
    mask = draw_mask(5, 7) if masked else None
    outputs, weights = loop_attention(query, key, value, mask, scale)
    torch.testing.assert_close(form(query, key, value, mask, scale), outputs, rtol=1e-12, atol=1e-13)
    torch.testing.assert_close(attention(query, key, value, mask, scale)[1], weights, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("leading", [(), (2,), (2, 3), (2, 1, 3)])
def test_leading_dimensions_are_independent(form, leading):
    """A batch gives what each of its members gives alone."""
    query, key, value = triple(*leading)
    mask = draw_mask(*leading, 5, 7)
    together = form(query, key, value, mask)
    assert together.shape == (*leading, 5, 3)
    for index in itertools.product(*map(range, leading)):
        alone = form(query[index], key[index], value[index], mask[index])
        torch.testing.assert_close(together[index], alone, rtol=1e-12, atol=1e-13)


def test_keys_may_be_shared_by_a_batch(form):
    query, key, value = triple(2, 3)
    torch.testing.assert_close(
        form(query, key[:1, :1], value[:1, :1]),
        form(query, key[:1, :1].expand(2, 3, 7, 4), value[:1, :1].expand(2, 3, 7, 3)),
    )


# A weighted average: properties that hold for any input

SIZES = st.tuples(st.integers(1, 6), st.integers(1, 6), st.integers(1, 5), st.integers(1, 4))
SEEDS = st.integers(0, 2**32 - 1)


def any_case(sizes, seed, spread=1.0):
    n, m, d_k, d_v = sizes
    query, key, value = triple(n=n, m=m, d_k=d_k, d_v=d_v, seed=seed)
    return spread * query, key, value, draw_mask(n, m, seed=seed + 3)


@given(sizes=SIZES, seed=SEEDS, spread=st.sampled_from([0.0, 1.0, 30.0, 1e4]))
@settings(deadline=None, max_examples=60)
def test_rows_are_distributions_and_outputs_lie_between_the_values(sizes, seed, spread):
    query, key, value, mask = any_case(sizes, seed, spread)
    outputs, weights = attention(query, key, value, mask)
    some = mask.any(dim=-1)
    assert bool((weights >= 0).all())
    torch.testing.assert_close(weights.sum(-1), some.double(), rtol=0, atol=1e-14)
    assert bool((weights[~mask] == 0).all())
    for i in range(len(query)):
        if some[i]:
            allowed = value[mask[i]]
            assert bool((outputs[i] >= allowed.min(0).values - 1e-12).all())
            assert bool((outputs[i] <= allowed.max(0).values + 1e-12).all())


@given(sizes=SIZES, seed=SEEDS)
@settings(deadline=None, max_examples=60)
def test_masking_a_key_is_leaving_it_out(sizes, seed):
    query, key, value, mask = any_case(sizes, seed)
    keep = mask[0]
    for form in FORMS.values():
        masked = form(query, key, value, keep.expand(len(query), -1))
        if keep.any():
            torch.testing.assert_close(masked, form(query, key[keep], value[keep]), rtol=1e-12, atol=1e-13)
        else:
            assert bool((masked == 0).all())


@given(sizes=SIZES, seed=SEEDS)
@settings(deadline=None, max_examples=40)
def test_both_forms_agree(sizes, seed):
    query, key, value, mask = any_case(sizes, seed)
    torch.testing.assert_close(
        attention(query, key, value, mask)[0], fused_attention(query, key, value, mask), rtol=1e-11, atol=1e-12
    )


@given(sizes=SIZES, seed=SEEDS)
@settings(deadline=None, max_examples=40)
def test_what_the_softmax_cannot_see(sizes, seed):
    """A vector added to every key adds one number to a row of scores; one added to every value joins every output."""
    query, key, value, _ = any_case(sizes, seed)
    shift_k, shift_v = draw(sizes[2], seed=seed + 4), draw(sizes[3], seed=seed + 5)
    for form in FORMS.values():
        before = form(query, key, value)
        torch.testing.assert_close(form(query, key + shift_k, value), before, rtol=1e-10, atol=1e-11)
        torch.testing.assert_close(form(query, key, value + shift_v), before + shift_v, rtol=1e-10, atol=1e-11)


@given(sizes=SIZES, seed=SEEDS)
@settings(deadline=None, max_examples=40)
def test_permutation(sizes, seed):
    """Queries in another order give outputs in that order; keys with their values in another order change nothing."""
    query, key, value, mask = any_case(sizes, seed)
    generator = np.random.default_rng(seed)
    rows, columns = generator.permutation(len(query)), generator.permutation(len(key))
    for form in FORMS.values():
        moved = form(query[rows], key[columns], value[columns], mask[rows][:, columns])
        torch.testing.assert_close(moved, form(query, key, value, mask)[rows], rtol=1e-11, atol=1e-12)


def test_uniform_and_one_hot_limits(form):
    query, key, value = triple()
    torch.testing.assert_close(form(query, key, value, scale=0.0), value.mean(0).expand(5, 3))
    winners = (query @ key.T).argmax(-1)
    torch.testing.assert_close(form(query, key, value, scale=1e6), value[winners])


# Masks


def test_broadcast_masks(form):
    """One mask for all queries, for all heads, for all members of a batch: the same as that mask written out."""
    query, key, value = triple(2, 3)
    for shape in [(7,), (1, 7), (5, 7), (1, 5, 7), (3, 5, 7), (2, 1, 1, 7), (2, 1, 5, 7), (2, 3, 5, 1), ()]:
        mask = draw_mask(*shape) if shape else torch.tensor(True)
        written_out = mask.expand(2, 3, 5, 7).contiguous()
        torch.testing.assert_close(form(query, key, value, mask), form(query, key, value, written_out))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_a_row_without_keys_is_zero_and_passes_no_gradient(form, dtype):
    query, key, value = (t.requires_grad_() for t in triple(2, dtype=dtype))
    mask = draw_mask(2, 5, 7)
    mask[0, 2] = False
    mask[1] = False
    outputs = form(query, key, value, mask)
    assert bool((outputs[0, 2] == 0).all())
    assert bool((outputs[1] == 0).all())
    assert bool((outputs[0, [0, 1, 3, 4]] != 0).all())
    outputs.square().sum().backward()
    for tensor in (query, key, value):
        assert bool(tensor.grad.isfinite().all())
        assert bool((tensor.grad[1] == 0).all())
    assert bool((query.grad[0, 2] == 0).all())
    assert query.grad[0, 0].abs().max() > 0


def test_weights_of_a_row_without_keys_are_zero():
    query, key, value = triple()
    mask = torch.ones(5, 7, dtype=torch.bool)
    mask[3] = False
    weights = attention(query, key, value, mask)[1]
    assert torch.equal(weights.sum(-1).round(decimals=12), torch.tensor([1, 1, 1, 0, 1], dtype=torch.float64))


def test_a_masked_key_counts_for_nothing_however_large(form):
    """A mask applied after the softmax would leave the others nothing; a finite number added would be outweighed."""
    query, key, value = triple(dtype=torch.float32)
    mask = torch.ones(5, 7, dtype=torch.bool)
    mask[:, 2] = False
    expected = form(query, key, value, mask)
    key[2], value[2] = 1e6 * query.sum(0), 1e6
    torch.testing.assert_close(form(query, key, value, mask), expected)


def test_half_precision_does_not_overflow_before_the_scaling(form):
    """256 times 20 * 20 is 102,400, more than a half-precision number holds; divided by 16 it is in range."""
    query = torch.full((1, 256), 20.0, dtype=torch.float16)
    key = torch.stack([query[0], -query[0]])
    value = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=torch.float16)
    assert torch.equal(form(query, key, value), torch.tensor([[1.0, 0.0]], dtype=torch.float16))


# Gradients


@pytest.mark.parametrize("masked", [False, True, "with a row without keys"])
def test_gradients_against_finite_differences(form, masked):
    query, key, value = (t.requires_grad_() for t in triple(2, n=3, m=4))
    mask = draw_mask(2, 3, 4) if masked else None
    if masked == "with a row without keys":
        mask[1, 0] = False
    assert torch.autograd.gradcheck(lambda q, k, v: form(q, k, v, mask), (query, key, value))


def test_gradients_of_the_weights_against_finite_differences():
    query, key, value = (t.requires_grad_() for t in triple(n=3, m=4))
    mask = draw_mask(3, 4)
    assert torch.autograd.gradcheck(lambda q, k: attention(q, k, value, mask)[1], (query, key))


@pytest.mark.parametrize("dtype,rtol,atol", [(torch.float64, 1e-10, 1e-11), (torch.float32, 1.3e-5, 4e-5)])
@pytest.mark.parametrize("masked", [False, True])
def test_both_forms_have_the_same_gradients(dtype, rtol, atol, masked):
    mask = draw_mask(2, 3, 5, 7) if masked else None
    if masked:
        mask[0, 0, 0] = False
    gradients = []
    for form in FORMS.values():
        tensors = [t.requires_grad_() for t in triple(2, 3, dtype=dtype)]
        form(*tensors, mask).square().sum().backward()
        gradients.append([t.grad for t in tensors])
    for spelled_out, fused in zip(*gradients, strict=True):
        torch.testing.assert_close(spelled_out, fused, rtol=rtol, atol=atol)


# Dropout


def test_dropout_keeps_the_mean_and_returns_whole_weights(form):
    query, key, value = triple()
    expected, whole = attention(query, key, value)
    torch.manual_seed(0)
    runs = torch.stack([form(query, key, value, dropout_p=0.5) for _ in range(4000)])
    error = (runs.mean(0) - expected).abs() / (runs.std(0) / math.sqrt(4000))
    assert error.max() < 5  # five standard errors, over 15 numbers
    assert runs.std(0).min() > 0.01
    torch.testing.assert_close(attention(query, key, value, dropout_p=0.5)[1], whole)


# Wrong input


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.uint8])
def test_a_mask_that_is_not_boolean_is_refused(form, dtype):
    with pytest.raises(TypeError, match=r"mask must be boolean.*not torch\."):
        form(*triple(), torch.ones(5, 7, dtype=dtype))


@pytest.mark.parametrize("shape", [(4,), (5, 6), (4, 7), (7, 5), (2, 5, 7), (5, 1, 7)])
def test_a_mask_that_does_not_fit_is_refused(form, shape):
    with pytest.raises(ValueError, match=r"mask must be broadcastable to \(5, 7\).*not \("):
        form(*triple(), torch.ones(shape, dtype=torch.bool))


def test_tensors_that_do_not_fit_are_refused(form):
    query, key, value = triple()
    for arguments, message in [
        ((query, key[:, :3], value), "query and key must have one width, from 1 up, not 4 and 3"),
        ((query, key, value[:6]), "key and value must have the same length, not 7 and 6"),
        ((query[0], key, value), r"query must be \(..., length, width\), not \(4,\)"),
        ((query, key[0], value), r"key must be \(..., length, width\), not \(4,\)"),
        ((query, key, value[0]), r"value must be \(..., length, width\), not \(3,\)"),
        ((query.expand(2, 5, 4), key.expand(3, 7, 4), value), "query, key must have leading dimensions that fit"),
    ]:
        with pytest.raises(ValueError, match=message):
            form(*arguments)
    with pytest.raises(ValueError, match="query and key must have one width"):
        attention_scores(query, key[:, :3])
    with pytest.raises(ValueError, match="query must be"):
        attention_scores(query[0], key)
    with pytest.raises(ValueError, match="query, key must have leading dimensions"):
        attention_scores(query.expand(3, 5, 4), key.expand(2, 7, 4))
    with pytest.raises(ValueError, match="query, key, value must have leading dimensions"):
        form(query.expand(3, 5, 4), key, value.expand(2, 7, 3))
    with pytest.raises(ValueError, match="one width, from 1 up, not 0 and 0"):
        form(query[:, :0], key[:, :0], value)
    with pytest.raises(
        TypeError, match=r"query, key must be floating-point and of one type, not torch\.float32, torch"
    ):
        form(query.float(), key, value)
    with pytest.raises(TypeError, match=r"query, key, value must be floating-point and of one type"):
        form(query, key, value.float())
    with pytest.raises(TypeError, match=r"query, key must be floating-point .*, not torch\.int64, torch\.int64"):
        form(query.long(), key.long(), value.long())
    for wrong in ("1", True):
        with pytest.raises(TypeError, match=f"scale must be a number, not {wrong!r}"):
            form(query, key, value, scale=wrong)
    for place, name in enumerate(("query", "key", "value")):
        wrong = [query, key, value]
        wrong[place] = wrong[place].tolist()
        with pytest.raises(TypeError, match=f"{name} must be a tensor, not a list"):
            form(*wrong)
    with pytest.raises(TypeError, match="mask must be a tensor, not a list"):
        form(query, key, value, [[True] * 7] * 5)


@pytest.mark.parametrize("dropout_p", [-0.5, 1.0, 1.5, math.nan])
def test_a_dropout_that_is_no_probability_is_refused(form, dropout_p):
    with pytest.raises(ValueError, match="dropout_p must be a probability"):
        form(*triple(), dropout_p=dropout_p)


def test_scores_to_be_weighed_are_checked():
    scores = torch.zeros(2, 3)
    with pytest.raises(TypeError, match="scores must be a tensor, not a list"):
        attention_weights([[1.0]])
    with pytest.raises(TypeError, match=r"scores must be floating-point, not torch\.int64"):
        attention_weights(scores.long())
    with pytest.raises(TypeError, match=r"mask must be boolean.* not torch\.int64"):
        attention_weights(scores, torch.ones(2, 3).long())
    for shape in ((3, 2), (4, 2, 3), (2, 2)):
        with pytest.raises(ValueError, match=r"mask must be broadcastable to \(2, 3\)"):
            attention_weights(scores, torch.ones(shape, dtype=torch.bool))
    with pytest.raises(ValueError, match=r"scores must be \(\.\.\., n, m\), not \(3,\)"):
        attention_weights(scores[0])


def test_a_scale_may_be_any_number(form):
    query, key, value = triple()
    assert torch.equal(form(query, key, value, scale=Fraction(1, 2)), form(query, key, value, scale=0.5))


def test_a_causal_mask_has_a_size():
    assert causal_mask(0).shape == (0, 0)
    for wrong, kind, message in (
        (-1, ValueError, "n must not be negative, not -1"),
        (2.0, TypeError, "n must be an in"),
    ):
        with pytest.raises(kind, match=message):
            causal_mask(wrong)


def test_a_dropout_that_is_no_number_is_refused(form):
    with pytest.raises(TypeError, match="dropout_p must be a number"):
        form(*triple(), dropout_p="0.1")


# The padding mask


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.float32, torch.bool])
def test_padding_mask(dtype):
    mask = padding_mask(torch.tensor([[1, 1, 0], [1, 0, 0]], dtype=dtype))
    assert mask.shape == (2, 1, 1, 3)
    assert mask.dtype == torch.bool
    assert mask[:, 0, 0].tolist() == [[True, True, False], [True, False, False]]


@pytest.mark.parametrize(
    "wrong,message",
    [
        (torch.tensor([1, 1, 0]), r"must be \(batch, n\), not \(3,\)"),
        (torch.ones(2, 1, 1, 3), r"must be \(batch, n\), not \(2, 1, 1, 3\)"),
        (torch.tensor([[0.0, -1e4]]), "only 1"),
        (torch.tensor([[2, 1]]), "only 1"),
        (torch.tensor([[math.nan, 1.0]]), "only 1"),
    ],
)
def test_a_wrong_padding_mask_is_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        padding_mask(wrong)
    with pytest.raises(TypeError, match="attention_mask must be a tensor, not a list"):
        padding_mask(wrong.tolist())


# Many heads


def draw_layer(config=CONFIG, seed=0):
    layer = MultiHeadAttention(config).double().eval()
    generator = np.random.default_rng(seed)
    for parameter in layer.parameters():
        parameter.data = torch.from_numpy(generator.normal(size=parameter.shape) / math.sqrt(config.hidden_size))
    return layer


def torch_layer(layer):
    """torch.nn.MultiheadAttention with the same weights, stacked in its own way."""
    other = torch.nn.MultiheadAttention(24, 3, batch_first=True, dtype=torch.float64).eval()
    with torch.no_grad():
        other.in_proj_weight.copy_(torch.cat([layer.query.weight, layer.key.weight, layer.value.weight]))
        other.in_proj_bias.copy_(torch.cat([layer.query.bias, layer.key.bias, layer.value.bias]))
        other.out_proj.load_state_dict(layer.output.state_dict())
    return other


ATTENTION_MASK = torch.tensor([[1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0], [1, 0, 1, 0, 0, 0]])


@pytest.mark.parametrize("attention_mask", [None, ATTENTION_MASK], ids=["whole", "padded"])
@pytest.mark.parametrize("output_attentions", [False, True])
def test_equal_to_torchs_own_layer(attention_mask, output_attentions):
    layer, x = draw_layer(), draw(3, 6, 24)
    padding = None if attention_mask is None else attention_mask == 0
    results = []
    for run in (
        lambda x: layer(x, attention_mask, output_attentions),
        lambda x: torch_layer(layer)(x, x, x, key_padding_mask=padding, average_attn_weights=False),
    ):
        inputs = x.clone().requires_grad_()
        outputs, weights = run(inputs)
        outputs.square().sum().backward()
        results.append((outputs, inputs.grad, weights))
    ours, theirs = results
    torch.testing.assert_close(ours[0], theirs[0], rtol=1e-11, atol=1e-12)
    torch.testing.assert_close(ours[1], theirs[1], rtol=1e-10, atol=1e-11)
    if output_attentions:
        assert ours[2].shape == (3, 3, 6, 6)
        torch.testing.assert_close(ours[2], theirs[2], rtol=1e-11, atol=1e-12)
    else:
        assert ours[2] is None


def test_equal_to_a_loop_over_heads():
    """Head i reads rows 8 i to 8 i + 8 of the stacked projections; the joined heads go through W_O."""
    layer, x = draw_layer(), draw(1, 6, 24)
    parts = []
    for head in range(3):
        rows = slice(8 * head, 8 * head + 8)
        q, k, v = (x[0] @ m.weight[rows].T + m.bias[rows] for m in (layer.query, layer.key, layer.value))
        parts.append(loop_attention(q.detach(), k.detach(), v.detach())[0])
    expected = torch.cat(parts, dim=-1) @ layer.output.weight.T + layer.output.bias
    torch.testing.assert_close(layer(x)[0][0], expected, rtol=1e-11, atol=1e-12)


def test_gradients_of_the_layer_against_finite_differences():
    config = BertConfig(hidden_size=4, num_attention_heads=2, attention_probs_dropout_prob=0.0)
    layer, x = draw_layer(config), draw(2, 3, 4).requires_grad_()
    mask = torch.tensor([[1, 1, 0], [0, 0, 0]])
    names, parameters = zip(*layer.named_parameters(), strict=True)

    def run(x, *values):
        return torch.func.functional_call(layer, dict(zip(names, values, strict=True)), (x, mask))[0]

    assert torch.autograd.gradcheck(run, (x, *parameters))


def test_a_batch_gives_what_its_members_give_alone_without_their_padding():
    layer, x = draw_layer(), draw(2, 6, 24)
    mask = torch.tensor([[1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0]])
    together = layer(x, mask)[0]
    torch.testing.assert_close(together[0], layer(x[:1])[0][0], rtol=1e-11, atol=1e-12)
    torch.testing.assert_close(together[1, :4], layer(x[1:, :4])[0][0], rtol=1e-11, atol=1e-12)


def test_a_sequence_that_is_all_padding_gives_the_output_bias():
    layer, x = draw_layer(), draw(2, 3, 24)
    mask = torch.tensor([[1, 1, 1], [0, 0, 0]])
    for output_attentions in (False, True):
        outputs = layer(x, mask, output_attentions)[0]
        torch.testing.assert_close(outputs[1], layer.output.bias.expand(3, 24))
        assert bool(outputs[0].isfinite().all())


def test_permutation_equivariance_of_the_layer():
    layer, x = draw_layer(), draw(2, 6, 24)
    order = np.random.default_rng(1).permutation(6)
    mask = torch.tensor([[1, 1, 1, 1, 1, 1], [1, 0, 1, 1, 0, 1]])
    torch.testing.assert_close(layer(x[:, order], mask[:, order])[0], layer(x, mask)[0][:, order])


def test_dropout_acts_in_training_alone():
    config = BertConfig(hidden_size=24, num_attention_heads=3, attention_probs_dropout_prob=0.5)
    layer, x = draw_layer(config), draw(1, 6, 24)
    for output_attentions in (False, True):
        layer.eval()
        still = layer(x, None, output_attentions)[0]
        assert torch.equal(still, layer(x, None, output_attentions)[0])
        layer.train()
        torch.manual_seed(0)
        first, second = (layer(x, None, output_attentions)[0] for _ in range(2))
        assert (first - second).abs().max() > 1e-3


def test_parameters_of_bert_bases_layer():
    """Four maps of 768 x 768 with their biases: 4 (768^2 + 768), whatever the number of heads."""
    for heads in (1, 12):
        layer = MultiHeadAttention(BertConfig(num_attention_heads=heads))
        assert sum(parameter.numel() for parameter in layer.parameters()) == 2_362_368


def test_wrong_hidden_states_and_masks_are_refused():
    layer, x = draw_layer(), draw(2, 6, 24)
    for wrong in (x[0], x[..., :23], x[None]):
        with pytest.raises(ValueError, match=r"hidden_states must be \(batch, n, 24\), not \("):
            layer(wrong)
    for wrong in (torch.ones(2, 5), torch.ones(1, 6), torch.ones(2, 1), torch.ones(6), torch.ones(2, 1, 1, 6)):
        with pytest.raises(ValueError, match=r"attention_mask must be \(batch, n\), here \(2, 6\), not \("):
            layer(x, wrong)
    with pytest.raises(ValueError, match="only 1"):
        layer(x, torch.full((2, 6), -1e4))
    with pytest.raises(TypeError, match="hidden_states must be a tensor, not a list"):
        layer(x.tolist())
    with pytest.raises(TypeError, match="attention_mask must be a tensor, not a list"):
        layer(x, [[1] * 6] * 2)
