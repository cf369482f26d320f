"""BertConfig: the published defaults, and a clear word about what no BERT can be."""

import json

import pytest

from bertlib import BertConfig


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
        ("pad_token_id", 30522),
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
