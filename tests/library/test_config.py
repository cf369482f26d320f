"""BertConfig: the published defaults, and a clear word about what no BERT can be."""

import json
import logging

import numpy as np
import pytest
import transformers

from bertlib import BertConfig, config


def test_defaults_are_bert_base():
    config = BertConfig()
    assert (config.num_hidden_layers, config.hidden_size, config.num_attention_heads) == (12, 768, 12)
    assert (config.head_dim, config.intermediate_size, config.max_position_embeddings) == (64, 3072, 512)
    assert (config.vocab_size, config.type_vocab_size, config.layer_norm_eps) == (30522, 2, 1e-12)


@pytest.mark.parametrize(
    "field, value",
    [
        ("hidden_size", 0),
        ("num_hidden_layers", -1),
        ("vocab_size", 2.5),
        ("type_vocab_size", True),
        ("num_attention_heads", 7),
        ("hidden_dropout_prob", 1.0),
        ("attention_probs_dropout_prob", "0.1"),
        ("layer_norm_eps", 0),
        ("initializer_range", float("inf")),
        ("hidden_act", "swish"),
        ("hidden_act", ["gelu"]),
        ("pad_token_id", 30522),
        ("embedding_size", 0),
        ("num_labels", None),
        ("classifier_dropout", 1.0),
        ("hidden_dropout_prob", True),
        ("initializer_range", True),
        ("layer_norm_eps", float("nan")),
        ("is_decoder", 1),
        ("position_embedding_type", "relative_key"),
        ("norm", "sandwich"),
        ("initialization", None),
    ],
)
def test_wrong_value_names_the_field(field, value):
    with pytest.raises(ValueError, match=field):
        BertConfig(**{field: value})


def test_from_json_reads_the_published_fields(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"hidden_size": 384, "num_attention_heads": 12, "architectures": ["BertModel"]}))
    assert BertConfig.from_json(path) == BertConfig(hidden_size=384)
    assert BertConfig.from_json(path).head_dim == 32


@pytest.mark.parametrize("text", ["", "{", "[1, 2]", "\x00"])
def test_from_json_names_the_file(tmp_path, text):
    path = tmp_path / "config.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"config\.json"):
        BertConfig.from_json(path)


def test_rotary_needs_pairs():
    with pytest.raises(ValueError, match=r"position_embedding_type rotary .* must be even, not 3"):
        BertConfig(hidden_size=9, num_attention_heads=3, position_embedding_type="rotary")


def test_what_follows_from_the_fields():
    plain = BertConfig()
    assert (plain.embedding_dim, plain.head_dropout, plain.num_labels) == (768, 0.1, 2)
    other = BertConfig(embedding_size=128, classifier_dropout=0.0)
    assert (other.embedding_dim, other.head_dropout) == (128, 0.0)


PUBLISHED = {"hidden_size": 24, "num_attention_heads": 3, "architectures": ["BertModel"], "model_type": "bert"}


def test_unknown_fields_are_kept_and_told_once(caplog, monkeypatch):
    monkeypatch.setattr(config, "_told", set())
    published = PUBLISHED | {"chunk_size_feed_forward": 4, "add_cross_attention": False, "pruned_heads": {}}
    with caplog.at_level(logging.WARNING, "bertlib"):
        found = BertConfig.from_dict(published)
        assert BertConfig.from_dict(published) == found == BertConfig(hidden_size=24, num_attention_heads=3)
    assert [record.getMessage() for record in caplog.records] == [
        "config: the field chunk_size_feed_forward = 4 is kept and has no effect here"
    ]
    assert found.extra == {name: published[name] for name in published.keys() - {"hidden_size", "num_attention_heads"}}
    assert found.to_dict().items() >= published.items()


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"embedding_size": 8, "num_labels": 5, "classifier_dropout": 0.2, "is_decoder": True},
        {"position_embedding_type": "rotary", "norm": "pre", "initialization": "fan_in"},
    ],
)
def test_to_json_and_back(tmp_path, changes):
    before = BertConfig(hidden_size=24, num_attention_heads=3, extra={"model_type": "bert"}, **changes)
    before.to_json(tmp_path / "config.json")
    after = BertConfig.from_json(tmp_path / "config.json")
    assert after == before and after.extra == {"model_type": "bert"}
    unsaid = set(config.UNPUBLISHED) - changes.keys()
    assert not unsaid & json.loads((tmp_path / "config.json").read_text()).keys()


def test_a_configuration_is_a_value():
    assert BertConfig(extra={"a": 1}) == BertConfig() and hash(BertConfig(extra={"a": 1})) == hash(BertConfig())
    with pytest.raises(AttributeError):
        BertConfig().hidden_size = 3


def test_the_number_of_labels_is_that_of_their_names(tmp_path):
    names = {"0": "no", "1": "perhaps", "2": "yes"}
    found = BertConfig.from_dict(PUBLISHED | {"id2label": names, "label2id": {"no": 0, "perhaps": 1, "yes": 2}})
    assert found.num_labels == 3
    assert BertConfig.from_dict(found.to_dict()) == found and found.to_dict()["id2label"] == names
    fewer = BertConfig.from_dict(found.to_dict() | {"num_labels": 2})
    assert fewer.num_labels == 2 and not {"id2label", "label2id"} & fewer.to_dict().keys()
    for changes in (found, BertConfig(num_labels=7)):
        changes.to_json(tmp_path / "config.json")
        assert transformers.BertConfig.from_pretrained(tmp_path).num_labels == changes.num_labels


def test_the_references_file_is_read(tmp_path):
    theirs = transformers.BertConfig(hidden_size=24, num_attention_heads=3, num_labels=4, hidden_act="gelu_new")
    theirs.save_pretrained(tmp_path)
    found = BertConfig.from_json(tmp_path / "config.json")
    assert found == BertConfig(hidden_size=24, num_attention_heads=3, num_labels=4, hidden_act="gelu_new")


def test_json_that_python_will_not_parse(tmp_path):
    for text in ("[" * 100_000, '{"hidden_size": ' + "1" * 5000 + "}"):
        (tmp_path / "config.json").write_text(text)
        with pytest.raises(ValueError, match=r"config\.json is not valid JSON"):
            BertConfig.from_json(tmp_path / "config.json")


def test_sizes_of_numpy_are_taken_as_pythons():
    config = BertConfig(hidden_size=np.int64(24), num_attention_heads=np.int32(3))
    assert config == BertConfig(hidden_size=24, num_attention_heads=3) and type(config.hidden_size) is int
    config = BertConfig(pad_token_id=np.int64(3), hidden_dropout_prob=np.float32(0.5), layer_norm_eps=np.float64(1e-5))
    assert config == BertConfig(pad_token_id=3, hidden_dropout_prob=0.5, layer_norm_eps=1e-5)
    assert {type(value) for value in (config.pad_token_id, config.hidden_dropout_prob)} == {int, float}
    json.dumps(config.to_dict())
    with pytest.raises(ValueError, match="num_labels must be a positive integer, not True"):
        BertConfig(num_labels=True)


def test_what_is_no_mapping_is_refused():
    for wrong in (None, 3):
        with pytest.raises(ValueError, match=f"extra must map names to values, not {wrong}"):
            BertConfig(extra=wrong)
    with pytest.raises(TypeError, match=r"published must map names to values, not '{}'"):
        BertConfig.from_dict("{}")


def test_a_loss_for_several_labels_at_once_is_said_to_have_no_effect(caplog, monkeypatch):
    monkeypatch.setattr(config, "_told", set())
    BertConfig.from_dict({"problem_type": "multi_label_classification"})
    assert "problem_type = 'multi_label_classification' is kept and has no effect here" in caplog.text
