"""Packed weights give the same answers, stand aside where they must, and are gone at the end of the block."""

import copy
import pickle

import pytest
import torch
import torch.nn.functional as F

from bertlib import Bert, BertConfig, fast_matmul, onednn

needs_onednn = pytest.mark.skipif(not onednn.available(), reason="this torch has no oneDNN operators")
SIZES = dict(vocab_size=100, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96)
IDS = torch.arange(1, 61).view(3, 20)


@pytest.fixture(params=["gelu", "gelu_new"])
def model(request):
    torch.manual_seed(0)
    return Bert(BertConfig(**SIZES, hidden_act=request.param)).eval()


def overridden(model):
    return [name for name, module in model.named_modules() if "forward" in vars(module)]


@needs_onednn
def test_same_answers_without_gradients(model):
    with torch.no_grad():
        exact = model(IDS)
    with fast_matmul(pack=model):
        assert len(overridden(model)) >= 2 * 6 + 1  # six linear maps a layer, and the pooler
        found = model(IDS)
        assert not found.last_hidden_state.requires_grad
    for name in ("last_hidden_state", "pooler_output"):
        torch.testing.assert_close(getattr(found, name), getattr(exact, name), rtol=1e-5, atol=1e-5)


@needs_onednn
def test_the_operator_runs_and_gelu_is_fused_only_where_it_is_the_exact_one(model, monkeypatch):
    called = []
    monkeypatch.setattr(F, "linear", lambda *arguments: called.append(arguments))
    with torch.no_grad(), onednn.packed_linears(model) as packed:
        model.encoder.layers[0].feed_forward(torch.zeros(2, 64))
    assert packed == 13 and called == []
    fused = [name for name in overridden_within(model) if name.endswith("feed_forward")]
    assert len(fused) == (2 if model.config.hidden_act == "gelu" else 0)


def overridden_within(model):
    with onednn.packed_linears(model):
        return overridden(model)


@needs_onednn
def test_stands_aside_for_gradients_autocast_and_changed_weights(model):
    with onednn.packed_linears(model):
        model(IDS).last_hidden_state.sum().backward()
        assert model.encoder.layers[0].feed_forward.inner.weight.grad.abs().sum() > 0
        with torch.no_grad():
            before = model(IDS).last_hidden_state
            model.encoder.layers[1].feed_forward.inner.weight.mul_(3)
            after = model(IDS).last_hidden_state
            with torch.autocast("cpu", dtype=torch.bfloat16):
                assert model.pooler(torch.ones(1, 64)).dtype == torch.bfloat16
    with torch.no_grad():
        torch.testing.assert_close(after, model(IDS).last_hidden_state, rtol=1e-5, atol=1e-5)
    assert float((after - before).abs().max()) > 1e-3


def test_nothing_stays_behind(model):
    untouched = copy.deepcopy(model)
    with pytest.raises(ZeroDivisionError), fast_matmul(pack=model):
        _ = 1 / 0
    assert overridden(model) == []
    assert torch.equal(model(IDS).last_hidden_state, untouched(IDS).last_hidden_state)


def test_double_precision_and_a_torch_without_the_operators_are_left_alone(model, monkeypatch):
    with onednn.packed_linears(copy.deepcopy(model).double()) as packed:
        assert packed == 0
    monkeypatch.setattr(onednn, "available", lambda: False)
    with onednn.packed_linears(model) as packed:
        assert packed == 0 and overridden(model) == []


@needs_onednn
def test_a_copy_made_within_the_block_is_its_own(model):
    with fast_matmul(pack=model):
        copied = copy.deepcopy(model)
        with pytest.raises(TypeError, match="pickled"):
            pickle.dumps(model)
    with torch.no_grad():
        for parameter in copied.parameters():
            parameter.mul_(1.5)
    twin = Bert(model.config).eval()
    twin.load_state_dict(copied.state_dict())
    assert torch.equal(copied(IDS).last_hidden_state, twin(IDS).last_hidden_state)
    copied(IDS).last_hidden_state.sum().backward()
    assert copied.encoder.layers[0].feed_forward.inner.weight.grad is not None
    assert all(parameter.grad is None for parameter in model.parameters())
    with onednn.packed_linears(copied) as packed:
        assert packed == 13
    with torch.no_grad(), onednn.packed_linears(copied):
        torch.testing.assert_close(copied(IDS).last_hidden_state, twin(IDS).last_hidden_state, rtol=1e-5, atol=1e-5)


@needs_onednn
@pytest.mark.parametrize("gradients", [False, True])
def test_what_is_changed_within_the_block_counts(model, gradients):
    """Another activation, another map, a hook: the answer is that of the same model outside the block."""
    seen = []
    with onednn.packed_linears(model), torch.set_grad_enabled(gradients):
        first, second = (layer.feed_forward for layer in model.encoder.layers)
        first.activation = torch.relu
        second.inner = torch.nn.Linear(64, 96)
        first.inner.register_forward_hook(lambda *_: seen.append("hook"))
        found = model(IDS).last_hidden_state
    assert seen == ["hook"]
    torch.testing.assert_close(found, model(IDS).last_hidden_state, rtol=1e-5, atol=1e-5)


@needs_onednn
def test_each_weight_is_packed_once(model, monkeypatch):
    packed, pack = [], onednn.PackedLinear.__init__
    monkeypatch.setattr(
        onednn.PackedLinear, "__init__", lambda self, linear: packed.append(linear) or pack(self, linear)
    )
    with onednn.packed_linears(model):
        assert len(packed) == len(set(packed)) == 13


@needs_onednn
def test_hooks_patches_and_inner_blocks_are_respected(model):
    seen = []
    feed_forwards = [layer.feed_forward for layer in model.encoder.layers]
    feed_forwards[0].inner.register_forward_hook(lambda *_: seen.append("hook"))
    feed_forwards[1].inner.forward = lambda x: seen.append("patch") or F.linear(x, feed_forwards[1].inner.weight)
    with torch.no_grad(), onednn.packed_linears(model) as packed:
        with onednn.packed_linears(model) as again:
            assert again == 12
        assert len(overridden(model)) >= packed == 12
        model(IDS)
    assert seen == ["hook", "patch"]
    assert overridden(model) == ["encoder.layers.1.feed_forward.inner"]


@needs_onednn
def test_weights_made_in_inference_mode_are_left_alone():
    with torch.inference_mode():
        made = Bert(BertConfig(**SIZES)).eval()
    with onednn.packed_linears(made) as packed:
        assert packed == 0


def test_an_input_of_another_width_is_told_what_torch_tells(model):
    layer = model.encoder.layers[0].attention.query
    for x in (torch.ones(3, layer.in_features + 1), torch.tensor(1.0)):
        with pytest.raises(RuntimeError) as without, torch.no_grad():
            layer(x)
        with onednn.packed_linears(model), torch.no_grad(), pytest.raises(RuntimeError) as within:
            layer(x)
        assert str(within.value) == str(without.value)
