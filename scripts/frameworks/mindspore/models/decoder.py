"""Causal language models: GPT-2 (Radford et al. 2019) and Llama (Touvron et al. 2023,
arXiv:2302.13971), told apart by their model config (see scripts/reference/decoder.py)."""

from __future__ import annotations

from typing import Any, Dict, List, Sequence, Tuple

import numpy as np
from harness.adapter import Definition as Base
from mindspore import Parameter, Tensor, float32, nn, ops
from mindspore.common.initializer import Normal
from networks.transformers import MASKED_SCORE, added_share

from .bert import table


class RMSNorm(nn.Cell):
    """RMS normalization over the last axis, written out: MindSpore's RmsNorm has no kernel for
    CPUs."""

    def __init__(self, size: int, epsilon: float) -> None:
        super().__init__()
        self.weight = Parameter(ops.ones(size), name="weight")
        self.epsilon = epsilon

    def construct(self, x: Tensor) -> Tensor:
        square = ops.mean(x * x, -1, True)
        return x * ops.rsqrt(square + self.epsilon) * self.weight


def normalization(hyper: Dict[str, Any]) -> nn.Cell:
    if hyper["norm"] == "rms":
        return RMSNorm(hyper["hidden"], hyper["norm_epsilon"])
    return nn.LayerNorm((hyper["hidden"],), epsilon=hyper["norm_epsilon"])


def dense(inputs: int, outputs: int, hyper: Dict[str, Any], added: bool = False) -> nn.Dense:
    """Return a linear layer. ``added``: its output is added to the residuals, so its weights start
    smaller in models with more layers."""
    share = added_share(hyper) if added else 1.0
    drawn = Normal(share * hyper["initializer_range"])
    return nn.Dense(inputs, outputs, weight_init=drawn, bias_init="zeros", has_bias=hyper["bias"])


def rotate(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Apply rotary position embedding to ``x`` (batch, heads, sequence, size)."""
    first, second = ops.chunk(x, 2, -1)
    return ops.cat((first * cosine - second * sine, second * cosine + first * sine), -1)


def positions(where: Tensor, hyper: Dict[str, Any]) -> List[Tensor]:
    """Return what all layers need of the positions ``where`` (sequence,): the causal mask that is
    added to scores (sequence, sequence) and, if rotary, cosine and sine (sequence, size / 2)."""
    later = (where > where[:, None]).astype(float32) * MASKED_SCORE
    if hyper["position"] != "rotary":
        return [later]
    size = hyper["hidden"] // hyper["heads"]
    frequencies = hyper["rotary_base"] ** (-2.0 / size * np.arange(size // 2))
    angles = where[:, None].astype(float32) * Tensor(frequencies.astype(np.float32))
    return [later, ops.cos(angles), ops.sin(angles)]


class Attention(nn.Cell):
    """Attention that keeps (batch, sequence, hidden)."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        hidden, heads = hyper["hidden"], hyper["heads"]
        self.heads, self.groups = heads, hyper["key_value_heads"]
        self.size = hidden // heads
        columns = (heads + 2 * self.groups) * self.size
        self.query_key_value = dense(hidden, columns, hyper)
        self.output = dense(hidden, hidden, hyper, added=True)
        self.dropout = nn.Dropout(p=hyper.get("dropout", 0.0))  # on attention probabilities
        self.scores = ops.BatchMatMul(transpose_b=True)
        self.context = ops.BatchMatMul()

    def construct(self, x: Tensor, of_positions: Sequence[Tensor]) -> Tensor:
        rows, length, hidden = x.shape
        later, angles = of_positions[0], of_positions[1:]
        every = self.query_key_value(x).reshape(rows, length, -1, self.size).swapaxes(1, 2)
        query = every[:, : self.heads]
        key = every[:, self.heads : self.heads + self.groups]
        value = every[:, self.heads + self.groups :]
        if angles:
            query, key = rotate(query, *angles), rotate(key, *angles)
        # query heads that share a key are further rows of the same matmul
        shared = (rows, self.groups, self.heads // self.groups * length)
        scores = self.scores((query * self.size**-0.5).reshape(*shared, self.size), key)
        scores = scores.reshape(rows, self.heads, length, -1) + later
        weights = self.dropout(ops.softmax(scores, -1)).reshape(*shared, -1)
        context = self.context(weights, value).reshape(rows, self.heads, length, self.size)
        return self.output(context.swapaxes(1, 2).reshape(rows, length, hidden))


class FeedForward(nn.Cell):
    """Feed-forward part of a layer; it keeps (batch, sequence, hidden)."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        hidden, inner = hyper["hidden"], hyper["intermediate"]
        self.gated = hyper["activation"] == "swiglu"
        if self.gated:
            self.gate = dense(hidden, inner, hyper)
        self.up = dense(hidden, inner, hyper)
        self.down = dense(inner, hidden, hyper, added=True)

    def construct(self, x: Tensor) -> Tensor:
        up = self.up(x)
        if self.gated:
            return self.down(ops.silu(self.gate(x)) * up)
        return self.down(ops.gelu(up, approximate="tanh"))


class Layer(nn.Cell):
    """Decoder layer; it keeps (batch, sequence, hidden)."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        self.attention_norm = normalization(hyper)
        self.attention = Attention(hyper)
        self.feed_forward_norm = normalization(hyper)
        self.feed_forward = FeedForward(hyper)
        # separate layers, because in a graph two calls of one layer have the same masks
        self.attention_dropout = nn.Dropout(p=hyper.get("dropout", 0.0))
        self.feed_forward_dropout = nn.Dropout(p=hyper.get("dropout", 0.0))

    def construct(self, x: Tensor, of_positions: Sequence[Tensor]) -> Tensor:
        x = x + self.attention_dropout(self.attention(self.attention_norm(x), of_positions))
        return x + self.feed_forward_dropout(self.feed_forward(self.feed_forward_norm(x)))


class Embeddings(nn.Cell):
    """Token ids (batch, sequence) at positions (sequence,) -> (batch, sequence, hidden)."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        self.token = table(hyper["vocabulary"], hyper)
        self.learned = hyper["position"] == "learned"
        if self.learned:
            self.position = table(hyper["positions"], hyper)
        self.dropout = nn.Dropout(p=hyper.get("dropout", 0.0))

    def construct(self, token_ids: Tensor, where: Tensor) -> Tensor:
        x = self.token(token_ids)
        if self.learned:
            x = x + self.position(where)
        return self.dropout(x)


class LanguageModel(nn.Cell):
    """Token ids (batch, sequence) -> logits (batch, sequence, vocabulary or classes)."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        self.hyper = hyper
        self.embeddings = Embeddings(hyper)
        self.layers = nn.CellList([Layer(hyper) for _ in range(hyper["layers"])])
        self.norm = normalization(hyper)
        self.tied_head = ops.MatMul(transpose_b=True)
        if not hyper["tied"]:
            units = hyper.get("classes", hyper["vocabulary"])
            self.head = dense(hyper["hidden"], units, hyper)

    def construct(self, token_ids: Tensor) -> Tuple[Tensor]:
        where = ops.arange(token_ids.shape[1])
        x = self.embeddings(token_ids, where)
        of_positions = positions(where, self.hyper)
        for layer in self.layers:
            x = layer(x, of_positions)
        x = self.norm(x)
        if not self.hyper["tied"]:
            return (self.head(x),)
        tokens = self.tied_head(x.reshape(-1, x.shape[2]), self.embeddings.token.embedding_table)
        return (tokens.reshape(*x.shape[:2], -1),)


class Definition(Base):
    def build(self, training: bool) -> nn.Cell:
        return LanguageModel(self.hyper)

    @staticmethod
    def loss(
        outputs: Tuple[Tensor, ...], batch: Dict[str, Tensor], hyper: Dict[str, Any]
    ) -> Tensor:
        """Return the mean cross-entropy of all tokens, or of the last token for classes."""
        logits = outputs[0]
        if "classes" in hyper:
            logits = logits[:, -1]
        return ops.cross_entropy(logits.reshape(-1, logits.shape[-1]), batch["labels"].reshape(-1))
