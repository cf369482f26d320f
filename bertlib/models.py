"""BERT and its heads: one encoder over packed tokens, and for each task a few lines on top.

Every model is called with a padded batch, `model(input_ids, attention_mask, token_type_ids, ...)`, as everywhere in the
field. The padding is taken out at once (`bertlib.packing`), so it is never computed and cannot change an answer; in the
outputs it is zero. `Bert.encode` takes the tokens alone.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self, TypedDict, Unpack

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bertlib import checkpoints
from bertlib.checks import check_integer, check_lengths, check_positive
from bertlib.config import BertConfig, check_config
from bertlib.embeddings import Embeddings
from bertlib.encoder import ACTIVATIONS, Encoded, Encoder
from bertlib.masking import IGNORE_INDEX
from bertlib.packing import Packing, first_tokens
from bertlib.tensor_checks import check_integers, check_tensor


@dataclass(eq=False)  # two outputs are never compared: that of tensors has no single answer
class BertOutput:
    """What a call gives; what the model does not have, or was not asked for, is None.

    - `loss`: a scalar, when labels were given; in nats.
    - `logits`: by the model's own docstring.
    - `last_hidden_state`: (batch, n, d), of `Bert` alone; zero at padding.
    - `pooler_output`: (batch, d), of `Bert` alone.
    - `start_logits`, `end_logits`: (batch, n), of the question answerer.
    - `hidden_states`: L + 1 tensors (batch, n, d), the embeddings and the output of each layer; zero at padding.
    - `attentions`: L tensors (batch, h, n, n), rows that sum to 1, before dropout; zero where either token is padding.
    - `scores`: L tensors (batch, h, n, n), q k / sqrt(d_k) before any mask; zero where either token is padding.
    """

    loss: Tensor | None = None
    logits: Tensor | None = None
    last_hidden_state: Tensor | None = None
    pooler_output: Tensor | None = None
    start_logits: Tensor | None = None
    end_logits: Tensor | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | None = None
    scores: tuple[Tensor, ...] | None = None


class Asked(TypedDict, total=False):
    """What a call may ask for beside its answer; see `BertOutput`."""

    output_attentions: bool
    output_hidden_states: bool
    output_scores: bool


class Model(nn.Module):
    """What all models share: a configuration, the first draw of the weights, and checkpoints in and out."""

    published = ("bert", "BertModel")  # model_type and architecture in a published config.json
    new_heads: tuple[str, ...] = ()  # parts, by their published names, that are drawn anew when a checkpoint lacks them
    looks_back = False  # whether its attention is meant to be causal

    def __init__(self, config: BertConfig):
        super().__init__()
        self.config = check_config(config)

    @torch.no_grad()
    def draw(self, module: nn.Module) -> None:
        """Draw the parameters that a module itself holds.

        Matrices and tables are normal with mean 0, and deviation `initializer_range`, or 1 / sqrt(inputs) with
        "fan_in"; biases are 0, LayerNorms 1 and 0, the row of [PAD] 0.
        """
        if isinstance(module, nn.Linear | nn.Embedding):
            inputs = module.weight.shape[1]  # a table's columns too: the decoder of the masked LM multiplies by it
            fixed = self.config.initialization == "fixed"
            module.weight.normal_(0.0, self.config.initializer_range if fixed else 1 / math.sqrt(inputs))
        if isinstance(module, nn.Embedding) and module.padding_idx is not None:
            module.weight[module.padding_idx] = 0
        if isinstance(module, nn.LayerNorm):
            module.weight.fill_(1)
        if isinstance(getattr(module, "bias", None), nn.Parameter):
            module.bias.zero_()

    @classmethod
    def for_tensors(cls, config: BertConfig, names: Collection[str]) -> Self:
        """The model that a checkpoint with tensors of these published names is loaded into."""
        return cls(config)

    @classmethod
    def from_pretrained(cls, source: str | Path, *, dtype: torch.dtype = torch.float32, **changes) -> Self:
        """The model with the weights of a checkpoint, in evaluation mode.

        A head that the checkpoint lacks as a whole is drawn anew, and the log says so; the heads of other models are
        passed over. Everything else must be there, must fit, and must have a place. A causal checkpoint stays causal in
        a model that is not, and the log says so; `is_decoder=False` makes it look both ways.

        Args:
            source: a name of `checkpoints.MODELS`, a folder with `config.json` and `model.safetensors`, or a
                safetensors file with a `config.json` beside it.
            dtype: the type of the parameters.
            changes: fields of the configuration to replace, such as `num_labels=3`.

        Raises:
            TypeError: when source is no string or path, dtype no floating-point `torch.dtype`, or `changes` has what
                is no field of the configuration.
            CheckpointError: when there is no such checkpoint, a file is damaged, or tensors are missing, left over or
                of another shape than the configuration says; the message names them all.
            ValueError: when a changed field has a value that no BERT can have.
            DatasetError: when a named checkpoint cannot be fetched.
        """
        return checkpoints.load_model(cls, source, dtype, changes)

    def save_pretrained(self, folder: str | Path) -> None:
        """Write `config.json` and `model.safetensors`, under the published names, into a folder, made when missing.

        Both files are written whole before either takes its place. A decoder tied to the embeddings is not written
        twice. Other libraries know no `norm="pre"` and no rotary positions under the name of BERT: they would read such
        a model as one with the layers of the paper.

        Raises:
            OSError: when the folder or a file cannot be written.
        """
        checkpoints.save_model(self, folder)


class Bert(Model):
    """The encoder of Devlin et al. 2019, section 3: embeddings, L layers, and on [CLS] a pooler.

    `Bert(BertConfig())` is BERT-base with 109,482,240 parameters. A checkpoint without a pooler, such as that of a
    masked language model, gives a `Bert` without one, whose `pooler_output` is None.

    A model with a head holds one as `bert` and starts from its `run`, which has no padding, rather than from a call.
    torch calls forward hooks only when a module is called: in such a model set them on `bert.embeddings`,
    `bert.encoder`, or a layer of it.
    """

    def __init__(self, config: BertConfig, pooler: bool = True):
        super().__init__(config)
        self.embeddings = Embeddings(config)
        self.encoder = Encoder(config)
        self.pooler = nn.Linear(config.hidden_size, config.hidden_size) if pooler else None
        self.apply(self.draw)

    @classmethod
    def for_tensors(cls, config: BertConfig, names: Collection[str]) -> Self:
        return cls(config, pooler=any(name.startswith("pooler.") for name in names))

    def encode(
        self,
        input_ids: Tensor,
        lengths: list[int],
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        output_attentions: bool = False,
        output_hidden_states: bool = False,
        output_scores: bool = False,
        rows: Tensor | None = None,
    ) -> Encoded:
        """Encode tokens (tokens,) of several sequences, one after the other and without padding.

        Args:
            input_ids: (tokens,), the ids of all sequences.
            lengths: how many of them each sequence has, a list or a tensor of integers; 0 is possible.
            token_type_ids: (tokens,), the segment of each; 0 unless given.
            position_ids: (tokens,), the position of each; 0, 1, 2, ... in every sequence unless given.
            output_attentions, output_scores: take the spelled-out form of attention and keep its weights or scores.
            output_hidden_states: keep every layer's output.
            rows: (rows,), the tokens whose last hidden state is wanted, which is then all that `hidden` has; the rest
                of the last layer is not computed.

        Raises:
            TypeError: when something is no tensor, or ids, lengths or rows are not integers.
            ValueError: when shapes or lengths do not fit, an id has no row in its table, a row is no token, or a
                sequence is longer than the table of positions.
        """
        if check_tensor("input_ids", input_ids).dim() != 1:
            raise ValueError(f"input_ids must be (tokens,), not {tuple(input_ids.shape)}")
        lengths = check_lengths(lengths, len(input_ids))
        if rows is not None:
            rows = check_integers("rows", rows)
            if rows.dim() != 1 or ((rows < 0) | (rows >= len(input_ids))).any():
                raise ValueError(f"rows must be (rows,), places among {len(input_ids)} tokens, not {rows}")
        if token_type_ids is None:
            token_type_ids = torch.zeros_like(input_ids)
        if position_ids is None:
            counts = torch.tensor(lengths, dtype=torch.long, device=input_ids.device)
            starts = first_tokens(lengths, input_ids.device).repeat_interleave(counts)
            position_ids = torch.arange(len(input_ids), device=input_ids.device) - starts
        for name, ids in (("token_type_ids", token_type_ids), ("position_ids", position_ids)):
            if check_tensor(name, ids).shape != input_ids.shape:
                raise ValueError(f"{name} must be as input_ids, {tuple(input_ids.shape)}, not {tuple(ids.shape)}")
        x = self.embeddings(input_ids, token_type_ids, position_ids, lengths)
        asked = (output_attentions, output_hidden_states, output_scores)
        return self.encoder(x, lengths, position_ids, *asked, rows)

    def pool(self, hidden: Tensor, lengths: list[int]) -> Tensor:
        """tanh(W x + b) of each sequence's first token, (sequences, d) from (tokens, d); of no token, that of x = 0.

        Raises:
            TypeError, ValueError: when the lengths are not integers that add up to the tokens.
            ValueError: when the model has no pooler, or hidden is not (tokens, d).
        """
        if self.pooler is None:
            raise ValueError("the model has no pooler: its checkpoint had none, or it was made with pooler=False")
        if check_tensor("hidden", hidden).dim() != 2:
            raise ValueError(f"hidden must be (tokens, d), not {tuple(hidden.shape)}")
        lengths = check_lengths(lengths, len(hidden))
        first = hidden.new_zeros(len(lengths), hidden.shape[1])
        filled = torch.tensor(lengths, device=hidden.device) > 0
        first[filled] = hidden[first_tokens(lengths, hidden.device)[filled]]
        return torch.tanh(self.pooler(first))

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        output_attentions: bool = False,
        output_hidden_states: bool = False,
        output_scores: bool = False,
    ) -> BertOutput:
        """Encode a padded batch.

        Args:
            input_ids: (batch, n); what stands in the padding has no effect.
            attention_mask: (batch, n), 1 for a token and 0 for padding, which may stand anywhere; all 1 unless given.
            token_type_ids: (batch, n), the segments; all 0 unless given.
            position_ids: (batch, n); unless given, how many places a token stands after the first one of its row, so
                that padding on the left moves nothing.
            output_attentions, output_scores: take the spelled-out form of attention and give its weights or scores.
            output_hidden_states: give every layer's output.

        Raises:
            TypeError: when ids are not integers.
            ValueError: when shapes do not fit, the mask holds anything but 0 and 1, an id has no row in its table, or
                a row is longer than the table of positions.
        """
        asked: Asked = {
            "output_attentions": output_attentions,
            "output_hidden_states": output_hidden_states,
            "output_scores": output_scores,
        }
        packing, encoded, found = self.run(input_ids, attention_mask, token_type_ids, position_ids, asked)
        return BertOutput(
            last_hidden_state=packing.unpack(encoded.hidden),
            pooler_output=None if self.pooler is None else self.pool(encoded.hidden, packing.lengths),
            **found,
        )

    def run(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None,
        token_type_ids: Tensor | None,
        position_ids: Tensor | None,
        asked: Asked,
        wanted: Tensor | None = None,
    ) -> tuple[Packing, Encoded, dict[str, tuple[Tensor, ...]]]:
        """What a head starts from: the packing, the packed hidden states, and the outputs asked for, padded.

        Given `wanted`, boolean (batch, n), the last hidden states are those of its true tokens alone, in reading order.

        Raises:
            TypeError, ValueError: as a call; and when something else is asked for.
        """
        if unknown := asked.keys() - Asked.__annotations__.keys():
            known = ", ".join(Asked.__annotations__)
            raise TypeError(
                f"the model takes no {', '.join(sorted(unknown))}; beside its inputs and its labels it takes {known}"
            )
        packing = Packing.of(input_ids, attention_mask)
        encoded = self.encode(
            packing.pack(input_ids),
            packing.lengths,
            None if token_type_ids is None else packing.pack(token_type_ids, "token_type_ids"),
            packing.position_ids if position_ids is None else packing.pack(position_ids, "position_ids"),
            **asked,
            rows=None if wanted is None else packing.pack(wanted, "labels").nonzero().squeeze(1),
        )
        heads = self.config.num_attention_heads
        found = {}
        if asked.get("output_hidden_states"):
            found["hidden_states"] = tuple(packing.unpack(x) for x in encoded.hidden_states)
        if asked.get("output_attentions"):
            found["attentions"] = tuple(packing.unpack_pairs(layer, heads) for layer in encoded.attentions)
        if asked.get("output_scores"):
            found["scores"] = tuple(packing.unpack_pairs(layer, heads) for layer in encoded.scores)
        return packing, encoded, found

    @torch.no_grad()
    def sentence_vectors(
        self,
        texts: Sequence[str] | Sequence[Sequence[int]],
        tokenizer=None,
        max_length: int | None = None,
        batch_tokens: int = 4096,
    ) -> Tensor:
        """A vector a text, (texts, d): the mean of its tokens' last hidden states, [CLS] and [SEP] among them.

        Texts of like length are encoded together, without padding, and without gradients. The model's own mode holds:
        call `eval()` first unless it came from `from_pretrained`.

        Args:
            texts: strings, or, without a tokenizer, lists of ids.
            tokenizer: a `bertlib.WordPieceTokenizer`, or anything whose `encode(text)`, or the `ids` of that, is a list
                of ids, [CLS] and [SEP] among them.
            max_length: how many tokens of a text count at most, the last one always among them;
                `max_position_embeddings` unless given.
            batch_tokens: how many tokens are encoded at once, about.

        Raises:
            TypeError: when texts are not strings, with a tokenizer, or lists of ids, without one; when a size is not an
                integer.
            ValueError: when a text has no token, an id has no row in its table, batch_tokens is not positive, or
                max_length not positive or more than the table of positions has.
        """
        texts = _texts(texts, tokenizer)
        most = self.config.max_position_embeddings
        limit = most if max_length is None else check_positive("max_length", max_length)
        if limit > most and self.embeddings.position is not None:
            raise ValueError(f"max_length must be at most {most}, max_position_embeddings of the config, not {limit}")
        check_positive("batch_tokens", batch_tokens)
        ids = [_shorten(_ids(tokenizer, text), limit) for text in texts]
        if not all(ids):
            raise ValueError(f"texts must have at least one token each, but text {[*map(len, ids)].index(0)} has none")
        table = self.embeddings.token.weight
        for i, text in enumerate(ids):
            for token in text:
                check_integer(f"texts[{i}]", token)
            if min(text) < 0 or max(text) >= len(table):
                raise ValueError(f"text {i} has an id outside [0, {len(table)}), vocab_size of the config")
        vectors = table.new_empty(len(ids), self.config.hidden_size)
        order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
        for batch in _by_tokens(order, ids, batch_tokens):
            lengths = [len(ids[i]) for i in batch]
            flat = torch.tensor([token for i in batch for token in ids[i]], device=table.device)
            hidden = self.encode(flat, lengths).hidden
            means = torch.stack([part.mean(dim=0) for part in hidden.split(lengths)])
            vectors[batch] = means.to(vectors.dtype)
        return vectors


def _texts(texts: Iterable, tokenizer) -> list:
    if isinstance(texts, str | Mapping | Set) or not isinstance(texts, Iterable):
        raise TypeError(f"texts must be a list of strings or of lists of ids, not a {type(texts).__name__}")
    if getattr(texts, "ndim", 1) > 1:
        raise TypeError("texts must be a list of lists of ids: in a padded batch, padding would count as text")
    makes_ids = hasattr(tokenizer, "encode") or hasattr(tokenizer, "token_ids")
    if tokenizer is not None and (isinstance(tokenizer, str | type) or not makes_ids):
        raise TypeError(f"tokenizer must have an encode(text), which {tokenizer!r} has not")
    texts = texts.tolist() if hasattr(texts, "tolist") else list(texts)
    for i, text in enumerate(texts):
        if isinstance(text, str) != (tokenizer is not None) or not isinstance(text, Iterable):
            wanted = "a list of ids, for there is no tokenizer" if tokenizer is None else "a string, for the tokenizer"
            raise TypeError(f"texts[{i}] must be {wanted}, not a {type(text).__name__}")
    return texts


def _ids(tokenizer, text: str | Sequence[int]) -> list[int]:
    if tokenizer is None:
        return text.tolist() if hasattr(text, "tolist") else list(text)
    if hasattr(tokenizer, "token_ids"):  # our own, the fast form
        return [tokenizer.cls_token_id, *tokenizer.token_ids(text), tokenizer.sep_token_id]
    encoding = tokenizer.encode(text)
    if not hasattr(encoding, "ids"):
        return encoding.tolist() if hasattr(encoding, "tolist") else list(encoding)
    mask = getattr(encoding, "attention_mask", None)
    return encoding.ids if mask is None else [token for token, real in zip(encoding.ids, mask, strict=True) if real]


def _shorten(ids: list[int], limit: int) -> list[int]:
    return ids if len(ids) <= limit else [*ids[: limit - 1], ids[-1]]


def _by_tokens(order: list[int], ids: list[list[int]], most: int) -> Iterator[list[int]]:
    """Cut an order of texts into batches of at most so many tokens, or of one text."""
    batch, tokens = [], 0
    for i in order:
        if batch and tokens + len(ids[i]) > most:
            yield batch
            batch, tokens = [], 0
        batch.append(i)
        tokens += len(ids[i])
    if batch:
        yield batch


def mean_cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """The mean over rows of -log softmax(logits)[label], in nats; over no row 0, with gradient 0, and not NaN.

    Added up in float32 at least: a sum of thousands of losses is beyond half precision.
    """
    return F.cross_entropy(_at_least_float32(logits), labels, reduction="sum") / max(len(labels), 1)


def _at_least_float32(x: Tensor) -> Tensor:
    return x.to(torch.promote_types(x.dtype, torch.float32))


def pack_labels(packing: Packing, labels: Tensor, classes: int) -> Tensor:
    """Labels (batch, n) to (tokens,), IGNORE_INDEX among them.

    Raises:
        TypeError: when labels are not integers.
        ValueError: when they are not (batch, n), one is neither a class nor IGNORE_INDEX, or padding has a label: it
            has no hidden state to predict anything from.
    """
    labels = check_integers("labels", labels)
    packed = packing.pack(labels, "labels")
    _check_classes(packed, classes)
    if packing.index is not None and (packed != IGNORE_INDEX).sum() != (labels != IGNORE_INDEX).sum():
        raise ValueError(f"labels must be {IGNORE_INDEX} wherever attention_mask is 0: padding is not predicted")
    return packed


def sequence_labels(name: str, labels: Tensor, batch: int, classes: int) -> Tensor:
    """Labels (batch,), one a sequence, as the loss takes them.

    Raises:
        TypeError: when labels are not integers.
        ValueError: when they are not (batch,), or one is neither a class nor IGNORE_INDEX.
    """
    labels = check_integers(name, labels)
    if labels.shape != (batch,):
        raise ValueError(f"{name} must be (batch,) = {(batch,)}, not {tuple(labels.shape)}")
    _check_classes(labels, classes, name)
    return labels


def sequence_numbers(name: str, labels: Tensor, batch: int) -> Tensor:
    """Numbers (batch,), one a sequence, as a regression takes them.

    Raises:
        TypeError: when they are not real numbers.
        ValueError: when they are not (batch,), or one is infinite or not a number.
    """
    if check_tensor(name, labels).is_complex() or labels.dtype == torch.bool:
        raise TypeError(f"{name} must be numbers, for num_labels is 1, not {labels.dtype}")
    if labels.shape != (batch,):
        raise ValueError(f"{name} must be (batch,) = {(batch,)}, not {tuple(labels.shape)}")
    if not labels.isfinite().all():
        raise ValueError(f"{name} must be finite, not {labels[~labels.isfinite()][0].item()}")
    return labels


def _check_classes(labels: Tensor, classes: int, name: str = "labels") -> None:
    wrong = (labels != IGNORE_INDEX) & ((labels < 0) | (labels >= classes))
    if wrong.any():
        raise ValueError(f"{name} must lie in [0, {classes}) or be {IGNORE_INDEX}, not {labels[wrong][0].item()}")


class MaskedLMHead(nn.Module):
    """From a hidden state to a score for each token of the vocabulary (Devlin et al. 2019, section 3.1, task 1).

    A linear map, the activation and LayerNorm; then the inner product with every row of the table of token embeddings,
    which is handed in and so is tied, plus a bias of this head's own.
    """

    def __init__(self, config: BertConfig):
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.embedding_dim)
        self.activation = ACTIVATIONS[config.hidden_act]
        self.norm = nn.LayerNorm(config.embedding_dim, eps=config.layer_norm_eps)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))

    def forward(self, hidden: Tensor, table: Tensor) -> Tensor:
        """Logits (..., vocab_size) from hidden states (..., d) and the table (vocab_size, width of the embeddings)."""
        return F.linear(self.norm(self.activation(self.dense(hidden))), table, self.bias)


class BertForMaskedLM(Model):
    """BERT with the head that guesses masked tokens (Devlin et al. 2019, section 3.1, task 1)."""

    published = ("bert", "BertForMaskedLM")
    new_heads = ("cls.predictions.",)

    def __init__(self, config: BertConfig):
        super().__init__(config)
        self.bert = Bert(config, pooler=False)
        self.predictions = MaskedLMHead(config)
        self.predictions.apply(self.draw)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        labels: Tensor | None = None,
        **asked: Unpack[Asked],
    ) -> BertOutput:
        """Score the vocabulary at every token, or, given labels, at the labelled ones alone.

        Arguments as for `Bert`, and `labels` (batch, n): the id to guess, -100 where nothing is to be guessed. Without
        labels, `logits` is (batch, n, vocab_size), zero at padding. With labels it is (labelled, vocab_size), a row for
        each label that is not -100, in reading order: the other rows would be most of the work and are in no loss.
        `loss` is their mean cross-entropy in nats, and 0 with gradient 0 when nothing is labelled.

        Raises:
            TypeError, ValueError: as `Bert`; and when a label is neither an id nor -100, or padding has one.
        """
        labels = None if labels is None else check_integers("labels", labels)
        labelled = None if labels is None else labels != IGNORE_INDEX
        packing, encoded, found = self.bert.run(
            input_ids, attention_mask, token_type_ids, position_ids, asked, wanted=labelled
        )
        logits = self.predictions(encoded.hidden, self.bert.embeddings.token.weight)
        if labels is None:
            return BertOutput(logits=packing.unpack(logits), **found)
        targets = pack_labels(packing, labels, self.config.vocab_size)
        return BertOutput(loss=mean_cross_entropy(logits, targets[targets != IGNORE_INDEX]), logits=logits, **found)


class CausalBert(Model):
    """The same encoder looking back only, which guesses the next token: what GPT does, with BERT's parts.

    Other libraries know it as BertLMHeadModel (Radford et al. 2018, section 3.1, for the objective).
    """

    published = ("bert", "BertLMHeadModel")
    new_heads = ("cls.predictions.",)
    looks_back = True

    def __init__(self, config: BertConfig):
        super().__init__(replace(check_config(config), is_decoder=True))
        self.bert = Bert(self.config, pooler=False)
        self.predictions = MaskedLMHead(config)
        self.predictions.apply(self.draw)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        labels: Tensor | None = None,
        **asked: Unpack[Asked],
    ) -> BertOutput:
        """Score, at every token, what comes next.

        Arguments as for `Bert`, and `labels` (batch, n), the ids themselves, -100 where nothing is to be guessed: the
        label of a token is compared with what the token before it says; a sequence's first one is not guessed. Without
        labels, `logits` is (batch, n, vocab_size), zero at padding; with labels, a row for each token that was guessed.

        Raises:
            TypeError, ValueError: as `BertForMaskedLM`.
        """
        packing, encoded, found = self.bert.run(input_ids, attention_mask, token_type_ids, position_ids, asked)
        table = self.bert.embeddings.token.weight
        if labels is None:
            return BertOutput(logits=packing.unpack(self.predictions(encoded.hidden, table)), **found)
        own = pack_labels(packing, labels, self.config.vocab_size)
        first = first_tokens([length for length in packing.lengths if length], own.device)
        following = own.index_fill(0, first, IGNORE_INDEX).roll(-1)
        chosen = following != IGNORE_INDEX
        logits = self.predictions(encoded.hidden[chosen], table)
        return BertOutput(loss=mean_cross_entropy(logits, following[chosen]), logits=logits, **found)


class BertForSequenceClassification(Model):
    """BERT with a linear classifier on the pooled [CLS] (Devlin et al. 2019, section 4.1)."""

    published = ("bert", "BertForSequenceClassification")
    new_heads = ("classifier.", "pooler.")

    def __init__(self, config: BertConfig):
        super().__init__(config)
        self.bert = Bert(config)
        self.dropout = nn.Dropout(config.head_dropout)
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)
        self.draw(self.classifier)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        labels: Tensor | None = None,
        **asked: Unpack[Asked],
    ) -> BertOutput:
        """`logits` (batch, num_labels); arguments as for `Bert`.

        `labels` is (batch,), a class each, or -100 for a sequence that is to be left out; with `num_labels` 1 it holds
        numbers, -100 a number like any other, and the loss is the mean squared error.

        Raises:
            TypeError, ValueError: as `Bert`; and when labels are not (batch,), classes are not integers, a label is
                neither a class nor -100, or a number is not finite.
        """
        packing, encoded, found = self.bert.run(input_ids, attention_mask, token_type_ids, position_ids, asked)
        logits = self.classifier(self.dropout(self.bert.pool(encoded.hidden, packing.lengths)))
        if labels is None:
            return BertOutput(logits=logits, **found)
        if self.config.num_labels == 1:
            numbers = sequence_numbers("labels", labels, packing.batch).to(logits.dtype)
            return BertOutput(loss=F.mse_loss(logits.squeeze(1), numbers), logits=logits, **found)
        labels = sequence_labels("labels", labels, packing.batch, self.config.num_labels)
        chosen = labels != IGNORE_INDEX
        return BertOutput(loss=mean_cross_entropy(logits[chosen], labels[chosen]), logits=logits, **found)


class BertForTokenClassification(Model):
    """BERT with a linear classifier on every token (Devlin et al. 2019, section 5.3)."""

    published = ("bert", "BertForTokenClassification")
    new_heads = ("classifier.",)

    def __init__(self, config: BertConfig):
        super().__init__(config)
        self.bert = Bert(config, pooler=False)
        self.dropout = nn.Dropout(config.head_dropout)
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)
        self.draw(self.classifier)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        labels: Tensor | None = None,
        **asked: Unpack[Asked],
    ) -> BertOutput:
        """`logits` (batch, n, num_labels), zero at padding; arguments as for `Bert`, `labels` (batch, n) with -100.

        Raises:
            TypeError, ValueError: as `Bert`; and when a label is neither a class nor -100, or padding has one.
        """
        packing, encoded, found = self.bert.run(input_ids, attention_mask, token_type_ids, position_ids, asked)
        logits = self.classifier(self.dropout(encoded.hidden))
        loss = None
        if labels is not None:
            targets = pack_labels(packing, labels, self.config.num_labels)
            chosen = targets != IGNORE_INDEX
            loss = mean_cross_entropy(logits[chosen], targets[chosen])
        return BertOutput(loss=loss, logits=packing.unpack(logits), **found)


class BertForQuestionAnswering(Model):
    """BERT that points at an answer in a text: where it starts and where it ends (Devlin et al. 2019, section 4.2)."""

    published = ("bert", "BertForQuestionAnswering")
    new_heads = ("qa_outputs.",)

    def __init__(self, config: BertConfig):
        super().__init__(
            replace(check_config(config), num_labels=2)
        )  # a start and an end, which others read off the configuration
        self.bert = Bert(self.config, pooler=False)
        self.qa_outputs = nn.Linear(config.hidden_size, 2)
        self.draw(self.qa_outputs)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        start_positions: Tensor | None = None,
        end_positions: Tensor | None = None,
        **asked: Unpack[Asked],
    ) -> BertOutput:
        """`start_logits` and `end_logits` (batch, n); arguments as for `Bert`.

        At padding the logits are the most negative number of their type, so that no answer lies there and the loss
        does not depend on it. `start_positions` and `end_positions` are (batch,), columns, or -100 for a row without
        an answer; the loss is the mean of the two cross-entropies.

        Raises:
            TypeError, ValueError: as `Bert`; and when positions are not integers, (batch,), one is no column of a
                token, or only one of the two is given.
        """
        packing, encoded, found = self.bert.run(input_ids, attention_mask, token_type_ids, position_ids, asked)
        logits = self.qa_outputs(encoded.hidden)
        logits = packing.unpack(logits, fill=torch.finfo(logits.dtype).min)
        found |= {"start_logits": logits[..., 0], "end_logits": logits[..., 1]}
        if (start_positions is None) != (end_positions is None):
            raise ValueError("start_positions and end_positions must both be given, or neither")
        if start_positions is None:
            return BertOutput(**found)
        losses = []
        for name, side, positions in (("start", 0, start_positions), ("end", 1, end_positions)):
            positions = sequence_labels(f"{name}_positions", positions, packing.batch, packing.n)
            chosen = positions != IGNORE_INDEX
            if attention_mask is not None and not attention_mask[chosen, positions[chosen]].all():
                raise ValueError(f"{name}_positions must be columns of tokens, not of padding")
            losses.append(mean_cross_entropy(logits[chosen, :, side], positions[chosen]))
        return BertOutput(loss=sum(losses) / 2, **found)


class ElectraDiscriminator(Model):
    """The encoder that tells, of every token, whether it was replaced (Clark et al. 2020, section 2).

    Other libraries know it as ElectraForPreTraining. `embedding_size` may be smaller than `hidden_size`.
    """

    published = ("electra", "ElectraForPreTraining")
    new_heads = ("discriminator_predictions.",)

    def __init__(self, config: BertConfig):
        super().__init__(
            replace(config, embedding_size=check_config(config).embedding_dim)
        )  # a file that says none means 128
        self.bert = Bert(self.config, pooler=False)
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.activation = ACTIVATIONS[config.hidden_act]
        self.score = nn.Linear(config.hidden_size, 1)
        self.draw(self.dense)
        self.draw(self.score)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        labels: Tensor | None = None,
        **asked: Unpack[Asked],
    ) -> BertOutput:
        """`logits` (batch, n), above 0 where the token looks replaced, zero at padding; arguments as for `Bert`.

        `labels` is (batch, n), 1 for a replaced token, 0 for an original one, -100 for one that is left out; at
        padding they have no effect. The loss is the mean binary cross-entropy in nats.

        Raises:
            TypeError, ValueError: as `Bert`; and when a label is none of these.
        """
        packing, encoded, found = self.bert.run(input_ids, attention_mask, token_type_ids, position_ids, asked)
        logits = self.score(self.activation(self.dense(encoded.hidden))).squeeze(1)
        loss = None
        if labels is not None:
            if check_tensor("labels", labels).is_complex():
                raise TypeError(f"labels must be 0, 1 or {IGNORE_INDEX}, not {labels.dtype}")
            targets = packing.pack(labels, "labels").to(logits.dtype)
            _check_classes(targets, 2)
            if (targets != targets.round()).any():
                raise ValueError(f"labels must be 0, 1 or {IGNORE_INDEX}, not {targets[targets != targets.round()][0]}")
            chosen = targets != IGNORE_INDEX
            scores, bits = _at_least_float32(logits[chosen]), _at_least_float32(targets[chosen])
            loss = F.binary_cross_entropy_with_logits(scores, bits, reduction="sum") / max(len(bits), 1)
        return BertOutput(loss=loss, logits=packing.unpack(logits), **found)
