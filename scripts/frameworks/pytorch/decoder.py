"""Causal language models: GPT-2 (Radford et al. 2019) and Llama (Touvron et al. 2023,
arXiv:2302.13971), told apart by their facts (see scripts/reference/decoder.py)."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

MEMORY_FORMAT = torch.contiguous_format

Rotation = Tuple[Tensor, Tensor]


def _norm(hyper: Dict[str, Any]) -> nn.Module:
    layer = {"layer": nn.LayerNorm, "rms": nn.RMSNorm}[hyper["norm"]]
    return layer(hyper["hidden"], eps=hyper["norm_epsilon"])


def rotation(length: int, size: int, base: float, device: torch.device) -> Rotation:
    """Cosine and sine of each position's angles, (length, size / 2) in float32 whatever autocast
    does."""
    frequencies = base ** (-2.0 * torch.arange(size // 2, device=device) / size)
    angles = torch.arange(length, device=device)[:, None] * frequencies
    return angles.cos(), angles.sin()


def rotate(x: Tensor, angles: Rotation) -> Tensor:
    """(batch, heads, sequence, size) turned in float32; the dtype is kept."""
    cosine, sine = angles
    first, second = x.chunk(2, dim=-1)
    turned = (first * cosine - second * sine, second * cosine + first * sine)
    return torch.cat(turned, dim=-1).to(x.dtype)


class Attention(nn.Module):
    """(batch, sequence, hidden) kept; each position sees itself and those before it."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        hidden, heads = hyper["hidden"], hyper["heads"]
        self.parts = [heads, hyper["key_value_heads"], hyper["key_value_heads"]]
        self.grouped = hyper["key_value_heads"] != heads
        self.dropout = hyper.get("dropout", 0.0)  # of the attention probabilities
        columns = sum(self.parts) * (hidden // heads)
        self.query_key_value = nn.Linear(hidden, columns, bias=hyper["bias"])
        self.output = nn.Linear(hidden, hidden, bias=hyper["bias"])

    def forward(self, x: Tensor, angles: Optional[Rotation]) -> Tensor:
        every = self.query_key_value(x).unflatten(-1, (sum(self.parts), -1)).transpose(1, 2)
        query, key, value = every.split(self.parts, dim=1)
        if angles is not None:
            query, key = rotate(query, angles), rotate(key, angles)
        context = F.scaled_dot_product_attention(
            query,
            key,
            value,
            dropout_p=self.dropout if self.training else 0.0,
            is_causal=True,
            enable_gqa=self.grouped,
        )
        return self.output(context.transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    """(batch, sequence, hidden) kept."""

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
    """(batch, sequence, hidden) kept."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        self.attention_norm = _norm(hyper)
        self.attention = Attention(hyper)
        self.feed_forward_norm = _norm(hyper)
        self.feed_forward = FeedForward(hyper)
        self.dropout = nn.Dropout(hyper.get("dropout", 0.0))

    def forward(self, x: Tensor, angles: Optional[Rotation]) -> Tensor:
        x = x + self.dropout(self.attention(self.attention_norm(x), angles))
        return x + self.dropout(self.feed_forward(self.feed_forward_norm(x)))


class Embeddings(nn.Module):
    """Token ids (batch, sequence) -> (batch, sequence, hidden)."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        self.token = nn.Embedding(hyper["vocabulary"], hyper["hidden"])
        self.position: Optional[nn.Embedding] = None
        if hyper["position"] == "learned":
            self.position = nn.Embedding(hyper["positions"], hyper["hidden"])
        self.dropout = nn.Dropout(hyper.get("dropout", 0.0))

    def forward(self, token_ids: Tensor) -> Tensor:
        x = self.token(token_ids)
        if self.position is not None:
            x = x + self.position.weight[: token_ids.shape[1]]
        return self.dropout(x)


class LanguageModel(nn.Module):
    """Token ids (batch, sequence) -> logits (batch, sequence, vocabulary)."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        self.angles: Optional[Callable[[int, torch.device], Rotation]] = None
        if hyper["position"] == "rotary":
            size, base = hyper["hidden"] // hyper["heads"], hyper["rotary_base"]
            self.angles = lambda length, device: rotation(length, size, base, device)
        self.embeddings = Embeddings(hyper)
        self.layers = nn.ModuleList(Layer(hyper) for _ in range(hyper["layers"]))
        self.norm = _norm(hyper)
        self.head: Optional[nn.Linear] = None  # tied: the token embedding
        if not hyper["tied"]:
            self.head = nn.Linear(hyper["hidden"], hyper["vocabulary"], bias=False)
        spread = hyper["initializer_range"]
        for name, parameter in self.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(parameter)
            elif parameter.dim() == 2:
                # what is added to the residuals is smaller, the more layers add to them
                added = name.endswith(("attention.output.weight", "down.weight"))
                share = (2 * hyper["layers"]) ** -0.5 if added else 1.0
                nn.init.normal_(parameter, std=spread * share)

    def forward(self, token_ids: Tensor) -> Tuple[Tensor]:
        x = self.embeddings(token_ids)
        angles = None if self.angles is None else self.angles(token_ids.shape[1], x.device)
        for layer in self.layers:
            x = layer(x, angles)
        x = self.norm(x)
        if self.head is not None:
            return (self.head(x),)
        return (F.linear(x, self.embeddings.token.weight),)


def build(facts: Dict[str, Any]) -> nn.Module:
    return LanguageModel(facts["hyperparameters"])


def inputs(batch: Dict[str, Tensor]) -> Tuple[Tensor, ...]:
    return (batch["token_ids"],)


def loss(outputs: Tuple[Tensor, ...], batch: Dict[str, Tensor], facts: Dict[str, Any]) -> Tensor:
    return F.cross_entropy(outputs[0].float().flatten(0, 1), batch["labels"].flatten())


def optimizer(model: nn.Module, facts: Dict[str, Any]) -> torch.optim.Optimizer:
    hyper = facts["hyperparameters"]
    return torch.optim.AdamW(
        model.parameters(),
        lr=hyper["learning_rate"],
        betas=(hyper["beta1"], hyper["beta2"]),
        eps=hyper["epsilon"],
        weight_decay=hyper["weight_decay"],
        fused=True,
    )
