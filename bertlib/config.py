"""The numbers that fix a BERT, under the field names of the published `config.json` files."""

import json
from dataclasses import dataclass, fields
from pathlib import Path

ACTIVATIONS = ("gelu", "gelu_new", "relu")


@dataclass(frozen=True)
class BertConfig:
    """Sizes and constants of a BERT encoder. The defaults are BERT-base, uncased (Devlin et al. 2019, section 3).

    Widths are in components, `layer_norm_eps` is added to a variance, the two dropouts are probabilities and
    `initializer_range` is the standard deviation of the normal draw that a weight starts from.

    Raises:
        ValueError: when a size is not a positive integer, a probability lies outside [0, 1), the heads do not divide
            the width, or the activation is not one of `ACTIVATIONS`. The message names the field.
    """

    vocab_size: int = 30522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    pad_token_id: int = 0

    def __post_init__(self):
        for name in (
            "vocab_size",
            "hidden_size",
            "num_hidden_layers",
            "num_attention_heads",
            "intermediate_size",
            "max_position_embeddings",
            "type_vocab_size",
        ):
            size = getattr(self, name)
            if type(size) is not int or size < 1:
                raise ValueError(f"{name} must be a positive integer, not {size!r}")
        for name in ("hidden_dropout_prob", "attention_probs_dropout_prob"):
            probability = getattr(self, name)
            if not isinstance(probability, int | float) or not 0 <= probability < 1:
                raise ValueError(f"{name} must be a probability in [0, 1), not {probability!r}")
        for name in ("initializer_range", "layer_norm_eps"):
            constant = getattr(self, name)
            if not isinstance(constant, int | float) or not 0 < constant < float("inf"):
                raise ValueError(f"{name} must be a positive number, not {constant!r}")
        if type(self.pad_token_id) is not int or not 0 <= self.pad_token_id < self.vocab_size:
            raise ValueError(f"pad_token_id must be an id in [0, {self.vocab_size}), not {self.pad_token_id!r}")
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(
                f"num_attention_heads ({self.num_attention_heads}) must divide hidden_size ({self.hidden_size})"
            )
        if self.hidden_act not in ACTIVATIONS:
            raise ValueError(f"hidden_act must be one of {', '.join(ACTIVATIONS)}, not {self.hidden_act!r}")

    @property
    def head_dim(self) -> int:
        """The width of one head, d_k = hidden_size / num_attention_heads."""
        return self.hidden_size // self.num_attention_heads

    @classmethod
    def from_json(cls, path: str | Path) -> "BertConfig":
        """Read a published `config.json`; fields that this class does not know are passed over.

        Raises:
            FileNotFoundError: when there is no such file.
            ValueError: when the file is not a JSON object or a field has a value that no BERT can have.
        """
        path = Path(path)
        try:
            published = json.loads(path.read_text(encoding="utf-8"))
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"{path} is not valid JSON: {error}") from error
        if not isinstance(published, dict):
            raise ValueError(f"{path} must hold a JSON object, not a {type(published).__name__}")
        known = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in published.items() if name in known})
