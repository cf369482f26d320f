"""from_pretrained and save_pretrained: what goes out comes back, here and in the reference, or an error says why."""

import json
import logging
import subprocess
import sys

import pytest
import safetensors.torch
import torch
import transformers
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reference_models import SIZES, assert_equal, batch, our_config, ours, reference
from test_encoder import randomize
from test_models import WITH_HEADS, outputs

from bertlib import (
    Bert,
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    BertForTokenClassification,
    CausalBert,
    ElectraDiscriminator,
)
from bertlib.checkpoints import CheckpointError, published_name, read_safetensors, write_safetensors

TINY = {"num_hidden_layers": 1, "hidden_size": 8, "intermediate_size": 12, "vocab_size": 61, "num_attention_heads": 2}


def same_parameters(one, other):
    first, second = one.state_dict(), other.state_dict()
    assert first.keys() == second.keys()
    return all(torch.equal(first[name], second[name]) for name in first)


@pytest.fixture
def folder(tmp_path):
    """A saved masked language model with all of its files."""
    torch.manual_seed(0)
    BertForMaskedLM(our_config(**TINY)).save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def change(folder, drop=(), put=None, **config):
    """The same checkpoint with tensors left out or put in, and fields of the configuration changed."""
    tensors = read_safetensors(folder / "model.safetensors")
    tensors = {name: tensor for name, tensor in tensors.items() if not name.startswith(tuple(drop))} | (put or {})
    write_safetensors(tensors, folder / "model.safetensors")
    fields = json.loads((folder / "config.json").read_text()) | config
    (folder / "config.json").write_text(json.dumps(fields))


# There and back


@pytest.mark.parametrize("cls", [Bert, *WITH_HEADS])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {
            "norm": "pre",
            "position_embedding_type": "rotary",
            "embedding_size": 20,
            "num_labels": 5,
            "hidden_act": "relu",
        },
    ],
    ids=["bert", "other"],
)
def test_save_and_load_is_the_identity(tmp_path, cls, changes):
    model = randomize(cls(our_config(**changes)))
    model.save_pretrained(tmp_path / "a" / "b")
    again = cls.from_pretrained(tmp_path / "a" / "b", dtype=torch.float64)
    assert same_parameters(model, again) and again.config == model.config
    assert not again.training and all(p.requires_grad and not p.is_meta for p in again.parameters())
    for mine, theirs in zip(outputs(model(**batch())), outputs(again(**batch())), strict=True):
        assert torch.equal(mine, theirs)
    again.save_pretrained(tmp_path / "c")
    for name in ("config.json", "model.safetensors"):
        assert (tmp_path / "c" / name).read_bytes() == (tmp_path / "a" / "b" / name).read_bytes()
    assert sorted(path.name for path in (tmp_path / "c").iterdir()) == ["config.json", "model.safetensors"]
    file = cls.from_pretrained(tmp_path / "c" / "model.safetensors", dtype=torch.float64)
    assert same_parameters(model, file)


@pytest.mark.parametrize("cls", [Bert, *WITH_HEADS])
def test_the_reference_loads_what_we_save(tmp_path, cls):
    model = randomize(cls(our_config(num_labels=5)))
    model.save_pretrained(tmp_path)
    architecture = getattr(transformers, json.loads((tmp_path / "config.json").read_text())["architectures"][0])
    other, report = architecture.from_pretrained(tmp_path, dtype=torch.float64, output_loading_info=True)
    assert not any(report[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys")), report
    inputs = batch()
    keep = inputs["attention_mask"].bool()
    found, expected = next(outputs(model(**inputs))), other.eval()(**inputs)[0]
    if found.shape[:2] == keep.shape:
        found, expected = found[keep], expected[keep]
    assert_equal(found, expected, cls.__name__)


def test_a_tied_decoder_is_written_once(tmp_path):
    BertForMaskedLM(our_config()).save_pretrained(tmp_path)
    names = set(safetensors.torch.load_file(tmp_path / "model.safetensors"))
    assert "bert.embeddings.word_embeddings.weight" in names and "cls.predictions.bias" in names
    assert not any("decoder" in name for name in names)
    other = transformers.BertForMaskedLM.from_pretrained(tmp_path)
    assert other.cls.predictions.decoder.weight is other.bert.embeddings.word_embeddings.weight


def test_published_names_of_all_parts():
    with torch.device("meta"):
        model = BertForMaskedLM(our_config(num_hidden_layers=1))
        theirs = transformers.BertForMaskedLM(transformers.BertConfig(**SIZES | {"num_hidden_layers": 1}))
    published = {name.removeprefix("bert.") for name in theirs.state_dict()}
    published -= {"cls.predictions.decoder.weight", "cls.predictions.decoder.bias"}
    assert {published_name(name) for name in model.state_dict()} == published


@pytest.mark.parametrize("prefix", ["", "module."])
def test_names_of_the_first_releases(tmp_path, prefix):
    """gamma and beta, a prefix of data parallelism, a stored range of positions, a decoder written twice."""
    other = reference("BertForPreTraining")
    other.config.save_pretrained(tmp_path)
    old = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
    tensors = {"bert.embeddings.position_ids": torch.arange(16)[None]}
    for name, tensor in other.state_dict().items():
        for new, first in old.items():
            name = name.replace(new, first)
        tensors[prefix + name] = tensor.clone()
    write_safetensors(tensors, tmp_path / "model.safetensors")
    inputs = batch()
    keep = inputs["attention_mask"].bool()
    expected = other(**inputs)
    model = BertForMaskedLM.from_pretrained(tmp_path, dtype=torch.float64)
    assert_equal(model(**inputs).logits[keep], expected.prediction_logits[keep], "masked LM")
    bert = Bert.from_pretrained(tmp_path, dtype=torch.float64)
    assert_equal(bert(**inputs).pooler_output, other.bert(**inputs).pooler_output, "pooled")


def test_a_type_is_chosen(folder):
    assert {p.dtype for p in BertForMaskedLM.from_pretrained(folder).parameters()} == {torch.float32}
    half = BertForMaskedLM.from_pretrained(folder, dtype=torch.bfloat16)
    assert {p.dtype for p in half.parameters()} == {torch.bfloat16}
    half.save_pretrained(folder)
    assert same_parameters(BertForMaskedLM.from_pretrained(folder, dtype=torch.bfloat16), half)


# Heads


def test_a_new_head_is_drawn_and_said(folder, caplog):
    with caplog.at_level(logging.INFO, "bertlib"):
        model = BertForSequenceClassification.from_pretrained(folder, num_labels=4, initializer_range=0.5)
    assert "checkpoint has no classifier and no pooler; drawn anew" in caplog.text
    assert "cls.predictions has no place here" in caplog.text
    assert model.classifier.weight.shape == (4, 8) and model.classifier.weight.abs().max() > 0.1
    assert bool((model.classifier.bias == 0).all()) and model.bert.pooler.weight.abs().max() > 0.1
    assert not any(p.is_meta for p in model.parameters())
    model(torch.tensor([[5, 6]]), labels=torch.tensor([3])).loss.backward()
    masked = BertForMaskedLM.from_pretrained(folder)
    assert torch.equal(model.bert.embeddings.token.weight, masked.bert.embeddings.token.weight)
    caplog.clear()
    model.save_pretrained(folder)
    with caplog.at_level(logging.INFO, "bertlib"):
        again = BertForSequenceClassification.from_pretrained(folder)
    assert same_parameters(model, again) and not caplog.records and again.config.num_labels == 4


def test_a_checkpoint_without_a_pooler_gives_none(folder, caplog):
    model = Bert.from_pretrained(folder)
    assert model.pooler is None and model(torch.tensor([[5]])).pooler_output is None
    assert not caplog.records  # nothing was drawn


def test_half_a_head_is_an_error(folder):
    model = BertForSequenceClassification.from_pretrained(folder)
    model.save_pretrained(folder)
    change(folder, drop=["classifier.bias", "bert.pooler.dense.weight"])
    for cls, names in (
        (BertForSequenceClassification, "pooler.dense.weight, classifier.bias"),
        (Bert, "pooler.dense.weight"),
    ):
        with pytest.raises(CheckpointError, match=rf"do not make a {cls.__name__}: missing: {names}$"):
            cls.from_pretrained(folder)


def test_missing_left_over_and_misshaped_tensors_are_all_named(folder):
    change(
        folder,
        drop=["bert.encoder.layer.0.attention.self.key.bias", "cls.predictions.transform.dense.weight"],
        put={
            "bert.encoder.layer.0.crossattention.self.key.bias": torch.ones(8),
            "bert.encoder.layer.0.output.dense.weight": torch.ones(12, 8),
            "bert.encoder.layer.0.output.dense.bias": torch.ones(8, dtype=torch.long),
            "strange": torch.ones(1),
        },
    )
    with pytest.raises(CheckpointError) as caught:
        BertForMaskedLM.from_pretrained(folder)
    message = str(caught.value)
    assert message.startswith(f"{folder / 'model.safetensors'}: the tensors do not make a BertForMaskedLM: ")
    missing, left_over, wrong = message.split(": ", 2)[2].split("; ")
    assert missing == "missing: encoder.layer.0.attention.self.key.bias, cls.predictions.transform.dense.weight"
    assert set(left_over.removeprefix("left over: ").split(", ")) == {
        "encoder.layer.0.crossattention.self.key.bias",
        "strange",
    }
    assert "output.dense.weight, torch.float32 (12, 8) instead of (8, 12)" in wrong
    assert "output.dense.bias, torch.int64 (8,)" in wrong


def test_an_untied_decoder_is_refused(folder):
    table = read_safetensors(folder / "model.safetensors")["bert.embeddings.word_embeddings.weight"]
    change(folder, put={"cls.predictions.decoder.weight": table.clone()})
    BertForMaskedLM.from_pretrained(folder)
    change(folder, put={"cls.predictions.decoder.weight": table + 1})
    with pytest.raises(CheckpointError, match=r"decoder\.weight differs from embeddings\.word_embeddings\.weight"):
        BertForMaskedLM.from_pretrained(folder)
    Bert.from_pretrained(folder)
    change(folder, drop=["cls.predictions.decoder"], put={"cls.predictions.decoder.bias": torch.ones(61)})
    with pytest.raises(CheckpointError, match=r"decoder\.bias differs from cls\.predictions\.bias"):
        BertForMaskedLM.from_pretrained(folder)
    change(folder, drop=["cls.predictions.bias"])
    assert bool((BertForMaskedLM.from_pretrained(folder).predictions.bias == 1).all())


# Configurations that do not fit


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"num_hidden_layers": 2}, r"num_hidden_layers is 2 by the config, but there are 1"),
        ({"num_hidden_layers": 10**12}, r"num_hidden_layers is 10{12} by the config"),
        ({"intermediate_size": 13}, r"not fitting the config: .*intermediate\.dense\.bias, torch\.float32 \(12,\)"),
        ({"intermediate_size": 10**15}, r"not fitting the config|no model can be made"),
        ({"intermediate_size": 10**30}, r"no model can be made from the config"),
        ({"norm": "pre"}, r"missing: encoder\.LayerNorm\.weight, encoder\.LayerNorm\.bias"),
        ({"position_embedding_type": "rotary"}, r"left over: embeddings\.position_embeddings\.weight"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type must be one of absolute, rotary"),
        ({"embedding_size": 4}, r"word_embeddings\.weight must be \(vocab_size, embedding_size\) = \(61, 4\)"),
        ({"model_type": "roberta"}, "model_type must be one of bert, electra, not 'roberta'"),
        ({"model_type": ["bert"]}, "model_type must be one of bert, electra"),
    ],
)
def test_a_configuration_that_does_not_fit(folder, fields, message):
    change(folder, **fields)
    with pytest.raises(CheckpointError, match=message):
        BertForMaskedLM.from_pretrained(folder)


def test_a_causal_checkpoint_in_another_model_is_said(folder, caplog):
    CausalBert.from_pretrained(folder).save_pretrained(folder / "causal")
    with caplog.at_level(logging.WARNING, "bertlib"):
        CausalBert.from_pretrained(folder / "causal")
        Bert.from_pretrained(folder / "causal", is_decoder=False)
        assert "causal" not in caplog.text
        Bert.from_pretrained(folder / "causal")
    assert "Bert: the checkpoint is causal" in caplog.text and "is_decoder=False" in caplog.text


@pytest.mark.parametrize("dtype", ["float16", torch.int32, float])
def test_a_dtype_is_a_floating_point_dtype(folder, dtype):
    with pytest.raises(TypeError, match="dtype must be a floating-point"):
        Bert.from_pretrained(folder, dtype=dtype)


def test_changes_are_checked_and_the_kind_of_model_stays(folder):
    with pytest.raises(ValueError, match="hidden_act must be one of"):
        BertForMaskedLM.from_pretrained(folder, hidden_act="swish")
    with pytest.raises(CheckpointError, match="not fitting the config"):
        BertForMaskedLM.from_pretrained(folder, intermediate_size=10)
    assert BertForMaskedLM.from_pretrained(folder, hidden_dropout_prob=0.3).bert.embeddings.dropout.p == 0.3
    causal = CausalBert.from_pretrained(folder)
    assert causal.config.is_decoder and causal.bert.encoder.layers[0].attention.causal
    with pytest.raises(TypeError, match="num_label, torch_dtype: no field of the configuration, nor dtype; its fields"):
        Bert.from_pretrained(folder, num_label=3, torch_dtype="auto", num_labels=3)
    with pytest.raises(TypeError, match="extra: no field of the configuration"):
        Bert.from_pretrained(folder, extra=3)
    with pytest.raises(CheckpointError, match="must be one of minilm, bert-tiny, a folder"):
        Bert.from_pretrained(folder / "nothing")


# Damage


@given(data=st.data())
@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_checkpoint_gives_an_error_or_the_right_answer(folder, data):
    """Any file cut, any byte changed, any field of the configuration replaced: an error, or a model without a hole."""
    config, weights = folder / "config.json", folder / "model.safetensors"
    whole = {path: path.read_bytes() for path in (config, weights)}
    header = 8 + int.from_bytes(whole[weights][:8], "little")
    try:
        kind = data.draw(st.sampled_from(["field", "config", "header", "cut"]))
        if kind == "field":
            fields = json.loads(whole[config])
            name = data.draw(st.sampled_from(sorted(fields)))
            scalars = (
                st.none() | st.booleans() | st.integers(-3, 70) | st.integers() | st.floats() | st.text(max_size=5)
            )
            fields[name] = data.draw(
                scalars | st.lists(scalars, max_size=2) | st.dictionaries(st.text(), scalars, max_size=2)
            )
            config.write_text(json.dumps(fields))
        else:
            path, end = {"config": (config, None), "header": (weights, header), "cut": (weights, None)}[kind]
            content = bytearray(whole[path])
            at = data.draw(st.integers(0, (end or len(content)) - 1))
            if kind == "cut":
                del content[at:]
            else:
                content[at] = data.draw(st.integers(0, 255))
            path.write_bytes(content)
        try:
            model = BertForMaskedLM.from_pretrained(folder)
        except CheckpointError:
            return
        assert not any(p.is_meta for p in model.parameters())
        stored = {name.removeprefix("bert."): t for name, t in safetensors.torch.load(weights.read_bytes()).items()}
        for name, tensor in model.state_dict().items():
            if published_name(name) in stored:
                assert torch.equal(tensor.nan_to_num(), stored[published_name(name)].float().nan_to_num())
            else:  # the head as a whole, by another name
                assert name.startswith("predictions.")
        model(torch.tensor([[5, 6]]))
    finally:
        for path, content in whole.items():
            path.write_bytes(content)


@pytest.mark.parametrize("broken", ["os.fsync", "pathlib.Path.replace"])
def test_the_old_checkpoint_survives_a_failure(folder, monkeypatch, broken):
    before = BertForMaskedLM.from_pretrained(folder)

    def fail(*_):
        raise OSError("No space left")

    monkeypatch.setattr(broken, fail)
    with pytest.raises(OSError, match="No space left"):
        BertForMaskedLM(our_config(**TINY | {"hidden_size": 16})).save_pretrained(folder)
    monkeypatch.undo()
    assert same_parameters(BertForMaskedLM.from_pretrained(folder), before)
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "model.safetensors"]


def test_what_is_loaded_does_not_depend_on_chance_and_leaves_it_alone(folder):
    torch.manual_seed(5)
    state = torch.get_rng_state()
    BertForMaskedLM.from_pretrained(folder)
    assert torch.equal(torch.get_rng_state(), state)


def test_real_heads_by_name():
    """The encoder has a pooler, the masked LM none; a head that neither has is drawn."""
    assert Bert.from_pretrained("minilm").pooler is not None
    assert Bert.from_pretrained("bert-tiny").pooler is None
    assert BertForTokenClassification.from_pretrained("bert-tiny", num_labels=7).classifier.weight.shape == (7, 128)


def test_electra_says_its_width(tmp_path):
    """Other libraries take 128 for the width of the embeddings where a file says nothing."""
    ElectraDiscriminator(our_config()).save_pretrained(tmp_path)
    assert json.loads((tmp_path / "config.json").read_text())["embedding_size"] == 32
    other = reference("ElectraForPreTraining", embedding_size=32)
    assert ours(ElectraDiscriminator, other, tmp_path / "theirs").config.embedding_size == 32


def test_importing_the_package_does_not_import_torch():
    code = (
        "import sys, bertlib; bertlib.BertConfig; before = 'torch' in sys.modules; bertlib.Bert; "
        "print(before, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False True\n"
    import bertlib

    assert all(getattr(bertlib, name) is not None for name in bertlib.__all__)
    assert BertConfig is bertlib.BertConfig


def test_fields_of_another_library_are_written_as_they_are_true(tmp_path):
    """A file that says bfloat16 or an untied decoder would make others round the weights or draw a decoder anew."""
    foreign = {"dtype": "bfloat16", "torch_dtype": "bfloat16", "tie_word_embeddings": False}
    (tmp_path / "foreign.json").write_text(json.dumps(our_config().to_dict() | foreign))
    BertForMaskedLM(BertConfig.from_json(tmp_path / "foreign.json")).save_pretrained(tmp_path)
    written = json.loads((tmp_path / "config.json").read_text())
    assert {name: written[name] for name in foreign} == {
        "dtype": "float32",
        "torch_dtype": "float32",
        "tie_word_embeddings": True,
    }
    BertForMaskedLM(our_config()).save_pretrained(tmp_path)
    assert foreign.keys().isdisjoint(json.loads((tmp_path / "config.json").read_text()))
