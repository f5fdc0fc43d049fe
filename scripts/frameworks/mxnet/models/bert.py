"""BERT (Devlin et al. 2018, arXiv:1810.04805) with the head that its model config names; see
scripts/reference/bert.py."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Tuple

import numpy as np
from mxnet.gluon import nn
from networks import transformers
from networks.transformers import MASKED_SCORE

from .layers import ModelDefinition, initialized


def dense(units_in: int, units_out: int) -> nn.Dense:
    return nn.Dense(units_out, in_units=units_in, flatten=False)


def normalization(hyper: Dict[str, Any]) -> nn.LayerNorm:
    return nn.LayerNorm(in_channels=hyper["hidden"], epsilon=hyper["layer_norm_epsilon"])


def gelu(F: Any, x: Any) -> Any:
    """Return x times the normal distribution function of x, by erf, not by tanh."""
    return F.LeakyReLU(x, act_type="gelu")


class Embeddings(nn.HybridBlock):
    """Token and segment ids (batch, sequence), position ids (1, sequence) -> (batch, sequence,
    hidden)."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        self.token = nn.Embedding(hyper["vocabulary"], hyper["hidden"])
        self.position = nn.Embedding(hyper["positions"], hyper["hidden"])
        self.segment = nn.Embedding(hyper["segments"], hyper["hidden"])
        self.norm = normalization(hyper)
        self.dropout = nn.Dropout(hyper["dropout"])

    def hybrid_forward(self, F: Any, token_ids: Any, segment_ids: Any, position_ids: Any) -> Any:
        x = F.elemwise_add(self.token(token_ids), self.segment(segment_ids))
        return self.dropout(self.norm(F.broadcast_add(x, self.position(position_ids))))


class Attention(nn.HybridBlock):
    """Attention from (batch, sequence, hidden) and scores to add (batch * heads, 1, sequence) to
    (batch, sequence, hidden)."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        hidden = hyper["hidden"]
        self.heads = hyper["heads"]
        self.scale = (hidden // self.heads) ** -0.5
        self.query = dense(hidden, hidden)
        self.key = dense(hidden, hidden)
        self.value = dense(hidden, hidden)
        self.output = dense(hidden, hidden)
        self.dropout = nn.Dropout(hyper["dropout"])  # on attention probabilities

    def hybrid_forward(self, F: Any, x: Any, mask: Any) -> Any:
        query = self._split(F, self.query(x) * self.scale)
        key, value = (self._split(F, projection(x)) for projection in (self.key, self.value))
        scores = F.broadcast_add(F.batch_dot(query, key, transpose_b=True), mask)
        context = F.batch_dot(self.dropout(F.softmax(scores, axis=-1)), value)
        context = F.reshape(context, (-4, -1, self.heads, 0, 0))  # (batch, heads, sequence, size)
        return self.output(F.reshape(F.transpose(context, (0, 2, 1, 3)), (0, 0, -3)))

    def _split(self, F: Any, x: Any) -> Any:
        """Map (batch, sequence, hidden) to (batch * heads, sequence, head size)."""
        x = F.reshape(x, (0, 0, self.heads, -1))
        return F.reshape(F.transpose(x, (0, 2, 1, 3)), (-3, 0, 0))


class Layer(nn.HybridBlock):
    """Encoder layer, normalised after each residual; it keeps (batch, sequence, hidden)."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        hidden = hyper["hidden"]
        self.attention = Attention(hyper)
        self.attention_norm = normalization(hyper)
        self.intermediate = dense(hidden, hyper["intermediate"])
        self.output = dense(hyper["intermediate"], hidden)
        self.output_norm = normalization(hyper)
        self.dropout = nn.Dropout(hyper["dropout"])

    def hybrid_forward(self, F: Any, x: Any, mask: Any) -> Any:
        # not +, which broadcasts: oneDNN adds only arrays of equal shape
        x = self.attention_norm(F.elemwise_add(x, self.dropout(self.attention(x, mask))))
        y = self.dropout(self.output(gelu(F, self.intermediate(x))))
        return self.output_norm(F.elemwise_add(x, y))


class Bert(nn.HybridBlock):
    """Encoder and head: token and segment ids (batch, sequence), position ids (1, sequence), a mask
    (batch, sequence) and in pre-training the indices of masked rows (batch, predictions) -> the
    outputs of the reference."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        hidden = hyper["hidden"]
        self.heads, self.vocabulary = hyper["heads"], hyper["vocabulary"]
        self.embeddings = Embeddings(hyper)
        self.layers = nn.HybridSequential()
        for _ in range(hyper["layers"]):
            self.layers.add(Layer(hyper))
        self.head = "classes" if "classes" in hyper else hyper.get("head", "pretraining")
        if self.head == "span":
            self.span = dense(hidden, 2)
            return
        self.pooler = dense(hidden, hidden)
        if self.head == "classes":
            self.classifier = dense(hidden, hyper["classes"])
            return
        self.transform = dense(hidden, hidden)
        self.transform_norm = normalization(hyper)
        # the decoder's weight is the token embedding, its bias a separate parameter; as attributes
        # both are passed to hybrid_forward
        self.decoder_weight = self.embeddings.token.weight
        self.decoder_bias = self.params.get("decoder_bias", shape=(hyper["vocabulary"],))
        self.next_sentence = dense(hidden, 2)

    def hybrid_forward(
        self,
        F: Any,
        token_ids: Any,
        segment_ids: Any,
        position_ids: Any,
        attention_mask: Any,
        masked_rows: Any = None,
        decoder_weight: Any = None,
        decoder_bias: Any = None,
    ) -> Tuple[Any, ...]:
        x = self.embeddings(token_ids, segment_ids, position_ids)
        ignored = F.expand_dims((1.0 - attention_mask) * MASKED_SCORE, axis=1)
        mask = F.repeat(ignored, repeats=self.heads, axis=0)  # (batch * heads, 1, sequence)
        for layer in self.layers:
            x = layer(x, mask)
        if self.head == "span":
            return (self.span(x),)
        first = F.reshape(F.slice_axis(x, axis=1, begin=0, end=1), (-3, 0))
        pooled = F.tanh(self.pooler(first))
        if self.head == "classes":
            return (self.classifier(pooled),)
        masked = F.take(F.reshape(x, (-3, 0)), masked_rows)
        masked = self.transform_norm(gelu(F, self.transform(masked)))
        tokens = F.FullyConnected(
            masked, decoder_weight, decoder_bias, num_hidden=self.vocabulary, flatten=False
        )
        return tokens, self.next_sentence(pooled)


class Definition(ModelDefinition):
    def build(self) -> nn.HybridBlock:
        return initialized(Bert(self.hyper), transformers.bert(self.hyper))

    def inputs(self, batch: Mapping[str, Any]) -> Tuple[Any, ...]:
        """Return the batch's numpy arrays that the model takes."""
        batch_size, sequence = batch["token_ids"].shape
        ids = (
            batch["token_ids"].astype(np.int32),
            batch["segment_ids"].astype(np.int32),
            np.arange(sequence, dtype=np.int32)[np.newaxis],
            batch["attention_mask"].astype(np.float32),
        )
        if "masked_positions" not in batch:
            return ids
        # row indices in the matrix of all sequences, because F.take selects rows of a matrix
        first_rows = sequence * np.arange(batch_size)[:, np.newaxis]
        return (*ids, (first_rows + batch["masked_positions"]).astype(np.int32))
