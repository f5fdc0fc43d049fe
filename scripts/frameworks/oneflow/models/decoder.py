"""Causal language models: GPT-2 (Radford et al. 2019) and Llama (Touvron et al. 2023,
arXiv:2302.13971), told apart by their model config (see scripts/reference/decoder.py)."""

from __future__ import annotations

import math
from typing import Any, Dict, List, Optional, Tuple

import oneflow
import oneflow.nn.functional as F
from networks import transformers
from networks.transformers import MASKED_SCORE
from oneflow import Tensor, nn

from ..steps import Multiplication
from .layers import ModelDefinition, dropout, initialized


class RMSNorm(nn.Module):
    """RMS normalization over the last axis, in float32. OneFlow's own layer is for GPUs only."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(oneflow.ones(size))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        exact = x.float()
        square = (exact * exact).mean(dim=-1, keepdim=True)
        return (exact * oneflow.rsqrt(square + self.eps) * self.weight).to(x.dtype)


def normalization(hyper: Dict[str, Any]) -> nn.Module:
    layer = {"layer": nn.LayerNorm, "rms": RMSNorm}[hyper["norm"]]
    return layer(hyper["hidden"], eps=hyper["norm_epsilon"])


def rotate(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Rotate positions of (batch, heads, sequence, size) in float32 (RoPE); keep the dtype."""
    first, second = x.float().chunk(2, dim=-1)
    turned = [first * cosine - second * sine, second * cosine + first * sine]
    return oneflow.cat(turned, dim=-1).to(x.dtype)


class Positions(nn.Module):
    """Positions as all layers need them, from token ids (batch, sequence): the causal mask that is
    added to the scores (sequence, sequence) and, for rotary positions, cosine and sine of their
    angles (sequence, size / 2)."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        self.size = hyper["hidden"] // hyper["heads"]
        self.base = hyper["rotary_base"] if hyper["position"] == "rotary" else None

    def forward(self, token_ids: Tensor) -> List[Tensor]:
        device = token_ids.device
        positions = oneflow.arange(token_ids.shape[1], dtype=oneflow.float32, device=device)
        later = (positions[None, :] > positions[:, None]).float() * MASKED_SCORE
        if self.base is None:
            return [later]
        halves = oneflow.arange(self.size // 2, dtype=oneflow.float32, device=device)
        frequencies = oneflow.exp(halves * (-2.0 / self.size * math.log(self.base)))
        angles = positions[:, None] * frequencies[None, :]
        return [later, oneflow.cos(angles), oneflow.sin(angles)]


class Attention(nn.Module):
    """Attention that keeps (batch, sequence, hidden)."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        hidden, heads = hyper["hidden"], hyper["heads"]
        self.heads, self.groups = heads, hyper["key_value_heads"]
        self.size = hidden // heads
        columns = (heads + 2 * self.groups) * self.size
        self.query_key_value = nn.Linear(hidden, columns, bias=hyper["bias"])
        self.output = nn.Linear(hidden, hidden, bias=hyper["bias"])
        self.dropout = dropout(hyper.get("dropout", 0.0))  # on attention probabilities
        self.scores = Multiplication(transpose_b=True)
        self.context = Multiplication()

    def forward(self, x: Tensor, later: Tensor, *angles: Tensor) -> Tensor:
        rows, length = x.shape[0], x.shape[1]
        every = self.query_key_value(x).reshape(rows, length, -1, self.size).transpose(1, 2)
        query = every[:, : self.heads]
        key = every[:, self.heads : self.heads + self.groups]
        value = every[:, self.heads + self.groups :]
        if angles:
            query, key = rotate(query, *angles), rotate(key, *angles)
        # Query heads that share a key head become further rows of one matmul, so that keys are not
        # copied.
        shared = (rows, self.groups, self.heads // self.groups * length, self.size)
        scores = self.scores((query * self.size**-0.5).reshape(*shared), key)
        scores = scores.reshape(rows, self.heads, length, length) + later.to(x.dtype)
        weights = self.dropout(F.softmax(scores, dim=-1)).reshape(*shared[:3], length)
        context = self.context(weights, value).reshape(rows, self.heads, length, self.size)
        return self.output(context.transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    """Feed-forward part of a layer; it keeps (batch, sequence, hidden)."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        hidden, inner, bias = hyper["hidden"], hyper["intermediate"], hyper["bias"]
        self.gate: Optional[nn.Linear] = None
        if hyper["activation"] == "swiglu":
            self.gate = nn.Linear(hidden, inner, bias=bias)
        self.up = nn.Linear(hidden, inner, bias=bias)
        self.down = nn.Linear(inner, hidden, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        up = self.up(x)
        if self.gate is None:
            return self.down(F.gelu(up, approximate="tanh"))
        return self.down(F.silu(self.gate(x)) * up)


class Layer(nn.Module):
    """Decoder layer; it keeps (batch, sequence, hidden)."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        self.attention_norm = normalization(hyper)
        self.attention = Attention(hyper)
        self.feed_forward_norm = normalization(hyper)
        self.feed_forward = FeedForward(hyper)
        self.dropout = dropout(hyper.get("dropout", 0.0))

    def forward(self, x: Tensor, *positions: Tensor) -> Tensor:
        x = x + self.dropout(self.attention(self.attention_norm(x), *positions))
        return x + self.dropout(self.feed_forward(self.feed_forward_norm(x)))


class Embeddings(nn.Module):
    """Token ids (batch, sequence) -> (batch, sequence, hidden)."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        self.token = nn.Embedding(hyper["vocabulary"], hyper["hidden"])
        self.position: Optional[nn.Embedding] = None
        if hyper["position"] == "learned":
            self.position = nn.Embedding(hyper["positions"], hyper["hidden"])
        self.dropout = dropout(hyper.get("dropout", 0.0))

    def forward(self, token_ids: Tensor) -> Tensor:
        x = self.token(token_ids)
        if self.position is not None:
            x = x + self.position.weight[: token_ids.shape[1]]
        return self.dropout(x)


class LanguageModel(nn.Module):
    """Token ids (batch, sequence) -> logits (batch, sequence, vocabulary or classes)."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        self.embeddings = Embeddings(hyper)
        self.positions = Positions(hyper)
        self.layers = nn.ModuleList([Layer(hyper) for _ in range(hyper["layers"])])
        self.norm = normalization(hyper)
        self.head: Optional[nn.Module] = None
        self.tied_head = Multiplication(transpose_b=True)
        if not hyper["tied"]:
            units = hyper.get("classes", hyper["vocabulary"])
            self.head = nn.Linear(hyper["hidden"], units, bias=hyper["bias"])

    def forward(self, token_ids: Tensor) -> Tuple[Tensor]:
        x, positions = self.embeddings(token_ids), self.positions(token_ids)
        for layer in self.layers:
            x = layer(x, *positions)
        x = self.norm(x)
        if self.head is not None:
            return (self.head(x),)
        return (self.tied_head(x, self.embeddings.token.weight),)


class Definition(ModelDefinition):
    def build(self) -> nn.Module:
        return initialized(LanguageModel(self.hyper), transformers.decoder(self.hyper))
