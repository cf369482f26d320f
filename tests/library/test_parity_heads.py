"""The models with a head against the reference implementation: logits, loss and every gradient."""

import pytest
import torch
import torch.nn.functional as F
from reference_models import SIZES, assert_equal, assert_same_gradients, batch, labels, ours, reference

from bertlib import (
    BertForMaskedLM,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertForTokenClassification,
    CausalBert,
    ElectraDiscriminator,
)

CASES = [
    (torch.float64, "gelu", "eager"),
    (torch.float64, "gelu_new", "sdpa"),
    (torch.float32, "gelu", "sdpa"),
]


@pytest.fixture(params=CASES, ids=lambda case: f"{str(case[0])[6:]}-{case[1]}-{case[2]}")
def make(request, tmp_path):
    dtype, act, attention = request.param

    def make_pair(cls, architecture, **changes):
        other = reference(architecture, dtype, attention, hidden_act=act, **changes)
        return ours(cls, other, tmp_path), other

    return make_pair


@pytest.fixture
def inputs():
    return batch()


def compare(model, other, inputs, real=None, loss=None, **targets):
    """Logits without labels; loss and gradients with them. `real` says where logits are compared.

    Where the reference computes its loss in single precision whatever comes, `loss` computes it from its logits.
    """
    found, expected = model(**inputs).logits, other(**inputs).logits
    if real is not None:
        assert bool((found[~real] == 0).all())
        found, expected = found[real], expected[real]
    assert_equal(found, expected, "logits")
    mine, theirs = model(**inputs, **targets), other(**inputs, **targets)
    expected = theirs.loss
    if loss is not None:
        torch.testing.assert_close(loss(theirs.logits), expected, rtol=1e-6, atol=0, check_dtype=False)
        expected = loss(theirs.logits)
    assert_equal(mine.loss, expected, "loss")
    mine.loss.backward()
    expected.backward()
    assert_same_gradients(model, other)
    return mine, theirs


def test_masked_lm(make, inputs):
    model, other = make(BertForMaskedLM, "BertForMaskedLM")
    targets = labels(inputs, SIZES["vocab_size"])
    mine, theirs = compare(model, other, inputs, inputs["attention_mask"].bool(), labels=targets)
    assert_equal(mine.logits, theirs.logits[targets != -100], "logits at the labelled tokens")


def test_masked_lm_of_a_whole_batch(make, inputs):
    model, other = make(BertForMaskedLM, "BertForMaskedLM")
    whole = {"input_ids": inputs["input_ids"]}
    compare(model, other, whole, labels=inputs["input_ids"].roll(1, 1))


def test_causal(make, inputs):
    model, other = make(CausalBert, "BertLMHeadModel", is_decoder=True)
    targets = torch.where(inputs["attention_mask"].bool(), inputs["input_ids"], -100)
    targets[3, 4] = -100

    def loss(logits):
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), targets[:, 1:].flatten())

    mine, theirs = compare(model, other, inputs, inputs["attention_mask"].bool(), loss, labels=targets)
    assert_equal(mine.logits, theirs.logits[:, :-1][targets[:, 1:] != -100], "logits at the guessed tokens")


def test_sequence_classification(make, inputs):
    model, other = make(BertForSequenceClassification, "BertForSequenceClassification")
    compare(model, other, inputs, labels=torch.tensor([2, 0, 1, 2]))


def test_regression(make, inputs):
    model, other = make(BertForSequenceClassification, "BertForSequenceClassification", num_labels=1)
    compare(model, other, inputs, labels=torch.tensor([0.5, -1.0, 2.0, 0.0], dtype=other.dtype))


def test_token_classification(make, inputs):
    model, other = make(BertForTokenClassification, "BertForTokenClassification")
    compare(model, other, inputs, inputs["attention_mask"].bool(), labels=labels(inputs, 3))


def test_question_answering_without_padding(make, inputs):
    model, other = make(BertForQuestionAnswering, "BertForQuestionAnswering", num_labels=2)
    whole = {"input_ids": inputs["input_ids"]}
    targets = {"start_positions": torch.tensor([0, 3, 10, 5]), "end_positions": torch.tensor([1, 3, 10, 9])}
    mine, theirs = model(**whole, **targets), other(**whole, **targets)
    assert_equal(mine.start_logits, theirs.start_logits, "start")
    assert_equal(mine.end_logits, theirs.end_logits, "end")
    assert_equal(mine.loss, theirs.loss, "loss")
    mine.loss.backward()
    theirs.loss.backward()
    assert_same_gradients(model, other)


def test_question_answering_does_not_spread_probability_over_padding(make, inputs):
    """The reference's softmax runs over padding too, so there its loss is not what we compare with."""
    model, other = make(BertForQuestionAnswering, "BertForQuestionAnswering", num_labels=2)
    start, end = torch.tensor([10, 3, 0, -100]), torch.tensor([10, 6, 0, -100])
    found, expected = model(**inputs, start_positions=start, end_positions=end), other(**inputs)
    real = inputs["attention_mask"].bool()
    losses = []
    for mine, theirs, positions in (
        (found.start_logits, expected.start_logits, start),
        (found.end_logits, expected.end_logits, end),
    ):
        assert_equal(mine[real], theirs[real], "logits")
        assert bool((mine[~real] == torch.finfo(mine.dtype).min).all())
        losses.append(F.cross_entropy(theirs.masked_fill(~real, -torch.inf), positions))
    assert_equal(found.loss, sum(losses) / 2, "loss")


@pytest.mark.parametrize("embedding_size", [32, 20])
def test_electra(make, inputs, embedding_size):
    model, other = make(ElectraDiscriminator, "ElectraForPreTraining", embedding_size=embedding_size)
    real = inputs["attention_mask"].bool()
    targets = (inputs["input_ids"] % 3 == 0).long()

    def loss(logits):
        return F.binary_cross_entropy_with_logits(logits[real], targets[real].to(logits.dtype))

    mine, _ = compare(model, other, inputs, real, loss, labels=targets)
    left_out = targets.masked_fill(torch.rand(targets.shape, generator=torch.Generator().manual_seed(0)) < 0.4, -100)
    logits = other(**inputs).logits
    chosen = real & (left_out != -100)
    expected = F.binary_cross_entropy_with_logits(logits[chosen], left_out[chosen].to(logits.dtype))
    assert_equal(model(**inputs, labels=left_out).loss, expected, "loss over some tokens")
    assert mine.logits.shape == real.shape


@pytest.mark.parametrize(
    ("cls", "architecture"),
    [
        (BertForMaskedLM, "BertForMaskedLM"),
        (CausalBert, "BertLMHeadModel"),
        (BertForSequenceClassification, "BertForSequenceClassification"),
        (BertForTokenClassification, "BertForTokenClassification"),
        (BertForQuestionAnswering, "BertForQuestionAnswering"),
        (ElectraDiscriminator, "ElectraForPreTraining"),
    ],
)
def test_attentions_and_hidden_states_come_with_a_head_too(tmp_path, inputs, cls, architecture):
    changes = {"is_decoder": cls is CausalBert, "num_labels": 2}
    other = reference(architecture, **changes)
    model = ours(cls, other, tmp_path)
    asked = {"output_attentions": True, "output_hidden_states": True}
    found, expected = model(**inputs, **asked, output_scores=True), other(**inputs, **asked)
    keep = inputs["attention_mask"].bool()
    both = (keep[:, None, :, None] & keep[:, None, None, :]).expand(-1, 4, -1, -1)
    assert len(found.scores) == 3
    for mine, theirs in zip(found.attentions, expected.attentions, strict=True):
        assert_equal(mine[both], theirs[both], "weights")
    for mine, theirs in zip(found.hidden_states, expected.hidden_states, strict=True):
        assert_equal(mine[keep], theirs[keep], "hidden states")
