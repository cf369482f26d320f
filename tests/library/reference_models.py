"""What the parity tests share: tiny random models of the reference library, and what "equal" means.

Every parameter is drawn, biases and LayerNorms too, so that a parameter that is not used, or used twice, shows. The
softmax is uneven, but not so steep that float32's rounding grows through it.
"""

import numpy as np
import torch
import transformers
from torch import Tensor

from bertlib import BertConfig
from bertlib.checkpoints import published_name
from bertlib.models import Model

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()

SIZES = {
    "vocab_size": 61,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 16,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    "num_labels": 3,
}
LENGTHS = [11, 7, 1, 9]
TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-6}


def reference(architecture: str, dtype=torch.float64, attention="eager", seed=0, **changes) -> torch.nn.Module:
    """A model of the reference library, with the tiny sizes and random weights."""
    kind = transformers.ElectraConfig if architecture.startswith("Electra") else transformers.BertConfig
    model = getattr(transformers, architecture)(kind(**SIZES | changes, attn_implementation=attention))
    generator = np.random.default_rng(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            draw = torch.from_numpy(generator.normal(size=parameter.shape))
            spread = 0.8 / parameter.shape[-1] ** 0.5 if parameter.dim() == 2 else 0.3
            parameter.copy_(spread * draw + (1.0 if name.endswith("LayerNorm.weight") else 0.0))
    return model.to(dtype).eval()


def ours(cls: type[Model], model: torch.nn.Module, folder) -> Model:
    """Our model with the reference's weights, by way of the files that the reference writes."""
    model.save_pretrained(folder)
    return cls.from_pretrained(folder, dtype=model.dtype)


def batch(seed=0, lengths=LENGTHS) -> dict[str, Tensor]:
    """Ids, mask and segments of unequal lengths, padded on the right with ids that mean nothing."""
    generator = np.random.default_rng(seed)
    shape = (len(lengths), max(lengths))
    ids = torch.from_numpy(generator.integers(1, SIZES["vocab_size"], shape))
    mask = (torch.arange(shape[1]) < torch.tensor(lengths)[:, None]).long()
    return {
        "input_ids": ids,
        "attention_mask": mask,
        "token_type_ids": torch.from_numpy(generator.integers(0, 2, shape)),
    }


def labels(inputs: dict[str, Tensor], classes: int, share=0.5, seed=1) -> Tensor:
    """A label for about half of the tokens, -100 elsewhere and at padding."""
    generator = np.random.default_rng(seed)
    shape = tuple(inputs["input_ids"].shape)
    chosen = torch.from_numpy(generator.random(shape) < share) & inputs["attention_mask"].bool()
    return torch.where(chosen, torch.from_numpy(generator.integers(0, classes, shape)), -100)


def error(found: Tensor, expected: Tensor, scale: float = 0.0) -> float:
    """The length of the difference as a share of the length of what is expected; entries count as `scale` at least."""
    assert found.shape == expected.shape and found.dtype == expected.dtype, (found.shape, found.dtype)
    length = max(float(expected.detach().norm()), scale * expected.numel() ** 0.5)
    return float((found - expected).detach().norm()) / length


def assert_equal(found: Tensor, expected: Tensor, what: str, factor: float = 1.0, scale: float = 0.0) -> None:
    bound = factor * TOLERANCE[found.dtype]
    assert (e := error(found, expected, scale)) <= bound, f"{what}: relative error {e:.2e}, more than {bound:.0e}"


def assert_same_gradients(model: Model, other: torch.nn.Module) -> None:
    """Every gradient, by published name, to ten times the tolerance of an output: rounding adds up on the way back.

    One that is zero but for rounding, as that of the keys' bias, is held against the largest of all.
    """
    theirs = {
        name.removeprefix("bert.").removeprefix("electra."): p.grad
        for name, p in other.named_parameters()
        if p.grad is not None
    }
    mine = {published_name(name): p.grad for name, p in model.named_parameters() if p.grad is not None}
    assert mine.keys() == theirs.keys()
    largest = max(float(gradient.abs().max()) for gradient in theirs.values())
    for name, gradient in mine.items():
        assert_equal(gradient, theirs[name], f"gradient of {name}", factor=10, scale=1e-2 * largest)


def our_config(**changes) -> BertConfig:
    return BertConfig(**SIZES | changes)
