"""The encoder against the reference, rung by rung: embeddings, attention, layer, stack, pooler, and the whole."""

import pytest
import torch
from reference_models import LENGTHS, assert_equal, assert_same_gradients, batch, ours, reference

from bertlib import Bert

CASES = [
    (torch.float64, "gelu", "eager"),
    (torch.float64, "gelu_new", "sdpa"),
    (torch.float32, "gelu", "sdpa"),
    (torch.float32, "gelu_new", "eager"),
]


@pytest.fixture(scope="module", params=CASES, ids=lambda case: f"{str(case[0])[6:]}-{case[1]}-{case[2]}")
def pair(request, tmp_path_factory):
    dtype, act, attention = request.param
    other = reference("BertModel", dtype, attention, hidden_act=act)
    return ours(Bert, other, tmp_path_factory.mktemp("encoder")), other


@pytest.fixture(scope="module")
def inputs():
    return batch()


def packed(inputs):
    keep = inputs["attention_mask"].bool()
    return inputs["input_ids"][keep], inputs["token_type_ids"][keep]


def positions():
    return torch.cat([torch.arange(length) for length in LENGTHS])


def one_by_one(call, x):
    """The reference on each sequence by itself: no padding, no mask."""
    return torch.cat([call(part[None])[0] for part in x.split(LENGTHS)])


@pytest.fixture(scope="module")
def embedded(pair, inputs):
    model, _ = pair
    ids, segments = packed(inputs)
    return model.embeddings(ids, segments, positions(), LENGTHS).detach()


def test_embeddings(pair, inputs, embedded):
    expected = pair[1].embeddings(inputs["input_ids"], inputs["token_type_ids"])
    assert_equal(embedded, expected[inputs["attention_mask"].bool()], "embeddings")


def test_one_attention(pair, embedded):
    model, other = pair
    layer = other.encoder.layer[0].attention
    x = embedded.clone().requires_grad_()
    y = embedded.clone().requires_grad_()
    expected = one_by_one(lambda part: layer.output.dense(layer.self(part)[0]), x)
    for weigh in (False, True):
        found, weights, _ = model.encoder.layers[0].attention.packed(y, LENGTHS, weigh=weigh)
        assert_equal(found, expected, "attention")
    eager = [layer.self(part[None])[1] for part in x.split(LENGTHS)]
    for weight, whole in zip(weights, eager, strict=True):
        if whole is not None:  # sdpa gives none
            assert_equal(weight, whole[0], "weights")
    expected.square().sum().backward()
    found.square().sum().backward()
    assert_equal(y.grad, x.grad, "gradient of attention", factor=10)


def test_one_layer(pair, embedded):
    model, other = pair
    found, _, _ = model.encoder.layers[1](embedded, LENGTHS)
    assert_equal(found, one_by_one(other.encoder.layer[1], embedded), "layer")


def test_the_feed_forward_network(pair, embedded):
    model, other = pair
    layer = other.encoder.layer[2]
    expected = layer.output.dense(layer.intermediate(embedded))
    assert_equal(model.encoder.layers[2].feed_forward(embedded), expected, "feed-forward")


def test_the_stack(pair, embedded):
    model, other = pair
    found = model.encoder(embedded, LENGTHS, positions()).hidden
    assert_equal(found, one_by_one(lambda part: other.encoder(part).last_hidden_state, embedded), "stack")


def test_the_pooler(pair, embedded):
    model, other = pair
    firsts = torch.stack([part[0] for part in embedded.split(LENGTHS)])
    assert_equal(model.pool(embedded, LENGTHS), other.pooler(firsts[:, None]), "pooler")


def test_the_whole_with_every_gradient(pair, inputs):
    model, other = pair
    keep = inputs["attention_mask"].bool()
    found, expected = model(**inputs, output_hidden_states=True), other(**inputs, output_hidden_states=True)
    assert_equal(found.last_hidden_state[keep], expected.last_hidden_state[keep], "last hidden state")
    assert_equal(found.pooler_output, expected.pooler_output, "pooler output")
    assert len(found.hidden_states) == len(expected.hidden_states) == 4
    for mine, theirs in zip(found.hidden_states, expected.hidden_states, strict=True):
        assert_equal(mine[keep], theirs[keep], "a hidden state")
    for out, m in ((found, model), (expected, other)):
        m.zero_grad()
        (out.last_hidden_state[keep].square() * torch.arange(1, 33)).sum().add(out.pooler_output.sum()).backward()
    assert_same_gradients(model, other)


def test_without_mask_and_segments(pair, inputs):
    model, other = pair
    found, expected = model(inputs["input_ids"]), other(inputs["input_ids"])
    assert_equal(found.last_hidden_state, expected.last_hidden_state, "last hidden state")
    assert_equal(found.pooler_output, expected.pooler_output, "pooler output")


def test_padding_anywhere(pair, inputs):
    """Given our positions, the reference agrees under a mask with padding on the left and holes in the middle."""
    model, other = pair
    mask = inputs["attention_mask"].flip(1)
    mask[0, 4], mask[1, 6:8] = 0, 0
    first = mask.argmax(dim=1, keepdim=True)
    position_ids = (torch.arange(11) - first).clamp(min=0)
    changed = inputs | {"attention_mask": mask}
    expected = other(**changed, position_ids=position_ids).last_hidden_state[mask.bool()]
    assert_equal(model(**changed).last_hidden_state[mask.bool()], expected, "positions as they come")
    found = model(**changed, position_ids=position_ids).last_hidden_state[mask.bool()]
    assert_equal(found, expected, "positions given")
    columns = torch.arange(11).expand(4, 11)
    expected = other(**changed).last_hidden_state[mask.bool()]
    found = model(**changed, position_ids=columns).last_hidden_state[mask.bool()]
    assert_equal(found, expected, "positions by column, as the reference has them")


def test_attentions_and_scores(pair, inputs):
    """Weights at real tokens are the reference's; the scores are what they are the softmax of."""
    model, other = pair
    other.set_attn_implementation("eager")
    found = model(**inputs, output_attentions=True, output_scores=True)
    expected = other(**inputs, output_attentions=True)
    fused = model(**inputs)
    keep = inputs["attention_mask"].bool()
    both = (keep[:, None, :, None] & keep[:, None, None, :]).expand(-1, 4, -1, -1)
    assert_equal(found.last_hidden_state, fused.last_hidden_state, "spelled out and fused")
    assert fused.attentions is None and fused.scores is None and fused.hidden_states is None
    for mine, theirs, scores in zip(found.attentions, expected.attentions, found.scores, strict=True):
        assert bool((mine[~both] == 0).all()) and bool((scores[~both] == 0).all())
        assert_equal(mine[both], theirs[both], "weights")
        assert_equal(scores.masked_fill(~both, -torch.inf).softmax(-1)[both], mine[both], "softmax of scores")
