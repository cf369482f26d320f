"""What must hold of the models whatever the weights: padding without effect, dropout, losses, counts, wrong input."""

import math

import pytest
import torch
import torch.nn.functional as F
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_models import LENGTHS, assert_equal, batch, labels, our_config, ours, reference
from test_encoder import draw, randomize

from bertlib import (
    Bert,
    BertConfig,
    BertForMaskedLM,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertForTokenClassification,
    CausalBert,
    ElectraDiscriminator,
    WordPieceTokenizer,
    count_parameters,
)

KINDS = {
    "bert": {},
    "pre-norm": {"norm": "pre"},
    "rotary": {"position_embedding_type": "rotary"},
    "causal": {"is_decoder": True},
    "all": {"norm": "pre", "position_embedding_type": "rotary", "is_decoder": True, "embedding_size": 20},
}
WITH_HEADS = [
    BertForMaskedLM,
    CausalBert,
    BertForSequenceClassification,
    BertForTokenClassification,
    BertForQuestionAnswering,
    ElectraDiscriminator,
]


@pytest.fixture(scope="module", params=KINDS)
def bert(request):
    return randomize(Bert(our_config(num_hidden_layers=2, **KINDS[request.param])))


@pytest.fixture(scope="module")
def masked_lm():
    return randomize(BertForMaskedLM(our_config(num_hidden_layers=2)))


@pytest.fixture
def inputs():
    return batch()


def outputs(found):
    """Every tensor of an output."""
    for value in vars(found).values():
        yield from value if isinstance(value, tuple) else [] if value is None else [value]


# Padding


@given(
    rows=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 6), st.integers(0, 3)), min_size=1, max_size=5),
    rubbish=st.integers(-(10**9), 10**9),
    seed=st.integers(0, 1000),
)
@settings(deadline=None, max_examples=25)
def test_a_batch_is_each_of_its_sequences_alone(bert, rows, rubbish, seed):
    """However much padding stands on which side, whatever it holds, and whoever else is in the batch."""
    n = max(sum(row) for row in rows)
    rows = [row for row in rows if row[1]]
    if not rows:
        return
    generator = torch.Generator().manual_seed(seed)
    ids = torch.full((len(rows), n), rubbish)
    segments, mask = torch.full_like(ids, rubbish), torch.zeros_like(ids)
    sequences = []
    for i, (left, length, _) in enumerate(rows):
        sequence = torch.randint(1, 61, (length,), generator=generator)
        segment = torch.randint(0, 2, (length,), generator=generator)
        ids[i, left : left + length], segments[i, left : left + length], mask[i, left : left + length] = (
            sequence,
            segment,
            1,
        )
        sequences.append((sequence, segment))
    together = bert(ids, mask, segments)
    assert bool((together.last_hidden_state[mask == 0] == 0).all())
    flat = bert.encode(torch.cat([s for s, _ in sequences]), mask.sum(1).tolist(), torch.cat([t for _, t in sequences]))
    assert_equal(flat.hidden, together.last_hidden_state[mask.bool()], "packed")
    for i, (sequence, segment) in enumerate(sequences):
        alone = bert(sequence[None], token_type_ids=segment[None])
        left = rows[i][0]
        assert_equal(together.last_hidden_state[i, left : left + len(sequence)], alone.last_hidden_state[0], "alone")
        assert_equal(together.pooler_output[i], alone.pooler_output[0], "pooled")


def test_a_hole_keeps_its_place_and_counts_for_nothing(bert):
    ids = torch.tensor([[5, 6, 7, 8]])
    mask = torch.tensor([[1, 0, 1, 1]])
    found = bert(ids, mask).last_hidden_state[0, [0, 2, 3]]
    expected = bert.encode(torch.tensor([5, 7, 8]), [3], position_ids=torch.tensor([0, 2, 3])).hidden
    assert_equal(found, expected, "at positions 0, 2 and 3")


@pytest.mark.parametrize("cls", WITH_HEADS)
def test_a_row_of_padding_alone_makes_no_nan(cls, inputs):
    model = randomize(cls(our_config()))
    inputs["attention_mask"][1] = 0
    targets = {
        BertForSequenceClassification: {"labels": torch.tensor([0, -100, 2, 1])},
        BertForQuestionAnswering: dict.fromkeys(("start_positions", "end_positions"), torch.tensor([0, -100, 0, 1])),
    }.get(cls, {"labels": labels(inputs, 2)})
    asked = {"output_attentions": True, "output_scores": True, "output_hidden_states": True}
    for mask in (inputs["attention_mask"], torch.zeros_like(inputs["attention_mask"])):
        inputs["attention_mask"] = mask
        nothing = {name: torch.full_like(value, -100) for name, value in targets.items()}
        found = model(**inputs, **(targets if mask.any() else nothing), **asked)
        assert all(bool(tensor.isfinite().all()) for tensor in outputs(found))
        assert all(bool((tensor[1] == 0).all()) for tensor in (*found.hidden_states, *found.attentions))
        model.zero_grad()
        found.loss.backward()
        assert all(bool(p.grad.isfinite().all()) for p in model.parameters() if p.grad is not None)
    assert found.loss == 0


def test_the_fused_form_of_a_row_of_padding(bert, inputs):
    inputs["attention_mask"][1] = 0
    found = bert(**inputs)
    assert bool((found.last_hidden_state[1] == 0).all())
    torch.testing.assert_close(found.pooler_output[1], bert.pooler.bias.tanh())


# Order


@given(seed=st.integers(0, 10**6), n=st.integers(1, 9))
@settings(deadline=None, max_examples=20)
def test_without_positions_the_tokens_have_no_order(seed, n):
    model = randomize(Bert(our_config(num_hidden_layers=2)))
    model.embeddings.position.weight.data.zero_()
    generator = torch.Generator().manual_seed(seed)
    ids, order = torch.randint(1, 61, (1, n), generator=generator), torch.randperm(n, generator=generator)
    assert_equal(model(ids[:, order]).last_hidden_state, model(ids).last_hidden_state[:, order], "permuted", factor=10)


@pytest.mark.parametrize("kind", ["bert", "rotary", "causal"])
def test_with_positions_they_have(kind):
    model = randomize(Bert(our_config(**KINDS[kind])))
    ids = torch.tensor([[5, 6, 7]])
    change = model(ids.flip(1)).last_hidden_state.flip(1) - model(ids).last_hidden_state
    assert change.abs().max() > 0.1


def test_rotary_positions_are_relative():
    """There is no table, so there is no limit, and a shift of all positions changes nothing."""
    model = randomize(Bert(our_config(position_embedding_type="rotary")))
    ids = torch.arange(1, 31)[None]
    found = model(ids, position_ids=torch.arange(30)[None] + 1000).last_hidden_state
    assert_equal(found, model(ids).last_hidden_state, "shifted", factor=100)
    assert not any("position" in name for name in model.state_dict())


def test_segments_count(bert):
    ids = torch.tensor([[5, 6, 7]])
    zero, none = bert(ids, token_type_ids=torch.zeros_like(ids)), bert(ids)
    assert torch.equal(zero.last_hidden_state, none.last_hidden_state)
    one = bert(ids, token_type_ids=torch.tensor([[0, 0, 1]]))
    assert (one.last_hidden_state - none.last_hidden_state).abs().max() > 0.01


def test_a_causal_model_does_not_see_what_comes():
    model = randomize(CausalBert(our_config()))
    ids = torch.arange(1, 10)[None]
    changed = ids.clone()
    changed[0, 6:] = 40
    before, after = model(ids).logits, model(changed).logits
    assert torch.equal(before[:, :6], after[:, :6])
    assert (before[:, 6:] - after[:, 6:]).abs().max() > 0.1


# Losses


@given(seed=st.integers(0, 10**6), share=st.sampled_from([0.05, 0.15, 0.5, 1.0]))
@settings(deadline=None, max_examples=20)
def test_the_loss_over_masked_rows_is_the_loss_over_all_logits(masked_lm, seed, share):
    """By the definition, from every logit; where nothing is to be guessed, the loss does not depend on the logits."""
    inputs = batch(seed)
    targets = labels(inputs, 61, share, seed)
    chosen = targets != -100
    masked_lm.zero_grad()
    found = masked_lm(**inputs, labels=targets)
    found.loss.backward()
    gradients = [p.grad.clone() for p in masked_lm.parameters()]
    masked_lm.zero_grad()
    logits = masked_lm(**inputs).logits
    logits.retain_grad()
    if not chosen.any():
        assert found.loss == 0 and all(bool((gradient == 0).all()) for gradient in gradients)
        return
    chance = logits.exp() / logits.exp().sum(-1, keepdim=True)
    loss = -chance[chosen].gather(1, targets[chosen][:, None]).log().sum() / chosen.sum()
    loss.backward()
    assert_equal(found.loss, loss, "loss")
    assert_equal(found.logits, logits[chosen], "logits")
    assert bool((logits.grad[~chosen] == 0).all())
    largest = max(float(gradient.abs().max()) for gradient in gradients)
    for gradient, parameter in zip(gradients, masked_lm.parameters(), strict=True):
        assert_equal(gradient, parameter.grad, "gradient", factor=10, scale=1e-2 * largest)


@pytest.mark.parametrize("cls", [BertForMaskedLM, CausalBert, BertForTokenClassification, ElectraDiscriminator])
def test_over_no_label_the_loss_is_zero_with_zero_gradients(cls, inputs):
    model = cls(our_config())
    found = model(**inputs, labels=torch.full((4, 11), -100))
    found.loss.backward()
    assert found.loss == 0
    assert all(bool((p.grad == 0).all()) for p in model.parameters() if p.grad is not None)
    assert sum(p.grad is not None for p in model.parameters()) > 10


def test_a_new_model_guesses_uniformly():
    """With small weights the loss is that of guessing: ln |V| nats."""
    torch.manual_seed(0)
    model = BertForMaskedLM(
        BertConfig(vocab_size=1000, hidden_size=64, num_hidden_layers=2, num_attention_heads=4)
    ).eval()
    ids = torch.arange(1, 401).view(20, 20)
    assert float(model(ids, labels=ids.flip(0)).loss.detach()) == pytest.approx(math.log(1000), abs=0.1)


def test_the_decoder_is_the_table_with_a_bias_of_its_own(masked_lm):
    names = [name for name, _ in masked_lm.named_parameters() if "predictions" in name]
    assert names == [
        "predictions.bias",
        *(f"predictions.{m}.{k}" for m in ("dense", "norm") for k in ("weight", "bias")),
    ]
    ids = torch.tensor([[5, 6]])
    before = masked_lm(ids).logits.detach()
    with torch.no_grad():
        masked_lm.predictions.bias[7] += 2.0
    change = masked_lm(ids).logits - before
    masked_lm.predictions.bias.data[7] -= 2.0
    torch.testing.assert_close(change[..., 7], torch.full((1, 2), 2.0, dtype=torch.float64))
    assert bool((change[..., [0, 6, 8]] == 0).all())


# Dropout


@pytest.mark.parametrize("weigh", [False, True])
@pytest.mark.parametrize(
    ("cls", "architecture"),
    [
        (Bert, "BertModel"),
        (BertForSequenceClassification, "BertForSequenceClassification"),
        (BertForTokenClassification, "BertForTokenClassification"),
        (ElectraDiscriminator, "ElectraForPreTraining"),
    ],
)
@pytest.mark.parametrize("rates", [(0.3, 0.0, None), (0.0, 0.4, None), (0.2, 0.1, 0.5)])
def test_dropout_in_training_drops_what_the_reference_drops(tmp_path, cls, architecture, rates, weigh):
    """From one seed and on one sequence both draw the same numbers in the same order."""
    names = ("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout")
    changes = dict(zip(names, rates, strict=True)) | ({"embedding_size": 32} if cls is ElectraDiscriminator else {})
    other = reference(architecture, attention="eager" if weigh else "sdpa", **changes)
    model = ours(cls, other, tmp_path)
    ids = torch.arange(1, 10)[None]
    found = []
    for m in (model, other):
        still = m(ids)[0] if m is other else next(outputs(m(ids)))
        m.train()
        torch.manual_seed(3)
        drawn = m(ids, output_attentions=weigh)
        found.append(drawn[0] if m is other else next(outputs(drawn)))
        m.eval()
        assert (found[-1] - still).abs().max() > 1e-3
    assert_equal(*found, "with dropout")


@pytest.mark.parametrize("cls", [Bert, *WITH_HEADS])
def test_evaluation_is_deterministic_and_training_is_not(cls, inputs):
    model = cls(our_config(hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1))
    runs = {}
    for mode in (False, True):
        model.train(mode)
        runs[mode] = [next(outputs(model(**inputs))) for _ in range(2)]
    assert torch.equal(*runs[False])
    assert not torch.equal(*runs[True])


# The first draw


def test_the_first_draw():
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=3000, hidden_size=100, num_attention_heads=2, intermediate_size=400, num_hidden_layers=1
    )
    for scheme, expected in (("fixed", dict.fromkeys((100, 400), 0.02)), ("fan_in", {100: 0.1, 400: 0.05})):
        model = BertForMaskedLM(BertConfig(**config.to_dict() | {"initialization": scheme}))
        for name, parameter in model.named_parameters():
            if parameter.dim() == 1:
                assert bool((parameter == (1.0 if name.endswith("norm.weight") else 0.0)).all()), name
            elif "segment" not in name:
                assert float(parameter.detach().std()) == pytest.approx(expected[parameter.shape[1]], rel=0.02), name
        assert bool((model.bert.embeddings.token.weight[0] == 0).all())


# Counting


CONFIGS = st.builds(
    lambda heads, width, position, **others: BertConfig(
        hidden_size=heads * width, num_attention_heads=heads, position_embedding_type=position, **others
    ),
    heads=st.integers(1, 4),
    width=st.sampled_from([2, 4, 6]),
    position=st.sampled_from(["absolute", "rotary"]),
    vocab_size=st.integers(1, 50),
    num_hidden_layers=st.integers(1, 4),
    intermediate_size=st.integers(1, 30),
    max_position_embeddings=st.integers(1, 20),
    type_vocab_size=st.integers(1, 3),
    embedding_size=st.none() | st.integers(1, 20),
    norm=st.sampled_from(["post", "pre"]),
)
PARTS = {
    "word embeddings": "embeddings.token",
    "position embeddings": "embeddings.position",
    "segment embeddings": "embeddings.segment",
    "embedding projection": "embeddings.projection",
    "attention": ".attention.",
    "feed-forward": ".feed_forward.",
    "layer norms": "norm.",
    "pooler": "pooler.",
}


@given(config=CONFIGS, pooler=st.booleans())
@settings(deadline=None, max_examples=40)
def test_the_count_is_the_models_part_by_part(config, pooler):
    with torch.device("meta"):
        model = Bert(config, pooler)
    counted = dict.fromkeys(PARTS, 0)
    for name, parameter in model.named_parameters():
        (part,) = [part for part, mark in PARTS.items() if mark in name]
        counted[part] += parameter.numel()
    assert count_parameters(config, pooler) == counted


def test_bert_base_has_109_482_240_parameters():
    with torch.device("meta"):
        model = Bert(BertConfig())
        theirs = transformers.BertModel(transformers.BertConfig())
    counts = [sum(p.numel() for p in m.parameters()) for m in (model, theirs)]
    assert counts == [109_482_240] * 2
    assert sum(count_parameters(BertConfig()).values()) == 109_482_240
    assert count_parameters(BertConfig())["word embeddings"] == 30522 * 768


# Sentence vectors


def test_sentence_vectors_are_means_over_tokens(bert):
    generator = torch.Generator().manual_seed(0)
    ids = [torch.randint(1, 61, (n,), generator=generator).tolist() for n in (5, 2, 5, 9, 1)]
    expected = torch.stack([bert(torch.tensor([row])).last_hidden_state[0].mean(0) for row in ids])
    for batch_tokens in (1, 7, 10, 4096):
        assert_equal(bert.sentence_vectors(ids, batch_tokens=batch_tokens), expected.detach(), "vectors")
        assert_equal(bert.sentence_vectors(ids[:1], batch_tokens=batch_tokens), expected[:1].detach(), "one vector")
    found = bert.sentence_vectors(ids, max_length=3)
    short = torch.tensor([[*ids[3][:2], ids[3][-1]]])
    assert_equal(found[3], bert(short).last_hidden_state[0].mean(0).detach(), "shortened")
    assert not found.requires_grad
    long = [1 + i % 60 for i in range(40)]  # more than max_position_embeddings, 16
    assert_equal(bert.sentence_vectors([long]), bert.sentence_vectors([[*long[:15], long[-1]]]), "too long")


def test_sentence_vectors_of_texts(bert):
    class Tokenizer:  # as the reference tokenizer has it: an encoding may come with padding
        def encode(self, text):
            ids = [1, *(ord(letter) - 90 for letter in text), 2]
            padded = {"ids": [*ids, 0, 0], "attention_mask": [1] * len(ids) + [0, 0]}
            return type("Encoding", (), padded)

    class Ours:
        cls_token_id, sep_token_id = 1, 2

        def token_ids(self, text):
            return [ord(letter) - 90 for letter in text]

    texts = ["abc", "", "dodo"]
    expected = bert.sentence_vectors([[1, 7, 8, 9, 2], [1, 2], [1, 10, 21, 10, 21, 2]])
    assert torch.equal(bert.sentence_vectors(texts, Tokenizer()), expected)
    assert torch.equal(bert.sentence_vectors(texts, Ours()), expected)
    with pytest.raises(ValueError, match="at least one token each, but text 1 has none"):
        bert.sentence_vectors([[1], []])
    assert bert.sentence_vectors([]).shape == (0, 32)
    for wrong, message in (
        (("abc", Tokenizer()), "texts must be a list of strings or of lists of ids, not a str"),
        ((5,), "texts must be a list of strings or of lists of ids, not a int"),
        ((["abc"], None), r"texts\[0\] must be a list of ids, for there is no tokenizer, not a str"),
        (([[1], None], None), r"texts\[1\] must be a list of ids, for there is no tokenizer, not a NoneType"),
        (([[1]], Tokenizer()), r"texts\[0\] must be a string, for the tokenizer, not a list"),
        (([[1], [2, "a"]], None), r"texts\[1\] must be an integer, not 'a'"),
        ((["abc"], 7), r"tokenizer must have an encode\(text\), which 7 has not"),
        ((["abc"], WordPieceTokenizer), r"tokenizer must have an encode\(text\), which <class"),
        ((torch.tensor([1, 2]),), r"texts\[0\] must be a list of ids, for there is no tokenizer, not a int"),
        (([[1]], None, "3"), "max_length must be an integer, not '3'"),
        (([[1]], None, 3, 1.5), "batch_tokens must be an integer, not 1.5"),
    ):
        with pytest.raises(TypeError, match=message):
            bert.sentence_vectors(*wrong)
    with pytest.raises(ValueError, match="max_length must be positive, not 0"):
        bert.sentence_vectors([[1]], max_length=0)
    with pytest.raises(ValueError, match="batch_tokens must be positive, not 0"):
        bert.sentence_vectors([[1]], batch_tokens=0)
    if bert.embeddings.position is not None:
        with pytest.raises(ValueError, match=r"max_length must be at most 16, max_position_embeddings.* not 17"):
            bert.sentence_vectors([[1]], max_length=17)
    else:
        assert torch.equal(
            bert.sentence_vectors([[1] * 17], max_length=17),
            bert.encode(torch.ones(17).long(), [17]).hidden.mean(0)[None],
        )
    for wrong_id in (-1, bert.config.vocab_size):
        with pytest.raises(ValueError, match=r"text 1 has an id outside \[0, \d+\), vocab_size"):
            bert.sentence_vectors([[1, 2, 3, 4], [1, wrong_id, 2], [1]])  # not text 2, as after sorting


# Wrong input


def test_wrong_ids_are_named(bert):
    ids, long = torch.ones(2, 3, dtype=torch.long), torch.ones(1, 17, dtype=torch.long)
    for call, message in [
        (
            {"input_ids": ids.index_fill(1, torch.tensor(2), 61)},
            r"input_ids must lie in \[0, 61\), vocab_size.*token 2 of sequence 0 has 61",
        ),
        (
            {"input_ids": ids - 2 * torch.tensor([[0], [1]])},
            r"input_ids must lie in \[0, 61\).*token 0 of sequence 1 has -1",
        ),
        ({"input_ids": ids, "token_type_ids": ids + 1}, r"token_type_ids must lie in \[0, 2\), type_vocab_size.*has 2"),
        ({"input_ids": ids, "token_type_ids": ids[0]}, r"token_type_ids must be as input_ids, \(2, 3\), not \(3,\)"),
        (
            {"input_ids": ids, "token_type_ids": ids[..., None]},
            r"token_type_ids must be as input_ids, \(2, 3\), not \(2, 3, 1\)",
        ),
        ({"input_ids": ids, "position_ids": ids[:1]}, r"position_ids must be as input_ids, \(2, 3\), not \(1, 3\)"),
        ({"input_ids": ids[0]}, r"input_ids must be \(batch, n\)"),
        ({"input_ids": ids, "attention_mask": ids[:, :2]}, r"attention_mask must be as input_ids"),
        ({"input_ids": ids, "attention_mask": ids + 1}, r"attention_mask must hold only 1"),
    ]:
        with pytest.raises(ValueError, match=message):
            bert(**call)
    with pytest.raises(TypeError, match=r"input_ids must be integers.*not torch\.float32"):
        bert(ids.float())
    with pytest.raises(TypeError, match=r"token_type_ids must be integers.*not torch\.bool"):
        bert(ids, token_type_ids=ids.bool())
    with pytest.raises(TypeError, match=r"position_ids must be integers.*not torch\.float32"):
        bert(ids, position_ids=ids.float())
    if bert.embeddings.position is not None:
        with pytest.raises(
            ValueError,
            match=r"position_ids must lie in \[0, 16\), max_position_embeddings.*token 16 of sequence 0 has 16: cut "
            "the text, max_length=16 with truncation=True",
        ):
            bert(long)
    else:
        assert bert(long).last_hidden_state.shape == (1, 17, 32)
    for lengths in ([2], [2, 2], []):
        with pytest.raises(ValueError, match=r"lengths must add up to the tokens, 3, not to"):
            bert.encode(ids[0], lengths)
    with pytest.raises(ValueError, match=r"lengths must be from 0 up, not \[4, -1\]"):
        bert.encode(ids[0], [4, -1])
    with pytest.raises(ValueError, match=r"input_ids must be \(tokens,\)"):
        bert.encode(ids, [2])
    for name in ("token_type_ids", "position_ids"):
        with pytest.raises(ValueError, match=rf"{name} must be as input_ids, \(3,\), not \(1,\)"):
            bert.encode(ids[0], [3], **{name: ids[0, :1]})
        with pytest.raises(TypeError, match=f"{name} must be a tensor, not a list"):
            bert.encode(ids[0], [3], **{name: [0, 0, 0]})
    with pytest.raises(TypeError, match="input_ids must be a tensor, not a list"):
        bert.encode([1, 2, 3], [3])
    for lengths, wrong in (([3.0], "3.0"), ([True, 2], "True"), (["3"], "'3'")):
        with pytest.raises(TypeError, match=rf"lengths\[0\] must be an integer, not {wrong}"):
            bert.encode(ids[0], lengths)
    with pytest.raises(TypeError, match="lengths must be a list of integers, not 3"):
        bert.encode(ids[0], 3)
    for rows in (torch.tensor([3]), torch.tensor([-1]), torch.tensor([[0]])):
        with pytest.raises(ValueError, match=r"rows must be .*, places among 3 tokens"):
            bert.encode(ids[0], [3], rows=rows)
    with pytest.raises(TypeError, match=r"rows must be integers, not torch\.bool"):
        bert.encode(ids[0], [3], rows=torch.tensor([True, False, True]))


def test_wrong_labels_are_named(inputs):
    targets = labels(inputs, 3)
    for cls in (BertForMaskedLM, CausalBert, BertForTokenClassification):
        model = cls(our_config())
        with pytest.raises(ValueError, match=r"labels must lie in \[0, \d+\) or be -100, not 61"):
            model(**inputs, labels=targets.index_fill(1, torch.tensor(0), 61))
        with pytest.raises(ValueError, match=r"labels must be -100 wherever attention_mask is 0"):
            model(**inputs, labels=inputs["input_ids"] % 3)
        with pytest.raises(ValueError, match=r"labels must be as input_ids, \(4, 11\), not \(11,\)"):
            model(**inputs, labels=targets[0])
        with pytest.raises(ValueError, match=r"labels must be as input_ids, \(4, 11\), not \(4, 11, 2\)"):
            model(**inputs, labels=targets[..., None].expand(-1, -1, 2))
        with pytest.raises(TypeError, match=r"labels must be integers, not torch\.float32"):
            model(**inputs, labels=targets.float())
    model = BertForSequenceClassification(our_config())
    with pytest.raises(ValueError, match=r"labels must be \(batch,\) = \(4,\), not \(4, 1\)"):
        model(**inputs, labels=torch.zeros(4, 1, dtype=torch.long))
    with pytest.raises(ValueError, match=r"labels must lie in \[0, 3\) or be -100, not 3"):
        model(**inputs, labels=torch.tensor([0, 1, 2, 3]))
    with pytest.raises(ValueError, match=r"labels must lie in \[0, 2\) or be -100, not 2"):
        ElectraDiscriminator(our_config())(**inputs, labels=torch.full((4, 11), 2))
    model = BertForQuestionAnswering(our_config())
    zero = torch.zeros(4, dtype=torch.long)
    with pytest.raises(ValueError, match=r"end_positions must be \(batch,\)"):
        model(**inputs, start_positions=zero, end_positions=zero[:2])
    with pytest.raises(ValueError, match="start_positions must be columns of tokens"):
        model(**inputs, start_positions=torch.tensor(LENGTHS).clamp(max=10), end_positions=zero)
    with pytest.raises(ValueError, match=r"must lie in \[0, 11\)"):
        model(**inputs, start_positions=zero + 11, end_positions=zero)
    with pytest.raises(TypeError, match=r"end_positions must be integers, not torch\.float32"):
        model(**inputs, start_positions=zero, end_positions=zero.float())
    with pytest.raises(TypeError, match=r"labels must be integers, not torch\.bool"):
        BertForSequenceClassification(our_config())(**inputs, labels=zero.bool())


def test_numbers_to_regress_on_are_checked(inputs):
    model = BertForSequenceClassification(our_config(num_labels=1)).eval()
    numbers = torch.tensor([0.5, -100.0, 3.0, 1.0])
    logits = model(**inputs).logits.squeeze(1)
    found = model(**inputs, labels=numbers).loss
    torch.testing.assert_close(found, ((logits - numbers) ** 2).mean())  # -100 is a number like any other
    assert torch.equal(
        model(**inputs, labels=torch.tensor([1, 2, 3, 4])).loss, ((logits - torch.arange(1, 5)) ** 2).mean()
    )
    for wrong in (numbers > 0, numbers + 0j):
        with pytest.raises(TypeError, match=rf"labels must be numbers, for num_labels is 1, not {wrong.dtype}"):
            model(**inputs, labels=wrong)
    for wrong in (torch.nan, torch.inf):
        with pytest.raises(ValueError, match=f"labels must be finite, not {wrong}"):
            model(**inputs, labels=numbers.index_fill(0, torch.tensor(2), wrong))
    with pytest.raises(ValueError, match=r"labels must be \(batch,\) = \(4,\), not \(3,\)"):
        model(**inputs, labels=numbers[:3])


def test_unsigned_labels_have_no_minus_100():
    """In uint8, -100 is 156, which is a label like any other; other tokens have no label to be left out by."""
    ids = torch.tensor([[3, 156, 7]])
    model = BertForMaskedLM(our_config(vocab_size=200)).eval()
    found = model(ids, labels=ids.to(torch.uint8))
    assert found.logits.shape == (3, 200)
    torch.testing.assert_close(found.loss, model(ids, labels=ids).loss)
    with pytest.raises(ValueError, match=r"labels must lie in .* not 156"):
        ElectraDiscriminator(our_config())(ids[:, :1], labels=ids[:, 1:2].to(torch.uint8))


def test_labels_of_any_integer_type(inputs):
    """int32 and int8 mean what int64 means, which is the only type that torch's loss takes."""
    zero = torch.tensor([0, 1, 0, -100])
    model = BertForSequenceClassification(our_config()).eval()
    expected = model(**inputs, labels=zero).loss
    for dtype in (torch.int32, torch.int8):  # in uint8 there is no -100
        assert torch.equal(model(**inputs, labels=zero.to(dtype)).loss, expected)
    model = BertForQuestionAnswering(our_config()).eval()
    found, expected = (
        model(**inputs, start_positions=zero.to(dtype), end_positions=zero.to(dtype)).loss
        for dtype in (torch.int32, torch.int64)
    )
    assert torch.equal(found, expected)


@torch.no_grad()
def test_half_precision_and_autocast(inputs):
    """A model in bfloat16 and a model under autocast run, and stay near the exact one."""
    model = randomize(Bert(our_config()))
    keep = inputs["attention_mask"].bool()
    exact = model(**inputs).last_hidden_state[keep]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        near = model.float()(**inputs).last_hidden_state[keep]
    half = model.bfloat16()(**inputs).last_hidden_state[keep]
    for found in (near, half):
        assert 0 < float(F.mse_loss(found.double(), exact) / exact.var()) < 0.01
    assert half.dtype == torch.bfloat16
    assert draw(1).dtype == torch.float64


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_labelled_rows_alone_go_through_the_last_layer_and_nothing_changes(norm):
    """The shortcut against the long way: all logits, of which the labelled rows are taken."""
    torch.manual_seed(0)
    model = randomize(BertForMaskedLM(our_config(norm=norm))).double().eval()
    ids = torch.arange(5, 29).view(3, 8)
    mask = torch.ones_like(ids)
    mask[1, 5:] = 0
    targets = torch.full_like(ids, -100)
    for place in [(0, 0), (0, 7), (1, 4), (2, 3)]:
        targets[place] = ids[place]
    long_way = model(ids, mask).logits[targets != -100]
    loss = F.cross_entropy(long_way, targets[targets != -100])
    seen = []
    last = model.bert.encoder.layers[-1].feed_forward
    last.register_forward_hook(lambda module, inputs, output: seen.append(len(output)))
    for asked, rows in (({}, 4), ({"output_attentions": True}, 4), ({"output_hidden_states": True}, 21)):
        found = model(ids, mask, labels=targets, **asked)
        torch.testing.assert_close(found.logits, long_way, rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(found.loss, loss, rtol=1e-12, atol=1e-12)
        assert seen.pop() == rows
    gradients = torch.autograd.grad(loss, list(model.parameters()))
    shortcut = torch.autograd.grad(model(ids, mask, labels=targets).loss, list(model.parameters()))
    for gradient, expected in zip(shortcut, gradients, strict=True):
        torch.testing.assert_close(gradient, expected, rtol=1e-10, atol=1e-12)


HEADS = (
    BertForMaskedLM,
    CausalBert,
    BertForSequenceClassification,
    BertForTokenClassification,
    BertForQuestionAnswering,
    ElectraDiscriminator,
)


@pytest.mark.parametrize("cls", HEADS)
def test_what_a_model_does_not_take_is_named(cls):
    model, ids = cls(our_config()), torch.tensor([[1, 2]])
    for wrong in ("label", "wanted", "return_dict"):
        with pytest.raises(TypeError, match=f"takes no {wrong}; beside its inputs and its labels it takes output_att"):
            model(ids, **{wrong: ids})


def test_what_was_not_asked_for_is_not_kept():
    """Of every pair of the three that can be asked for."""
    bert = Bert(our_config()).eval()
    names = {"output_attentions": "attentions", "output_hidden_states": "hidden_states", "output_scores": "scores"}
    whole = bert.encode(torch.arange(1, 6), [3, 2], **dict.fromkeys(names, True))
    for left_out in names:
        asked = {name: name != left_out for name in names}
        part, padded = bert.encode(torch.arange(1, 6), [3, 2], **asked), bert(torch.tensor([[1, 2]]), **asked)
        for name, field in names.items():
            assert len(getattr(part, field)) == (asked[name] and len(getattr(whole, field)))
            assert (getattr(padded, field) is not None) == asked[name]
    nothing = bert.encode(torch.arange(1, 6), [3, 2])
    assert nothing.attentions == nothing.hidden_states == nothing.scores == []


def test_hooks_within_a_head_fire_where_its_docstring_says():
    model, seen = BertForTokenClassification(our_config()).eval(), []
    attention = model.bert.encoder.layers[0].attention
    for part in (
        model.bert.embeddings,
        model.bert.encoder,
        model.bert.encoder.layers[0],
        attention.query,
        attention.output,
    ):
        part.register_forward_hook(lambda module, inputs, output: seen.append(module))
    model(torch.tensor([[1, 2, 3]]))
    assert len(seen) == len(set(seen)) == 5


def test_wrong_input_is_named():
    for cls in (Bert, *HEADS, count_parameters):
        with pytest.raises(TypeError, match="config must be a BertConfig, not a dict"):
            cls({})
    model = Bert(our_config()).eval()
    with pytest.raises(TypeError, match="input_ids must be a tensor, not a list"):
        model([[1, 2]])
    with pytest.raises(TypeError, match="attention_mask must be a tensor, not a list"):
        model(torch.tensor([[1, 2]]), [[1, 1]])
    ids = torch.tensor([[1, 2]])
    with pytest.raises(TypeError, match="token_type_ids must be a tensor, not a list"):
        model(ids, token_type_ids=[[0, 0]])
    for cls in (BertForMaskedLM, CausalBert, BertForTokenClassification, ElectraDiscriminator):
        with pytest.raises(TypeError, match="labels must be a tensor, not a list"):
            cls(our_config())(ids, labels=[[1, 1]])
    for num_labels in (1, 2):
        with pytest.raises(TypeError, match="labels must be a tensor, not a list"):
            BertForSequenceClassification(our_config(num_labels=num_labels))(ids, labels=[1])
    with pytest.raises(TypeError, match="end_positions must be a tensor, not a int"):
        BertForQuestionAnswering(our_config())(ids, start_positions=torch.tensor([0]), end_positions=0)
    with pytest.raises(ValueError, match="must both be given"):
        BertForQuestionAnswering(our_config())(torch.tensor([[1, 2]]), start_positions=torch.tensor([0]))
    with pytest.raises(ValueError, match=r"labels must be 0, 1 or -100, not 0\.5"):
        ElectraDiscriminator(our_config())(torch.tensor([[1, 2]]), labels=torch.tensor([[0.5, 1.0]]))
    with pytest.raises(TypeError, match=r"labels must be 0, 1 or -100, not torch\.complex"):
        ElectraDiscriminator(our_config())(torch.tensor([[1, 2]]), labels=torch.tensor([[0j, 1.0]]))


def test_sentence_vectors_take_what_yields_texts_and_tokenizers_that_yield_lists():
    class Letters:
        def encode(self, text):
            return [1, *map(ord, text), 2]

    class Arrays(Letters):
        def encode(self, text):
            return torch.tensor(super().encode(text))

    class Tuples(Letters):
        def encode(self, text):
            return tuple(super().encode(text))

    model = Bert(our_config(vocab_size=200)).eval()
    ids = [[1, 97, 98, 2], [1, 99, 2]]
    expected = model.sentence_vectors(ids)
    assert torch.equal(model.sentence_vectors(iter(ids)), expected)
    for tokenizer in (Letters(), Arrays(), Tuples()):
        assert torch.equal(model.sentence_vectors(["ab", "c"], tokenizer), expected)
    assert torch.equal(model.sentence_vectors([torch.tensor(row) for row in ids]), expected)
    with pytest.raises(TypeError, match="in a padded batch, padding would count as text"):
        model.sentence_vectors(torch.tensor([[1, 97, 98, 2], [1, 99, 2, 0]]))
    for wrong in ({"input_ids": ids}, {"a", "b"}):
        with pytest.raises(TypeError, match=f"texts must be a list of strings .* not a {type(wrong).__name__}"):
            model.sentence_vectors(wrong, Letters())


def test_losses_are_added_up_in_float32():
    """40,000 labels at log 2 and more are beyond float16's 65,504."""
    ids = torch.ones(400, 256, dtype=torch.long)
    small = our_config(max_position_embeddings=256, num_hidden_layers=1)
    for cls in (ElectraDiscriminator, BertForTokenClassification):
        model = cls(small).eval()
        expected = model(ids, labels=ids % 2).loss
        found = model.half()(ids, labels=ids % 2).loss
        assert found.dtype == torch.float32
        torch.testing.assert_close(found, expected, rtol=1e-2, atol=0)


def test_the_pooler_wants_one_and_lengths_that_fit():
    model = Bert(our_config()).eval()
    hidden = torch.zeros(5, 32)
    for lengths, message in (([2, 2], "add up to the tokens, 5, not to 4"), ([6, -1], "from 0 up")):
        with pytest.raises(ValueError, match=message):
            model.pool(hidden, lengths)
    with pytest.raises(ValueError, match=r"hidden must be \(tokens, d\), not \(1, 5, 32\)"):
        model.pool(hidden[None], [5])
    assert torch.equal(model.pool(hidden, torch.tensor([2, 3])), model.pool(hidden, [2, 3]))
    with pytest.raises(ValueError, match="the model has no pooler"):
        Bert(our_config(), pooler=False).pool(hidden, [5])


def test_outputs_are_told_apart_by_identity():
    model, ids = Bert(our_config()).eval(), torch.tensor([[1, 2]])
    output = model(ids)
    assert output == output and output != model(ids)
