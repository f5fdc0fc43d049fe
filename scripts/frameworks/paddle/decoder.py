"""Causal language models: GPT-2 (Radford et al. 2019) and Llama (Touvron et al. 2023,
arXiv:2302.13971), told apart by their facts (see scripts/reference/decoder.py)."""

from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

from .bert import embedding

Rotation = Tuple[Tensor, Tensor]


def dense(inputs: int, units: int, hyper: Dict[str, Any], share: float = 1.0) -> nn.Linear:
    weights = nn.initializer.Normal(std=share * hyper["initializer_range"])
    bias = nn.initializer.Constant(0.0) if hyper["bias"] else False
    return nn.Linear(inputs, units, weight_attr=weights, bias_attr=bias)


def added(hyper: Dict[str, Any]) -> float:
    """What is added to the residuals starts the smaller, the more layers add to them."""
    return float((2 * hyper["layers"]) ** -0.5)


class RMSNorm(nn.Layer):
    """Over the last axis, in float32. Paddle's fused one is for GPUs alone."""

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


def rotation(length: int, size: int, base: float) -> Rotation:
    """Cosine and sine of each position's angles, (length, 1, size / 2)."""
    frequencies = base ** (-2.0 / size * paddle.arange(size // 2, dtype="float32"))
    angles = paddle.arange(length, dtype="float32").unsqueeze([1, 2]) * frequencies
    return paddle.cos(angles), paddle.sin(angles)


def rotate(x: Tensor, angles: Rotation) -> Tensor:
    """(batch, sequence, heads, size) turned in float32; the dtype is kept."""
    cosine, sine = angles
    first, second = paddle.chunk(x.astype("float32"), 2, axis=-1)
    turned = [first * cosine - second * sine, second * cosine + first * sine]
    return paddle.concat(turned, axis=-1).astype(x.dtype)


class Attention(nn.Layer):
    """(batch, sequence, hidden) kept; each position sees itself and those before it."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        hidden, heads, groups = (hyper[name] for name in ("hidden", "heads", "key_value_heads"))
        self.parts = [heads, groups, groups]
        self.sharing = heads // groups
        self.dropout = hyper.get("dropout", 0.0)  # of the attention probabilities
        self.query_key_value = dense(hidden, sum(self.parts) * (hidden // heads), hyper)
        self.output = dense(hidden, hidden, hyper, added(hyper))

    def forward(self, x: Tensor, angles: Optional[Rotation]) -> Tensor:
        every = self.query_key_value(x).reshape([0, 0, sum(self.parts), -1])  # 0: as it was
        query, key, value = paddle.split(every, self.parts, axis=2)
        if angles is not None:
            query, key = rotate(query, angles), rotate(key, angles)
        if self.sharing > 1:  # a head of keys for each of queries
            key, value = (paddle.repeat_interleave(one, self.sharing, 2) for one in (key, value))
        context = F.scaled_dot_product_attention(
            query, key, value, dropout_p=self.dropout, is_causal=True, training=self.training
        )
        return self.output(context.flatten(2))


class FeedForward(nn.Layer):
    """(batch, sequence, hidden) kept."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        hidden, inner = hyper["hidden"], hyper["intermediate"]
        self.gate = dense(hidden, inner, hyper) if hyper["activation"] == "swiglu" else None
        self.up = dense(hidden, inner, hyper)
        self.down = dense(inner, hidden, hyper, added(hyper))

    def forward(self, x: Tensor) -> Tensor:
        up = self.up(x)
        if self.gate is None:
            return self.down(F.gelu(up, approximate=True))
        return self.down(F.silu(self.gate(x)) * up)


class Layer(nn.Layer):
    """(batch, sequence, hidden) kept."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        self.attention_norm = normalization(hyper)
        self.attention = Attention(hyper)
        self.feed_forward_norm = normalization(hyper)
        self.feed_forward = FeedForward(hyper)
        self.dropout = nn.Dropout(hyper.get("dropout", 0.0))

    def forward(self, x: Tensor, angles: Optional[Rotation]) -> Tensor:
        x = x + self.dropout(self.attention(self.attention_norm(x), angles))
        return x + self.dropout(self.feed_forward(self.feed_forward_norm(x)))


class Embeddings(nn.Layer):
    """Token ids (batch, sequence) -> (batch, sequence, hidden)."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        learned = hyper["position"] == "learned"
        self.token = embedding(hyper["vocabulary"], hyper)
        self.position = embedding(hyper["positions"], hyper) if learned else None
        self.dropout = nn.Dropout(hyper.get("dropout", 0.0))

    def forward(self, token_ids: Tensor) -> Tensor:
        x = self.token(token_ids)
        if self.position is not None:
            x = x + self.position.weight[: token_ids.shape[1]]
        return self.dropout(x)


class LanguageModel(nn.Layer):
    """Token ids (batch, sequence) -> logits (batch, sequence, vocabulary)."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        self.size = hyper["hidden"] // hyper["heads"]
        self.base = hyper.get("rotary_base")
        self.embeddings = Embeddings(hyper)
        self.layers = nn.LayerList([Layer(hyper) for _ in range(hyper["layers"])])
        self.norm = normalization(hyper)
        self.head = None  # tied: the token embedding
        if not hyper["tied"]:
            self.head = dense(hyper["hidden"], hyper["vocabulary"], {**hyper, "bias": False})

    def forward(self, token_ids: Tensor) -> Tuple[Tensor]:
        x = self.embeddings(token_ids)
        angles = None if self.base is None else rotation(x.shape[1], self.size, self.base)
        for layer in self.layers:
            x = layer(x, angles)
        x = self.norm(x)
        if self.head is not None:
            return (self.head(x),)
        return (paddle.matmul(x, self.embeddings.token.weight, transpose_y=True),)


def build(facts: Dict[str, Any]) -> nn.Layer:
    return LanguageModel(facts["hyperparameters"])


def inputs(batch: Dict[str, Tensor]) -> Tuple[Tensor, ...]:
    return (batch["token_ids"],)


def loss(outputs: Tuple[Tensor, ...], batch: Dict[str, Tensor], facts: Dict[str, Any]) -> Tensor:
    logits = outputs[0].astype("float32")
    return F.cross_entropy(logits.flatten(0, 1), batch["labels"].flatten())
