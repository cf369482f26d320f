"""The encoder's pieces, each against its definition: activations, rotary angles, packed attention, residuals, norms."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_models import SIZES, assert_equal, batch, our_config
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

from bertlib import Bert, BertConfig
from bertlib.attention import MultiHeadAttention, causal_mask, rotary_angles, rotate
from bertlib.embeddings import Embeddings
from bertlib.encoder import ACTIVATIONS, Encoder, EncoderLayer, FeedForward, gelu, gelu_tanh, in_pieces
from bertlib.packing import Packing, first_tokens, runs


def draw(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape))


def randomize(module, seed=0):
    """Double precision, evaluation, and every parameter drawn, LayerNorms too."""
    module = module.double().eval()
    generator = np.random.default_rng(seed)
    for parameter in module.parameters():
        shape = tuple(parameter.shape)
        parameter.data = torch.from_numpy(generator.normal(size=shape) / (shape[-1] ** 0.5 if len(shape) == 2 else 3))
    for norm in module.modules():
        if isinstance(norm, torch.nn.LayerNorm):
            norm.weight.data += 1
    return module


# Activations


def test_gelu_by_hand():
    """x Phi(x): Phi(0) = 1/2, Phi(1) = 0.8413447460685429."""
    x = torch.tensor([0.0, 1.0, -1.0], dtype=torch.float64)
    expected = torch.tensor([0.0, 0.8413447460685429, -0.15865525393145707], dtype=torch.float64)
    torch.testing.assert_close(gelu(x), expected, rtol=1e-15, atol=1e-16)


def test_activations_are_what_their_names_say():
    x = torch.linspace(-8, 8, 4001, dtype=torch.float64)
    torch.testing.assert_close(ACTIVATIONS["gelu"](x), gelu(x), rtol=1e-12, atol=1e-15)
    torch.testing.assert_close(ACTIVATIONS["gelu_new"](x), gelu_tanh(x), rtol=1e-12, atol=1e-15)
    torch.testing.assert_close(ACTIVATIONS["gelu_pytorch_tanh"](x), gelu_tanh(x), rtol=1e-12, atol=1e-15)
    assert torch.equal(ACTIVATIONS["relu"](x), x.clamp(min=0))
    for name, act in ACTIVATIONS.items():
        torch.testing.assert_close(act(x), transformers.activations.ACT2FN[name](x), rtol=1e-12, atol=1e-15)
    assert float((gelu(x) - gelu_tanh(x)).abs().max()) == pytest.approx(4.73e-4, rel=1e-3)


@pytest.mark.parametrize("act", [gelu, gelu_tanh, *ACTIVATIONS.values()])
def test_gradients_of_the_activations(act):
    x = (draw(20) * 2).requires_grad_()
    assert torch.autograd.gradcheck(act, x)


# Rotary positions


def test_rotation_is_multiplication_by_a_unit_complex_number():
    x, positions = draw(5, 8), torch.tensor([0, 1, 2, 7, 100])
    turned = rotate(x, rotary_angles(positions, 8))
    pairs = torch.complex(x[:, :4], x[:, 4:])
    for i in range(4):
        angle = positions.double() * 10000.0 ** (-2 * i / 8)
        expected = pairs[:, i] * torch.complex(angle.cos(), angle.sin())
        torch.testing.assert_close(torch.complex(turned[:, i], turned[:, i + 4]), expected, rtol=1e-13, atol=1e-14)
    assert torch.equal(turned[0], x[0])


def test_rotation_is_the_references():
    q, k = draw(1, 2, 6, 8), draw(1, 2, 6, 8, seed=1)
    angles = rotary_angles(torch.arange(6), 8)
    both = torch.cat([angles, angles], dim=-1)[None]
    expected = apply_rotary_pos_emb(q, k, both.cos(), both.sin())
    for mine, theirs in zip((rotate(q, angles), rotate(k, angles)), expected, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-14, atol=1e-15)


@given(m=st.integers(0, 600), n=st.integers(0, 600), shift=st.integers(0, 600))
@settings(deadline=None, max_examples=40)
def test_turned_products_depend_on_the_difference_of_positions(m, n, shift):
    q, k = draw(8), draw(8, seed=1)

    def product(a, b):
        return rotate(q, rotary_angles(torch.tensor(a), 8)) @ rotate(k, rotary_angles(torch.tensor(b), 8))

    torch.testing.assert_close(product(m + shift, n + shift), product(m, n), rtol=0, atol=1e-10)


def test_gradients_of_the_rotation():
    angles = rotary_angles(torch.arange(3), 4)
    assert torch.autograd.gradcheck(lambda x: rotate(x, angles), draw(3, 4).requires_grad_())


def test_what_turns_has_a_partner():
    with pytest.raises(ValueError, match=r"head_dim must be even and positive, .* not 5"):
        rotary_angles(torch.arange(3), 5)
    for wrong, kind, message in (
        ((torch.arange(3), -2), ValueError, "head_dim must be even and positive"),
        ((torch.arange(3), 4.0), TypeError, "head_dim must be an integer"),
        ((torch.arange(3), 4, 0), ValueError, "base must be positive, not 0"),
        ((torch.arange(3), 4, "e"), TypeError, "base must be a number"),
        (([0, 1], 4), TypeError, "position_ids must be a tensor, not a list"),
    ):
        with pytest.raises(kind, match=message):
            rotary_angles(*wrong)
    with pytest.raises(TypeError, match=r"x must be floating-point, not torch\.int64"):
        rotate(torch.ones(3, 4).long(), rotary_angles(torch.arange(3), 4))
    with pytest.raises(ValueError, match="two components for each of 3 angles, not 8"):
        rotate(draw(3, 8), rotary_angles(torch.arange(3), 6))


def test_rotation_keeps_the_type():
    for dtype in (torch.float32, torch.bfloat16):
        assert rotate(draw(3, 4).to(dtype), rotary_angles(torch.arange(3), 4)).dtype == dtype


# Packed attention

KINDS = [(False, "absolute"), (True, "absolute"), (False, "rotary"), (True, "rotary")]


def attention_layer(causal, position, **changes):
    config = our_config(is_decoder=causal, position_embedding_type=position, **changes)
    return randomize(MultiHeadAttention(config))


def test_packed_attention_wants_lengths_and_angles_that_fit():
    plain, turning, x = attention_layer(False, "absolute"), attention_layer(False, "rotary"), draw(7, 32)
    with pytest.raises(ValueError, match="lengths must add up to the tokens, 7, not to 6"):
        plain.packed(x, [4, 2])
    with pytest.raises(ValueError, match=r"hidden_states must be \(tokens, d\), not \(1, 7, 32\)"):
        plain.packed(x[None], [7])
    with pytest.raises(ValueError, match="angles must be given: position_embedding_type says so"):
        turning.packed(x, [7])
    with pytest.raises(ValueError, match="angles must not be given"):
        plain.packed(x, [7], rotary_angles(torch.arange(7), 8))


def test_parts_are_made_from_a_configuration():
    for part in (MultiHeadAttention, FeedForward, Encoder, Embeddings):
        with pytest.raises(TypeError, match="config must be a BertConfig, not a dict"):
            part({})


def test_packed_weights_are_given_whole_and_dropped_out_of():
    layer, x = attention_layer(False, "absolute", attention_probs_dropout_prob=0.5), draw(7, 32)
    expected, weights, _ = layer.eval().packed(x, [7], weigh=True)
    dropped, same, _ = layer.train().packed(x, [7], weigh=True)
    assert torch.equal(same[0], weights[0])
    assert (dropped - expected).abs().max() > 0.01


@pytest.mark.parametrize(("causal", "position"), KINDS)
@pytest.mark.parametrize("lengths", [[5, 5, 5], [3, 1, 6], [0, 4, 0, 4, 2, 0], [7], [2, 2, 5, 5, 2]])
def test_packed_is_every_sequence_by_itself(causal, position, lengths):
    layer, x = attention_layer(causal, position), draw(sum(lengths), 32)
    places = torch.cat([torch.arange(length) for length in lengths])
    angles = rotary_angles(places, 8) if position == "rotary" else None
    filled = [part for part in x.split(lengths) if len(part)]
    alone = [layer(part[None], output_attentions=True) for part in filled]
    fused, none, nothing = layer.packed(x, lengths, angles)
    assert none == [] and nothing == []
    found, weights, scores = layer.packed(x, lengths, angles, weigh=True)
    assert len(weights) == len(scores) == len(filled)
    for outputs in (fused, found):
        assert_equal(outputs, torch.cat([z[0] for z, _ in alone]), "outputs")
    for part, weight, score, (_, expected) in zip(filled, weights, scores, alone, strict=True):
        assert_equal(weight, expected[0], "weights")
        if causal:
            assert bool((weight.triu(1) == 0).all())
            score = score.masked_fill(~causal_mask(len(part)), -torch.inf)
        assert_equal(score.softmax(-1), expected[0], "softmax of the scores")


@pytest.mark.parametrize(("causal", "position"), KINDS)
def test_the_padded_call_has_the_same_kinds(causal, position):
    """Fused, spelled out, and padded on the right: the same at the tokens."""
    layer, x = attention_layer(causal, position), draw(2, 6, 32)
    mask = torch.tensor([[1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0]])
    fused, spelled = layer(x, mask)[0], layer(x, mask, output_attentions=True)[0]
    assert_equal(fused, spelled, "fused")
    assert_equal(fused[1, :4], layer(x[1:, :4])[0][0], "padded")


def test_no_sequence_has_a_token():
    layer = attention_layer(False, "absolute")
    assert layer.packed(draw(0, 32), [0, 0])[0].shape == (0, 32)


@pytest.mark.parametrize("weigh", [False, True])
@pytest.mark.parametrize(("causal", "position"), KINDS)
def test_gradients_of_packed_attention(causal, position, weigh):
    sizes = {"hidden_size": 4, "num_attention_heads": 2}
    layer = attention_layer(causal, position, **sizes)
    angles = rotary_angles(torch.tensor([0, 1, 2, 0]), 2) if position == "rotary" else None
    x = draw(4, 4).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: layer.packed(x, [3, 1], angles, weigh)[0], x)


def test_causal_looks_back_only():
    layer, x = attention_layer(True, "absolute"), draw(6, 32)
    changed = torch.cat([x[:4], draw(2, 32, seed=9)])
    assert torch.equal(layer.packed(x, [6])[0][:4], layer.packed(changed, [6])[0][:4])
    assert causal_mask(3).tolist() == [[True, False, False], [True, True, False], [True, True, True]]


def test_runs_and_first_tokens():
    assert runs([5, 5, 0, 3, 5, 0]) == [(2, 5), (1, 3), (1, 5)]
    assert runs([0]) == runs([]) == []
    assert first_tokens([3, 0, 2, 4]).tolist() == [0, 3, 3, 5]


# Feed-forward, residuals, norms


def test_feed_forward_by_its_formula():
    network, x = randomize(FeedForward(our_config(hidden_act="relu"))), draw(5, 32)
    inner = (x @ network.inner.weight.T + network.inner.bias).clamp(min=0)
    torch.testing.assert_close(network(x), inner @ network.outer.weight.T + network.outer.bias, rtol=1e-12, atol=1e-13)


def layer_norm(x, norm, eps=1e-12):
    """(x - mean) / sqrt(variance + eps), the variance over d and not d - 1, then stretched and shifted."""
    centred = x - x.sum(-1, keepdim=True) / x.shape[-1]
    variance = (centred**2).sum(-1, keepdim=True) / x.shape[-1]
    return centred / (variance + eps).sqrt() * norm.weight + norm.bias


@pytest.mark.parametrize("eps", [1e-12, 1e-5, 0.1])
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_a_layer_by_its_formula(norm, eps):
    layer = randomize(EncoderLayer(our_config(norm=norm, layer_norm_eps=eps)))
    x = draw(9, 32)
    found, _, _ = layer(x, [4, 5])

    def attend(y):
        return layer.attention.packed(y, [4, 5])[0]

    if norm == "post":
        middle = layer_norm(x + attend(x), layer.attention_norm, eps)
        expected = layer_norm(middle + layer.feed_forward(middle), layer.feed_forward_norm, eps)
    else:
        middle = x + attend(layer_norm(x, layer.attention_norm, eps))
        expected = middle + layer.feed_forward(layer_norm(middle, layer.feed_forward_norm, eps))
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_gradients_of_a_layer(norm):
    config = our_config(norm=norm, hidden_size=4, num_attention_heads=2, intermediate_size=6)
    layer = randomize(EncoderLayer(config))
    assert torch.autograd.gradcheck(lambda x: layer(x, [3, 2])[0], draw(5, 4).requires_grad_(), atol=1e-4, rtol=1e-3)


def test_layer_norm_gradients_and_a_token_without_spread():
    norm = randomize(torch.nn.LayerNorm(4, eps=1e-12))
    x = draw(3, 4).requires_grad_()
    assert torch.autograd.gradcheck(norm, x)
    flat = torch.full((1, 4), 2.0, dtype=torch.float64)
    torch.testing.assert_close(norm(flat)[0], norm.bias)


def test_pre_norm_ends_with_a_norm():
    encoder, x = randomize(Encoder(our_config(norm="pre"))), draw(9, 32)
    expected = x
    for layer in encoder.layers:
        expected = layer(expected, [4, 5])[0]
    expected = layer_norm(expected, encoder.norm)
    found = encoder(x, [4, 5], torch.arange(9), output_hidden_states=True)
    torch.testing.assert_close(found.hidden, expected, rtol=1e-12, atol=1e-13)
    assert torch.equal(found.hidden_states[-1], found.hidden) and torch.equal(found.hidden_states[0], x)
    assert len(found.hidden_states) == 4
    assert Encoder(our_config()).norm is None


def test_pre_norm_is_the_references():
    """RoBERTa-PreLayerNorm: the same encoder, positions counted from 2 and one segment."""
    sizes = {name: value for name, value in SIZES.items() if name != "num_labels"}
    config = transformers.RobertaPreLayerNormConfig(**sizes | {"max_position_embeddings": 18}, pad_token_id=1)
    torch.manual_seed(0)
    other = transformers.RobertaPreLayerNormModel(config)
    randomize(other)
    model = Bert(our_config(norm="pre", pad_token_id=1)).double().eval()
    theirs = other.state_dict()
    state = {
        "embeddings.token.weight": theirs["embeddings.word_embeddings.weight"],
        "embeddings.position.weight": theirs["embeddings.position_embeddings.weight"][2:],
        "embeddings.segment.weight": theirs["embeddings.token_type_embeddings.weight"],
    }
    names = [("embeddings.norm", "embeddings.LayerNorm"), ("encoder.norm", "LayerNorm"), ("pooler", "pooler.dense")]
    for i in range(3):
        mine, published = f"encoder.layers.{i}.", f"encoder.layer.{i}."
        names += [(f"{mine}attention.{x}", f"{published}attention.self.{x}") for x in ("query", "key", "value")]
        names += [
            (f"{mine}attention.output", f"{published}attention.output.dense"),
            (f"{mine}attention_norm", f"{published}attention.LayerNorm"),
            (f"{mine}feed_forward.inner", f"{published}intermediate.dense"),
            (f"{mine}feed_forward_norm", f"{published}intermediate.LayerNorm"),
            (f"{mine}feed_forward.outer", f"{published}output.dense"),
        ]
    for mine, published in names:
        state |= {f"{mine}.{kind}": theirs[f"{published}.{kind}"] for kind in ("weight", "bias")}
    model.load_state_dict(state)
    inputs = batch()
    inputs["input_ids"] = inputs["input_ids"].clamp(min=2)  # 1 is their padding, by which they count positions
    inputs["input_ids"] = torch.where(inputs["attention_mask"].bool(), inputs["input_ids"], 1)
    keep = inputs["attention_mask"].bool()
    found, expected = model(**inputs), other(**inputs)
    assert_equal(found.last_hidden_state[keep], expected.last_hidden_state[keep], "last hidden state")
    assert_equal(found.pooler_output, expected.pooler_output, "pooler output")


# Packing


@given(data=st.data(), batch=st.integers(1, 4), n=st.integers(1, 6))
@settings(deadline=None, max_examples=60)
def test_packing_by_loops(data, batch, n):
    mask = torch.tensor(
        data.draw(st.lists(st.lists(st.integers(0, 1), min_size=n, max_size=n), min_size=batch, max_size=batch))
    )
    ids = torch.arange(batch * n).view(batch, n)
    packing = Packing.of(ids, mask)
    tokens, positions = [], []
    for row in range(batch):
        columns = [column for column in range(n) if mask[row, column]]
        tokens += [int(ids[row, column]) for column in columns]
        positions += [column - columns[0] for column in columns]
    assert packing.lengths == mask.sum(1).tolist()
    assert packing.pack(ids).tolist() == tokens
    assert packing.position_ids.tolist() == positions
    torch.testing.assert_close(packing.unpack(packing.pack(ids), fill=-1), torch.where(mask.bool(), ids, -1))
    matrices = [torch.full((2, k, k), float(i + 1)) for i, k in enumerate(packing.lengths) if k]
    pairs = packing.unpack_pairs(matrices, 2)
    both = (mask[:, :, None] & mask[:, None, :]).bool()
    assert pairs.shape == (batch, 2, n, n)
    assert torch.equal(pairs[:, 0] > 0, both) and torch.equal(pairs[:, 1] > 0, both)


def test_what_cannot_be_packed_is_named():
    ids = torch.ones(2, 3, dtype=torch.long)
    for wrong, message in [
        ((ids[0],), r"input_ids must be \(batch, n\).*not \(3,\)"),
        ((ids[:0],), r"input_ids must be \(batch, n\).*not \(0, 3\)"),
        ((ids, torch.ones(2, 2)), r"attention_mask must be as input_ids, \(2, 3\), not \(2, 2\)"),
        ((ids, torch.full((2, 3), 0.5)), "attention_mask must hold only 1"),
        ((ids, torch.full((2, 3), -1e4)), "attention_mask must hold only 1"),
    ]:
        with pytest.raises(ValueError, match=message):
            Packing.of(*wrong)
    with pytest.raises(ValueError, match=r"token_type_ids must be as input_ids, \(2, 3\), not \(3, 2\)"):
        Packing.of(ids).pack(ids.T, "token_type_ids")


def test_sdpa_scale_is_the_formulas():
    """Of one head with identity projections the scores are x x^T / sqrt(d)."""
    layer = MultiHeadAttention(BertConfig(hidden_size=9, num_attention_heads=1)).double().eval()
    for linear in (layer.query, layer.key, layer.value, layer.output):
        linear.weight.data, linear.bias.data = torch.eye(9, dtype=torch.float64), torch.zeros(9, dtype=torch.float64)
    x = draw(4, 9)
    expected = F.softmax(x @ x.T / math.sqrt(9), dim=-1) @ x
    torch.testing.assert_close(layer.packed(x, [4])[0], expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(
    ("rows", "pieces"), [(0, [0]), (1, [1]), (4, [4]), (5, [4, 1]), (12, [4, 4, 4]), (13, [4, 4, 4, 1])]
)
def test_in_pieces(rows, pieces):
    """Calls of at most `size` rows where no gradient is wanted, and one call where one is; the answer is whole."""
    x = draw(rows, 3)
    seen = []

    class Cube(torch.nn.Module):
        def forward(self, piece):
            seen.append(len(piece))
            return piece**3

    with torch.no_grad():
        assert torch.equal(in_pieces(Cube(), x, size=4), x**3)
    assert seen == pieces
    assert torch.equal(in_pieces(Cube(), x, size=4), x**3)
    assert seen == [*pieces, rows]


@pytest.mark.parametrize("register", ["register_forward_hook", "register_forward_pre_hook"])
@pytest.mark.parametrize("part", ["", "inner", "outer"])
def test_a_hook_sees_all_tokens_at_once(register, part):
    module = FeedForward(BertConfig(hidden_size=8, num_attention_heads=2, intermediate_size=16))
    seen = []
    getattr(module.get_submodule(part), register)(lambda module, inputs, *output: seen.append(len(inputs[0])))
    with torch.no_grad():
        in_pieces(module, torch.zeros(9, 8), size=4)
    assert seen == [9]


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_a_long_batch_is_one_matter_in_pieces(norm):
    """2,500 tokens, more than two pieces: the layer gives what it gives with gradients on, where nothing is cut."""
    sizes = dict(hidden_size=8, num_attention_heads=2, intermediate_size=16, num_hidden_layers=1)
    layer = randomize(EncoderLayer(BertConfig(**sizes, norm=norm)))
    calls, network = [], layer.feed_forward.forward
    layer.feed_forward.forward = lambda piece: calls.append(len(piece)) or network(piece)
    x = draw(2500, 8)
    whole = layer(x, [50] * 50)[0]
    with torch.no_grad():
        torch.testing.assert_close(layer(x, [50] * 50)[0], whole.detach(), rtol=1e-12, atol=1e-13)
    assert calls == [2500, 1024, 1024, 452]
