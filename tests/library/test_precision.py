"""fast_matmul: faster, near enough, without gradients, and gone at the end of its block."""

import pytest
import torch

from bertlib import Bert, BertConfig, fast_matmul
from bertlib.attention import fused_attention


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    return Bert(BertConfig(vocab_size=100, hidden_size=64, num_hidden_layers=2, num_attention_heads=4)).eval()


@pytest.mark.parametrize(("bf16", "least", "most"), [(False, 0.0, 1e-2), (True, 1e-4, 5e-2)])
def test_near_the_exact_answer(model, bf16, least, most):
    """ "medium" may mean bfloat16 products, where the chip has units for them."""
    ids = torch.arange(1, 61).view(3, 20)
    exact = model(ids).last_hidden_state
    with fast_matmul(bf16=bf16):
        found = model(ids).last_hidden_state
    assert not found.requires_grad
    assert least <= float((found - exact).detach().norm() / exact.detach().norm()) < most


@pytest.mark.parametrize("before", ["highest", "high"])
def test_the_setting_is_restored(before):
    kept = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(before)
    try:
        with fast_matmul(bf16=True):
            assert torch.get_float32_matmul_precision() == "medium"
            assert torch.is_autocast_enabled("cpu") and not torch.is_grad_enabled()
        assert torch.get_float32_matmul_precision() == before
        with pytest.raises(ZeroDivisionError), fast_matmul():
            assert not torch.is_autocast_enabled("cpu")
            _ = 1 / 0
        assert torch.get_float32_matmul_precision() == before
        assert torch.is_grad_enabled() and not torch.is_autocast_enabled("cpu")
    finally:
        torch.set_float32_matmul_precision(kept)


def test_attention_keeps_the_default_product(model):
    """Where "medium" only slows the fused kernel down: to the last bit what it gives without, and the setting stays."""
    layer = model.encoder.layers[0].attention
    x = torch.randn(5, 40, 64, generator=torch.Generator().manual_seed(1))
    query, key, value = (layer.split_heads(x) for _ in range(3))
    seen = []
    original = torch.nn.functional.scaled_dot_product_attention

    def spy(*args, **kwargs):
        seen.append(torch.get_float32_matmul_precision())
        return original(*args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.nn.functional, "scaled_dot_product_attention", spy)
        exact = fused_attention(query, key, value)
        with fast_matmul():
            found = fused_attention(query, key, value)
            layer.packed(x[0], [40])
            assert torch.get_float32_matmul_precision() == "medium"
    assert torch.equal(found, exact)
    assert seen == ["highest"] * 3
    with fast_matmul(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.nn.functional, "scaled_dot_product_attention", lambda *args, **kwargs: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            fused_attention(query, key, value)
        assert torch.get_float32_matmul_precision() == "medium"


def test_a_model_given_by_place_is_refused(model):
    """It would be taken for `bf16`."""
    with pytest.raises(TypeError), fast_matmul(model):
        pass


def test_wrong_options_are_named(model):
    for wrong in ("minilm", [model]):
        with pytest.raises(TypeError, match=r"pack must be a model, a torch.nn.Module, not a"), fast_matmul(pack=wrong):
            pass
    for wrong in ({"device_type": "banana"}, {"device_type": "meta", "bf16": True}):
        with pytest.raises(ValueError, match="device_type must be"), fast_matmul(**wrong):
            pass
    for wrong in (None, 1.5, torch.device("cpu")):
        with pytest.raises(TypeError, match="device_type must be a string"), fast_matmul(device_type=wrong):
            pass
    for wrong in (model, "no", 1):
        with pytest.raises(TypeError, match="bf16 must be True or False"), fast_matmul(bf16=wrong):
            pass
    assert torch.get_float32_matmul_precision() == "highest" and torch.is_grad_enabled()


def test_packing_nothing_is_said(model, caplog):
    double = Bert(BertConfig(vocab_size=9, hidden_size=8, num_hidden_layers=1, num_attention_heads=1)).double()
    for packed, said in ((model, ""), (double, "no linear map of the model can be packed"), (None, "")):
        caplog.clear()
        with fast_matmul(pack=packed):
            assert said in caplog.text and bool(caplog.text) == bool(said)
    with fast_matmul(pack=model), fast_matmul(pack=model):
        assert not caplog.text
