"""Causal language models: GPT-2 (Radford et al. 2019) and Llama (Touvron et al. 2023,
arXiv:2302.13971), told apart by their model config (see scripts/reference/decoder.py)."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Tuple

import paddle
import paddle.nn.functional as F
from networks import transformers
from paddle import Tensor, nn

from .layers import ModelDefinition, initialized

Rotation = Tuple[Tensor, Tensor]


def dense(inputs: int, units: int, hyper: Dict[str, Any]) -> nn.Linear:
    return nn.Linear(inputs, units, bias_attr=None if hyper["bias"] else False)


class RMSNorm(nn.Layer):
    """RMS normalization over the last axis, in float32. Paddle's fused layer is for GPUs only."""

    def __init__(self, size: int, epsilon: float) -> None:
        super().__init__()
        ones = nn.initializer.Constant(1.0)
        self.weight = self.create_parameter([size], default_initializer=ones)
        self.epsilon = epsilon

    def forward(self, x: Tensor) -> Tensor:
        exact = x.astype("float32")
        square = (exact * exact).mean(axis=-1, keepdim=True)
        return (exact * paddle.rsqrt(square + self.epsilon) * self.weight).astype(x.dtype)


def normalization(hyper: Dict[str, Any]) -> nn.Layer:
    if hyper["norm"] == "rms":
        return RMSNorm(hyper["hidden"], hyper["norm_epsilon"])
    return nn.LayerNorm(hyper["hidden"], epsilon=hyper["norm_epsilon"])


def rotate(x: Tensor, angles: Rotation) -> Tensor:
    """Rotate positions of (batch, sequence, heads, size) in float32 (RoPE); keep the dtype."""
    cosine, sine = angles
    first, second = paddle.chunk(x.astype("float32"), 2, axis=-1)
    turned = [first * cosine - second * sine, second * cosine + first * sine]
    return paddle.concat(turned, axis=-1).astype(x.dtype)


class Cache:
    """Keys and values of one layer, (batch, sequence, heads, size) each, for up to ``room``
    positions. The first keys and values determine the dtype."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._kept: List[Tensor] = []
        self._length = 0

    def clear(self) -> None:
        self._length = 0

    def extend(self, *new: Tensor) -> Sequence[Tensor]:
        """Append ``new`` keys and values; return keys and values of all positions."""
        if not self._kept:
            batch, _, heads, size = new[0].shape
            shape = [batch, self._room, heads, size]
            self._kept = [paddle.empty(shape, update.dtype) for update in new]
        begin, end = self._length, self._length + new[0].shape[1]
        for kept, update in zip(self._kept, new):
            kept[:, begin:end] = update
        self._length = end
        return [kept[:, :end] for kept in self._kept]


class Attention(nn.Layer):
    """Attention that keeps (batch, sequence, hidden). Each position sees itself and earlier ones,
    also those in a cache."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        hidden, heads, groups = (hyper[name] for name in ("hidden", "heads", "key_value_heads"))
        self.parts = [heads, groups, groups]
        self.sharing = heads // groups
        self.dropout = hyper.get("dropout", 0.0)  # on attention probabilities
        self.query_key_value = dense(hidden, sum(self.parts) * (hidden // heads), hyper)
        self.output = dense(hidden, hidden, hyper)

    def forward(
        self, x: Tensor, angles: Optional[Rotation], cache: Optional[Cache] = None
    ) -> Tensor:
        every = self.query_key_value(x).reshape([0, 0, sum(self.parts), -1])  # 0 keeps the extent
        query, key, value = paddle.split(every, self.parts, axis=2)
        if angles is not None:
            query, key = rotate(query, angles), rotate(key, angles)
        if cache is not None:
            key, value = cache.extend(key, value)
        if self.sharing > 1:  # repeats key heads, one for each query head
            key, value = (
                paddle.repeat_interleave(tensor, self.sharing, 2) for tensor in (key, value)
            )
        context = F.scaled_dot_product_attention(
            query,
            key,
            value,
            dropout_p=self.dropout,
            is_causal=cache is None or x.shape[1] > 1,  # a single token may see all earlier ones
            training=self.training,
        )
        return self.output(context.flatten(2))


class FeedForward(nn.Layer):
    """Feed-forward part of a layer; it keeps (batch, sequence, hidden)."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        hidden, inner = hyper["hidden"], hyper["intermediate"]
        self.gate = dense(hidden, inner, hyper) if hyper["activation"] == "swiglu" else None
        self.up = dense(hidden, inner, hyper)
        self.down = dense(inner, hidden, hyper)

    def forward(self, x: Tensor) -> Tensor:
        up = self.up(x)
        if self.gate is None:
            return self.down(F.gelu(up, approximate=True))
        return self.down(F.silu(self.gate(x)) * up)


class Layer(nn.Layer):
    """Decoder layer; it keeps (batch, sequence, hidden)."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        self.attention_norm = normalization(hyper)
        self.attention = Attention(hyper)
        self.feed_forward_norm = normalization(hyper)
        self.feed_forward = FeedForward(hyper)
        self.dropout = nn.Dropout(hyper.get("dropout", 0.0))

    def forward(
        self, x: Tensor, angles: Optional[Rotation], cache: Optional[Cache] = None
    ) -> Tensor:
        x = x + self.dropout(self.attention(self.attention_norm(x), angles, cache))
        return x + self.dropout(self.feed_forward(self.feed_forward_norm(x)))


class Embeddings(nn.Layer):
    """Token ids (batch, sequence) -> (batch, sequence, hidden)."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        learned = hyper["position"] == "learned"
        self.token = nn.Embedding(hyper["vocabulary"], hyper["hidden"])
        self.position = nn.Embedding(hyper["positions"], hyper["hidden"]) if learned else None
        self.dropout = nn.Dropout(hyper.get("dropout", 0.0))

    def forward(self, token_ids: Tensor, begin: int = 0) -> Tensor:
        """Run the model. ``begin``: position of the first token."""
        x = self.token(token_ids)
        if self.position is not None:
            x = x + self.position.weight[begin : begin + token_ids.shape[1]]
        return self.dropout(x)


class LanguageModel(nn.Layer):
    """Token ids (batch, sequence) -> logits (batch, sequence, vocabulary or classes)."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        self.size = hyper["hidden"] // hyper["heads"]
        self.base = hyper.get("rotary_base")
        self.embeddings = Embeddings(hyper)
        self.layers = nn.LayerList([Layer(hyper) for _ in range(hyper["layers"])])
        self.norm = normalization(hyper)
        self.head = None  # tied: logits use the token embedding
        if not hyper["tied"]:
            units = hyper.get("classes", hyper["vocabulary"])
            self.head = dense(hyper["hidden"], units, hyper)

    def forward(self, token_ids: Tensor) -> Tuple[Tensor]:
        x = self.embeddings(token_ids)
        angles = self._angles(0, x.shape[1])
        for layer in self.layers:
            x = layer(x, angles)
        return (self._logits(x),)

    def following(self, token_ids: Tensor, begin: int, caches: List[Cache]) -> Tensor:
        """Return logits (batch, vocabulary) of the token after ``token_ids``, (batch, sequence),
        which start at position ``begin``. Their keys and values are appended to ``caches``, one for
        each layer."""
        x = self.embeddings(token_ids, begin)
        angles = self._angles(begin, begin + token_ids.shape[1])
        for layer, cache in zip(self.layers, caches):
            x = layer(x, angles, cache)
        return self._logits(x[:, -1])

    def _angles(self, begin: int, end: int) -> Optional[Rotation]:
        """Return cosine and sine of the angles of positions, (end - begin, 1, size / 2)."""
        if self.base is None:
            return None
        size = self.size
        frequencies = self.base ** (-2.0 / size * paddle.arange(size // 2, dtype="float32"))
        angles = paddle.arange(begin, end, dtype="float32").unsqueeze([1, 2]) * frequencies
        return paddle.cos(angles), paddle.sin(angles)

    def _logits(self, x: Tensor) -> Tensor:
        x = self.norm(x)
        if self.head is not None:
            return self.head(x)
        return paddle.matmul(x, self.embeddings.token.weight, transpose_y=True)


class Generator:
    """Continues ``prompts`` (batch, sequence) by up to ``count`` tokens."""

    def __init__(self, model: LanguageModel, prompts: Tensor, count: int) -> None:
        self._model, self._prompts = model, prompts
        self._caches = [Cache(prompts.shape[1] + count) for _ in model.layers]
        self._length, self._last = 0, prompts

    def prefill(self) -> Tensor:
        for cache in self._caches:
            cache.clear()
        self._length, self._last = 0, self._prompts
        return self.decode()

    def decode(self, tokens: Optional[Tensor] = None) -> Tensor:
        if tokens is not None:
            self._last = tokens.unsqueeze(1)
        self.logits = self._model.following(self._last, self._length, self._caches)
        self._length += self._last.shape[1]
        following = self.logits.argmax(axis=-1)
        self._last = following.unsqueeze(1)
        return following


class Definition(ModelDefinition):
    Generator = Generator

    def build(self) -> nn.Layer:
        return initialized(LanguageModel(self.hyper), transformers.decoder(self.hyper))
