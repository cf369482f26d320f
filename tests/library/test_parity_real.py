"""Real weights in both libraries, on real sentences: the minilm encoder and the masked-LM head of bert-tiny.

The reference's models are built from the configuration and the tensors of the file; nothing comes from a hub.
"""

import gzip
import json
import pydoc_data.topics
import re

import pytest
import safetensors.torch
import tokenizers
import torch
import transformers
from reference_models import assert_equal, assert_same_gradients

from bertlib import Bert, BertForMaskedLM, datasets

FIELDS = (
    *("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size"),
    *("max_position_embeddings", "type_vocab_size", "hidden_act", "layer_norm_eps"),
)


def reference(name, architecture):
    fields = json.loads(datasets.fetch(f"{name}-config").read_text())
    sizes = {field: fields[field] for field in FIELDS}
    model = architecture(transformers.BertConfig(**sizes, attn_implementation="sdpa"))
    tensors = {
        name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias"): tensor
        for name, tensor in safetensors.torch.load_file(datasets.fetch(f"{name}-weights")).items()
    }
    found = model.load_state_dict(tensors, strict=False)
    tied = {"cls.predictions.decoder.weight", "cls.predictions.decoder.bias"}
    assert set(found.missing_keys) <= tied and set(found.unexpected_keys) <= {"embeddings.position_ids"}
    model.tie_weights()
    return model.eval()


@pytest.fixture(scope="module")
def tokenizer():
    tokenizer = tokenizers.Tokenizer.from_file(str(datasets.fetch("minilm-tokenizer")))
    tokenizer.no_padding()
    tokenizer.enable_truncation(128)
    return tokenizer


def manual():
    """Sentences that every Python has at hand: its own language reference."""
    text = " ".join(pydoc_data.topics.topics[name] for name in sorted(pydoc_data.topics.topics))
    return [" ".join(part.split()) for part in re.split(r"(?<=[.?!])\s+(?=[A-Z])", text) if 20 < len(part) < 200]


def corpora():
    """Short sentences of Tatoeba and, one in six, a paragraph of Wikipedia."""
    pairs = datasets.fetch("tatoeba-spa").read_text(encoding="utf-8").splitlines()
    text = gzip.decompress(datasets.fetch("wikitext2-valid").read_bytes()).decode()
    paragraphs = [line.strip() for line in text.splitlines() if len(line) > 20][:500]
    return [pair.split("\t")[0] for pair in pairs[:: len(pairs) // 2500]][:2500] + paragraphs


SENTENCES = [
    pytest.param((manual, 300), id="300"),
    pytest.param((corpora, 3000), id="3000", marks=pytest.mark.slow),
]


def batches(tokenizer, chosen, size):
    """Evenly chosen sentences, sorted by length for speed, ten of them out of place so that padding is never rare."""
    read, count = chosen
    lines = read()
    lines = [lines[i * len(lines) // count] for i in range(min(count, len(lines)))]
    rows = sorted((tokenizer.encode(line).ids for line in lines), key=len)
    rows = [rows[i * 7919 % len(rows)] if i % 30 == 0 else row for i, row in enumerate(rows)]
    for start in range(0, len(rows), size):
        part = rows[start : start + size]
        n = max(map(len, part))
        ids = torch.tensor([row + [0] * (n - len(row)) for row in part])
        mask = torch.tensor([[1] * len(row) + [0] * (n - len(row)) for row in part])
        yield {"input_ids": ids, "attention_mask": mask}


@pytest.mark.parametrize("chosen", SENTENCES)
@torch.no_grad()
def test_minilm(tokenizer, chosen):
    model, other = Bert.from_pretrained("minilm"), reference("minilm", transformers.BertModel)
    for number, inputs in enumerate(batches(tokenizer, chosen, 50)):
        keep = inputs["attention_mask"].bool()
        found, expected = model(**inputs), other(**inputs)
        assert_equal(found.last_hidden_state[keep], expected.last_hidden_state[keep], "hidden states", factor=2)
        assert_equal(found.pooler_output, expected.pooler_output, "pooled", factor=2)
        if number % 5:
            continue
        rows = [ids[real].tolist() for ids, real in zip(inputs["input_ids"], keep, strict=True)]
        means = (expected.last_hidden_state * keep[..., None]).sum(1) / keep.sum(1, keepdim=True)
        assert_equal(model.sentence_vectors(rows), means, "sentence vectors", factor=2)


def test_minilm_in_double_precision(tokenizer):
    model = Bert.from_pretrained("minilm", dtype=torch.float64)
    other = reference("minilm", transformers.BertModel).double()
    inputs = next(batches(tokenizer, (manual, 6), 6))
    keep = inputs["attention_mask"].bool()
    found, expected = model(**inputs), other(**inputs)
    assert_equal(found.last_hidden_state[keep], expected.last_hidden_state[keep], "hidden states")
    for output in (found, expected):
        (output.last_hidden_state[keep] ** 3).sum().add(output.pooler_output.sum()).backward()
    assert_same_gradients(model, other)


@pytest.mark.parametrize("chosen", SENTENCES)
@torch.no_grad()
def test_bert_tiny_masked_lm(tokenizer, chosen):
    model, other = BertForMaskedLM.from_pretrained("bert-tiny"), reference("bert-tiny", transformers.BertForMaskedLM)
    generator = torch.Generator().manual_seed(0)
    for inputs in batches(tokenizer, chosen, 50):
        ids, keep = inputs["input_ids"], inputs["attention_mask"].bool()
        guessed = keep & (ids > 102) & (torch.rand(ids.shape, generator=generator) < 0.15)
        inputs["input_ids"] = ids.masked_fill(guessed, 103)
        labels = ids.masked_fill(~guessed, -100)
        expected = other(**inputs, labels=labels)
        found = model(**inputs, labels=labels)
        assert_equal(found.logits, expected.logits[guessed], "logits at the masked tokens", factor=2)
        assert_equal(found.loss, expected.loss, "loss", factor=2)
        some = slice(0, 5)
        few = {name: value[some] for name, value in inputs.items()}
        assert_equal(model(**few).logits[keep[some]], expected.logits[some][keep[some]], "all logits", factor=2)
