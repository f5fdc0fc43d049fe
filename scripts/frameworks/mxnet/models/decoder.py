"""Causal language models: GPT-2 (Radford et al. 2019) and Llama (Touvron et al. 2023,
arXiv:2302.13971), told apart by their model config (see scripts/reference/decoder.py)."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Tuple

import numpy as np
from mxnet.gluon import nn
from networks import transformers
from networks.transformers import MASKED_SCORE

from .layers import ModelDefinition, initialized


def dense(inputs: int, units: int, hyper: Dict[str, Any]) -> nn.Dense:
    return nn.Dense(units, in_units=inputs, flatten=False, use_bias=hyper["bias"])


class RMSNorm(nn.HybridBlock):
    """RMS normalization over the last axis."""

    def __init__(self, size: int, epsilon: float) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.gamma = self.params.get("gamma", shape=(size,))

    def hybrid_forward(self, F: Any, x: Any, gamma: Any) -> Any:
        square = F.mean(F.square(x), axis=-1, keepdims=True)
        return F.broadcast_mul(F.broadcast_mul(x, F.rsqrt(square + self.epsilon)), gamma)


def normalization(hyper: Dict[str, Any]) -> nn.HybridBlock:
    if hyper["norm"] == "rms":
        return RMSNorm(hyper["hidden"], hyper["norm_epsilon"])
    return nn.LayerNorm(in_channels=hyper["hidden"], epsilon=hyper["norm_epsilon"])


def rotate(F: Any, x: Any, cosine: Any, sine: Any) -> Any:
    """Apply rotary position embedding to ``x`` (batch, heads, sequence, size) by angles (1, 1,
    sequence, size / 2)."""
    first, second = F.split(x, num_outputs=2, axis=3)
    turned = (
        F.broadcast_mul(first, cosine) - F.broadcast_mul(second, sine),
        F.broadcast_mul(second, cosine) + F.broadcast_mul(first, sine),
    )
    return F.concat(*turned, dim=3)


class Attention(nn.HybridBlock):
    """Attention that keeps (batch, sequence, hidden). Scores to add (1, sequence, sequence) hide
    later positions."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        hidden = hyper["hidden"]
        self.heads, self.groups = hyper["heads"], hyper["key_value_heads"]
        self.size = hidden // self.heads
        self.query_key_value = dense(hidden, (self.heads + 2 * self.groups) * self.size, hyper)
        self.output = dense(hidden, hidden, hyper)
        self.dropout = nn.Dropout(hyper.get("dropout", 0.0))  # on attention probabilities

    def hybrid_forward(self, F: Any, x: Any, later: Any, *angles: Any) -> Any:
        heads, groups = self.heads, self.groups
        every = F.reshape(self.query_key_value(x), (0, 0, heads + 2 * groups, self.size))
        every = F.transpose(every, (0, 2, 1, 3))
        query = F.slice_axis(every, axis=1, begin=0, end=heads)
        key = F.slice_axis(every, axis=1, begin=heads, end=heads + groups)
        value = F.slice_axis(every, axis=1, begin=heads + groups, end=None)
        if angles:
            query, key = rotate(F, query, *angles), rotate(F, key, *angles)
        key, value = (F.reshape(heads, (-3, 0, 0)) for heads in (key, value))
        # Query heads that share a key head become further rows of one matmul, (batch * groups,
        # rows, size), so that keys are not copied.
        query = F.reshape(query * self.size**-0.5, (0, -4, groups, -1, 0, 0))
        query = F.reshape(query, (-3, -3, 0))
        scores = F.batch_dot(query, key, transpose_b=True)
        apart = F.reshape(scores, (0, -4, heads // groups, -1, 0))
        apart = F.broadcast_add(apart, F.expand_dims(later, axis=0))
        weights = F.reshape(self.dropout(F.softmax(apart, axis=-1)), (0, -3, 0))
        context = F.batch_dot(weights, value)
        context = F.reshape(context, (-4, -1, groups, 0, 0))
        context = F.reshape(context, (0, 0, -4, heads // groups, -1, 0))
        context = F.transpose(F.reshape(context, (0, -3, 0, 0)), (0, 2, 1, 3))
        return self.output(F.reshape(context, (0, 0, -3)))


class FeedForward(nn.HybridBlock):
    """Feed-forward part of a layer; it keeps (batch, sequence, hidden)."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        hidden, inner = hyper["hidden"], hyper["intermediate"]
        self.gate = dense(hidden, inner, hyper) if hyper["activation"] == "swiglu" else None
        self.up = dense(hidden, inner, hyper)
        self.down = dense(inner, hidden, hyper)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        up = self.up(x)
        if self.gate is None:
            cubic = (2 / np.pi) ** 0.5 * (up + 0.044715 * F.square(up) * up)
            return self.down(0.5 * up * (1 + F.tanh(cubic)))
        gate = self.gate(x)
        return self.down(gate * F.sigmoid(gate) * up)


class Layer(nn.HybridBlock):
    """Decoder layer; it keeps (batch, sequence, hidden)."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        self.attention_norm = normalization(hyper)
        self.attention = Attention(hyper)
        self.feed_forward_norm = normalization(hyper)
        self.feed_forward = FeedForward(hyper)
        self.dropout = nn.Dropout(hyper.get("dropout", 0.0))

    def hybrid_forward(self, F: Any, x: Any, *positions: Any) -> Any:
        # not +, which broadcasts: oneDNN adds only arrays of equal shape
        y = self.attention(self.attention_norm(x), *positions)
        x = F.elemwise_add(x, self.dropout(y))
        return F.elemwise_add(x, self.dropout(self.feed_forward(self.feed_forward_norm(x))))


class Embeddings(nn.HybridBlock):
    """Token ids (batch, sequence), position ids (1, sequence) -> (batch, sequence, hidden)."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        learned = hyper["position"] == "learned"
        self.token = nn.Embedding(hyper["vocabulary"], hyper["hidden"])
        self.position = nn.Embedding(hyper["positions"], hyper["hidden"]) if learned else None
        self.dropout = nn.Dropout(hyper.get("dropout", 0.0))

    def hybrid_forward(self, F: Any, token_ids: Any, position_ids: Any) -> Any:
        x = self.token(token_ids)
        if self.position is not None:
            x = F.broadcast_add(x, self.position(position_ids))
        return self.dropout(x)


class LanguageModel(nn.HybridBlock):
    """Token ids (batch, sequence), position ids (1, sequence) -> logits (batch, sequence,
    vocabulary or classes)."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        self.vocabulary = hyper["vocabulary"]
        self.half, self.base = hyper["hidden"] // hyper["heads"] // 2, hyper.get("rotary_base")
        self.embeddings = Embeddings(hyper)
        self.layers = nn.HybridSequential()
        for _ in range(hyper["layers"]):
            self.layers.add(Layer(hyper))
        self.norm = normalization(hyper)
        self.head = None
        if hyper["tied"]:  # Gluon passes a parameter that is an attribute to hybrid_forward
            self.tied_head = self.embeddings.token.weight
        else:
            self.head = dense(hyper["hidden"], hyper.get("classes", hyper["vocabulary"]), hyper)

    def hybrid_forward(
        self, F: Any, token_ids: Any, position_ids: Any, tied_head: Any = None
    ) -> Tuple[Any]:
        x = self.embeddings(token_ids, position_ids)
        positions = self._positions(F, position_ids)
        for layer in self.layers:
            x = layer(x, *positions)
        x = self.norm(x)
        if self.head is not None:
            return (self.head(x),)
        logits = F.FullyConnected(
            x, tied_head, num_hidden=self.vocabulary, flatten=False, no_bias=True
        )
        return (logits,)

    def _positions(self, F: Any, position_ids: Any) -> Tuple[Any, ...]:
        """Return what all layers need of positions (1, sequence): the mask added to scores
        and, for rotary positions, cosine and sine of the angles."""
        places = F.cast(position_ids, "float32")
        columns = F.expand_dims(places, axis=2)
        later = F.broadcast_lesser(columns, F.expand_dims(places, axis=1)) * MASKED_SCORE
        if self.base is None:
            return (later,)
        halves = F.arange(start=0, stop=self.half, dtype="float32")
        frequencies = F.exp(halves * float(-np.log(self.base) / self.half))
        angles = F.broadcast_mul(columns, F.reshape(frequencies, (1, 1, -1)))
        angles = F.expand_dims(angles, axis=0)
        return later, F.cos(angles), F.sin(angles)


class Definition(ModelDefinition):
    def build(self) -> nn.HybridBlock:
        return initialized(LanguageModel(self.hyper), transformers.decoder(self.hyper))

    def inputs(self, batch: Mapping[str, Any]) -> Tuple[Any, ...]:
        """Return the batch's numpy arrays that the model takes."""
        positions = np.arange(batch["token_ids"].shape[1], dtype=np.int32)
        return batch["token_ids"].astype(np.int32), positions[np.newaxis]
