"""The numbers that fix a BERT, under the field names of the published `config.json` files."""

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from bertlib.atomic import atomic_write

ACTIVATIONS = ("gelu", "gelu_new", "gelu_pytorch_tanh", "relu")
POSITIONS = ("absolute", "rotary")
NORMS = ("post", "pre")
INITIALIZATIONS = ("fixed", "fan_in")

# What published files say besides, and what no forward pass of an encoder depends on.
INERT = frozenset(
    {
        *("_name_or_path", "architectures", "dtype", "model_type", "torch_dtype", "transformers_version"),
        *("bos_token_id", "eos_token_id", "sep_token_id", "tie_word_embeddings"),
        *("finetuning_task", "id2label", "label2id"),
        *("attn_implementation", "gradient_checkpointing", "output_past", "use_cache"),
        *("directionality", "pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers"),
        *("pooler_size_per_head", "pooler_type"),
        *("summary_activation", "summary_last_dropout", "summary_type", "summary_use_proj"),
    }
)

# Fields that most published files lack; left out of a file where they say what all others mean.
UNPUBLISHED = (
    "embedding_size",
    "classifier_dropout",
    "is_decoder",
    "position_embedding_type",
    "norm",
    "initialization",
)

log = logging.getLogger("bertlib")
_told: set[str] = set()


@dataclass(frozen=True)
class BertConfig:
    """Sizes and constants of a BERT encoder. The defaults are BERT-base, uncased (Devlin et al. 2019, section 3).

    Widths are in components, `layer_norm_eps` is added to a variance, the dropouts are probabilities and
    `initializer_range` is the standard deviation of the normal draw that a weight starts from.

    Fields that not every published file has:

    - `embedding_size`: the width of the embedding tables when it is not `hidden_size`; a linear map leads from one to
      the other (Clark et al. 2020, section 3.3).
    - `num_labels` and `classifier_dropout`: of a classifier on top; the dropout is `hidden_dropout_prob` unless given.
    - `is_decoder`: a token attends to itself and to those before it alone, as in GPT.
    - `position_embedding_type`: "absolute", a learned vector a position, or "rotary", which turns queries and keys by
      an angle that grows with the position (Su et al. 2021, section 3.4).
    - `norm`: "post", LayerNorm after each residual sum, as BERT has it, or "pre", before each sub-layer and once at the
      end (Xiong et al. 2020, section 3).
    - `initialization`: "fixed", every weight drawn with `initializer_range`, or "fan_in", with 1 / sqrt(inputs).
    - `extra`: what a `config.json` holds besides, by name; kept for `to_json`, without effect, and left out when two
      configurations are compared.

    Raises:
        ValueError: when a size is not a positive integer, a probability lies outside [0, 1), the heads do not divide
            the width, or a choice is not among those listed. The message names the field.
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
    embedding_size: int | None = None
    num_labels: int = 2
    classifier_dropout: float | None = None
    is_decoder: bool = False
    position_embedding_type: str = "absolute"
    norm: str = "post"
    initialization: str = "fixed"
    extra: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self):
        for name in (
            "vocab_size",
            "hidden_size",
            "num_hidden_layers",
            "num_attention_heads",
            "intermediate_size",
            "max_position_embeddings",
            "type_vocab_size",
            "embedding_size",
            "num_labels",
        ):
            size = getattr(self, name)
            if name == "embedding_size" and size is None:
                continue
            if not isinstance(size, Integral) or isinstance(size, bool) or size < 1:
                raise ValueError(f"{name} must be a positive integer, not {size!r}")
            object.__setattr__(self, name, int(size))  # numpy's, which JSON does not know
        for name in ("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout"):
            probability = getattr(self, name)
            if name == "classifier_dropout" and probability is None:
                continue
            if not _is_number(probability) or not 0 <= probability < 1:
                raise ValueError(f"{name} must be a probability in [0, 1), not {probability!r}")
            object.__setattr__(self, name, float(probability))
        for name in ("initializer_range", "layer_norm_eps"):
            constant = getattr(self, name)
            if not _is_number(constant) or not 0 < constant < float("inf"):
                raise ValueError(f"{name} must be a positive number, not {constant!r}")
            object.__setattr__(self, name, float(constant))
        for name, choices in (
            ("hidden_act", ACTIVATIONS),
            ("position_embedding_type", POSITIONS),
            ("norm", NORMS),
            ("initialization", INITIALIZATIONS),
        ):
            if getattr(self, name) not in choices:
                raise ValueError(f"{name} must be one of {', '.join(choices)}, not {getattr(self, name)!r}")
        if type(self.is_decoder) is not bool:
            raise ValueError(f"is_decoder must be true or false, not {self.is_decoder!r}")
        pad = self.pad_token_id
        if not isinstance(pad, Integral) or isinstance(pad, bool) or not 0 <= pad < self.vocab_size:
            raise ValueError(f"pad_token_id must be an id in [0, {self.vocab_size}), not {pad!r}")
        object.__setattr__(self, "pad_token_id", int(pad))
        if not isinstance(self.extra, Mapping):
            raise ValueError(f"extra must map names to values, not {self.extra!r}")
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(
                f"num_attention_heads ({self.num_attention_heads}) must divide hidden_size ({self.hidden_size})"
            )
        if self.position_embedding_type == "rotary" and self.head_dim % 2:
            raise ValueError(
                f"position_embedding_type rotary turns pairs of components: hidden_size / num_attention_heads must be "
                f"even, not {self.head_dim}"
            )

    @property
    def head_dim(self) -> int:
        """The width of one head, d_k = hidden_size / num_attention_heads."""
        return self.hidden_size // self.num_attention_heads

    @property
    def embedding_dim(self) -> int:
        """The width of the embedding tables, which is `embedding_size`, or `hidden_size` when that is None."""
        return self.hidden_size if self.embedding_size is None else self.embedding_size

    @property
    def head_dropout(self) -> float:
        """Before a classifier the dropout is `classifier_dropout`, or `hidden_dropout_prob` when that is None."""
        return self.hidden_dropout_prob if self.classifier_dropout is None else self.classifier_dropout

    @classmethod
    def from_json(cls, path: str | Path) -> "BertConfig":
        """Read a published `config.json`; see `from_dict`.

        Raises:
            FileNotFoundError: when there is no such file.
            ValueError: when the file is not a JSON object or a field has a value that no BERT can have.
        """
        path = Path(path)
        try:
            published = json.loads(path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:  # not JSON, not UTF-8, a number of 5,000 digits, too deep
            raise ValueError(f"{path} is not valid JSON: {error}") from error
        if not isinstance(published, dict):
            raise ValueError(f"{path} must hold a JSON object, not a {type(published).__name__}")
        return cls.from_dict(published)

    @classmethod
    def from_dict(cls, published: Mapping[str, Any]) -> "BertConfig":
        """A configuration from the fields of a published file.

        Fields that this class does not know are kept in `extra`; the log names, once, those that might have changed
        what the model computes. `num_labels`, which published files leave out, is the number of names in `id2label`.

        Raises:
            TypeError: when `published` is no mapping.
            ValueError: when a field has a value that no BERT can have.
        """
        if not isinstance(published, Mapping):
            raise TypeError(f"published must map names to values, not {published!r}")
        names = {item.name for item in fields(cls)} - {"extra"}
        known = {name: value for name, value in published.items() if name in names}
        extra = {name: value for name, value in published.items() if name not in names}
        labels = extra.get("id2label")
        if "num_labels" not in known and isinstance(labels, dict) and labels:
            known["num_labels"] = len(labels)
        for name in sorted(extra.keys() - INERT - _told):
            if extra[name]:  # null, false and zero switch nothing on
                _told.add(name)
                log.warning("config: the field %s = %r is kept and has no effect here", name, extra[name])
        return cls(**known, extra=extra)

    def to_dict(self) -> dict[str, Any]:
        """Every field under its published name, and what `extra` holds.

        A field that published files lack is left out where it says what they all mean, and so are names of labels
        whose number is not `num_labels`.
        """
        own = {item.name: getattr(self, item.name) for item in fields(self) if item.name != "extra"}
        for item in fields(self):
            if item.name in UNPUBLISHED and own[item.name] == item.default:
                del own[item.name]
        extra = dict(self.extra)
        if len(extra.get("id2label") or {}) != self.num_labels:
            extra.pop("id2label", None)
            extra.pop("label2id", None)
        return extra | own

    def to_json(self, path: str | Path) -> None:
        """Write `to_dict` as a `config.json`; `from_json` gives back an equal configuration.

        Raises:
            TypeError: when `extra` holds what JSON has no word for.
            OSError: when the file cannot be written.
        """
        content = json.dumps(self.to_dict(), indent=2, sort_keys=True) + "\n"
        with atomic_write(Path(path)) as file:
            file.write(content.encode())


def check_config(config: object) -> BertConfig:
    """What was given, if it is a configuration.

    Raises:
        TypeError: when it is none.
    """
    if not isinstance(config, BertConfig):
        raise TypeError(f"config must be a BertConfig, not a {type(config).__name__}: {config!r}")
    return config


def count_parameters(config: BertConfig, pooler: bool = True) -> dict[str, int]:
    """The parameters of `Bert(config)` by part, counted from the sizes alone; their sum is the model's.

    BERT-base has 109,482,240 (Devlin et al. 2019, section 3, round them to 110 million).

    Raises:
        TypeError: when config is no BertConfig.
    """
    check_config(config)
    d, inner, layers, width = (
        config.hidden_size,
        config.intermediate_size,
        config.num_hidden_layers,
        config.embedding_dim,
    )
    absolute = config.position_embedding_type == "absolute"
    return {
        "word embeddings": config.vocab_size * width,
        "position embeddings": config.max_position_embeddings * width if absolute else 0,
        "segment embeddings": config.type_vocab_size * width,
        "embedding projection": 0 if width == d else width * d + d,
        "attention": layers * 4 * (d * d + d),
        "feed-forward": layers * (d * inner + inner + inner * d + d),
        "layer norms": 2 * width + layers * 4 * d + (2 * d if config.norm == "pre" else 0),
        "pooler": d * d + d if pooler else 0,
    }


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
