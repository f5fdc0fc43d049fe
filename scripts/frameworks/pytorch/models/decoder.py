"""Causal language models: GPT-2 (Radford et al. 2019) and Llama (Touvron et al. 2023,
arXiv:2302.13971), told apart by their model config (see scripts/reference/decoder.py)."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Tuple

import torch
import torch.nn.functional as F
from networks import transformers
from torch import Tensor, nn

from .layers import ModelDefinition, initialized

Rotation = Tuple[Tensor, Tensor]


def _norm(hyper: Dict[str, Any]) -> nn.Module:
    layer = {"layer": nn.LayerNorm, "rms": nn.RMSNorm}[hyper["norm"]]
    return layer(hyper["hidden"], eps=hyper["norm_epsilon"])


def rotation(positions: Tensor, size: int, base: float) -> Rotation:
    """Return cosine and sine of each position's angles, (positions, size / 2) in float32 whatever
    autocast does."""
    frequencies = base ** (-2.0 * torch.arange(size // 2, device=positions.device) / size)
    angles = positions[:, None] * frequencies
    return angles.cos(), angles.sin()


def rotate(x: Tensor, angles: Rotation) -> Tensor:
    """Rotate positions of (batch, heads, sequence, size) in float32 (RoPE); keep the dtype."""
    cosine, sine = angles
    first, second = x.chunk(2, dim=-1)
    turned = (first * cosine - second * sine, second * cosine + first * sine)
    return torch.cat(turned, dim=-1).to(x.dtype)


class Cache:
    """Keys and values of one layer, (batch, heads, sequence, size) each, for up to ``room``
    positions. The first keys and values determine the dtype."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._kept: Tuple[Tensor, ...] = ()
        self._length = 0

    def clear(self) -> None:
        self._length = 0

    def extend(self, new: Tuple[Tensor, Tensor]) -> Tuple[Tensor, ...]:
        """Append ``new`` keys and values; return keys and values of all positions."""
        if not self._kept:
            batch, heads, _, size = new[0].shape
            self._kept = tuple(update.new_empty(batch, heads, self._room, size) for update in new)
        begin, end = self._length, self._length + new[0].shape[2]
        for kept, update in zip(self._kept, new):
            kept[:, :, begin:end] = update
        self._length = end
        return tuple(kept[:, :, :end] for kept in self._kept)


class Attention(nn.Module):
    """Attention that keeps (batch, sequence, hidden). Each position sees itself and earlier ones,
    also those in a cache."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        hidden, heads = hyper["hidden"], hyper["heads"]
        self.parts = [heads, hyper["key_value_heads"], hyper["key_value_heads"]]
        self.grouped = hyper["key_value_heads"] != heads
        self.dropout = hyper.get("dropout", 0.0)  # on attention probabilities
        columns = sum(self.parts) * (hidden // heads)
        self.query_key_value = nn.Linear(hidden, columns, bias=hyper["bias"])
        self.output = nn.Linear(hidden, hidden, bias=hyper["bias"])

    def forward(
        self, x: Tensor, angles: Optional[Rotation], cache: Optional[Cache] = None
    ) -> Tensor:
        every = self.query_key_value(x).unflatten(-1, (sum(self.parts), -1)).transpose(1, 2)
        query, key, value = every.split(self.parts, dim=1)
        if angles is not None:
            query, key = rotate(query, angles), rotate(key, angles)
        if cache is not None:
            key, value = cache.extend((key, value))
        context = F.scaled_dot_product_attention(
            query,
            key,
            value,
            dropout_p=self.dropout if self.training else 0.0,
            is_causal=query.shape[2] > 1,  # a single token may see all earlier ones
            enable_gqa=self.grouped,
        )
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
        self.attention_norm = _norm(hyper)
        self.attention = Attention(hyper)
        self.feed_forward_norm = _norm(hyper)
        self.feed_forward = FeedForward(hyper)
        self.dropout = nn.Dropout(hyper.get("dropout", 0.0))

    def forward(
        self, x: Tensor, angles: Optional[Rotation], cache: Optional[Cache] = None
    ) -> Tensor:
        x = x + self.dropout(self.attention(self.attention_norm(x), angles=angles, cache=cache))
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

    def forward(self, token_ids: Tensor, begin: int = 0) -> Tensor:
        """Run the model. ``begin``: position of the first token."""
        x = self.token(token_ids)
        if self.position is not None:
            x = x + self.position.weight[begin : begin + token_ids.shape[1]]
        return self.dropout(x)


class LanguageModel(nn.Module):
    """Token ids (batch, sequence) -> logits (batch, sequence, vocabulary or classes)."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        self.angles: Optional[Callable[[Tensor], Rotation]] = None
        if hyper["position"] == "rotary":
            size, base = hyper["hidden"] // hyper["heads"], hyper["rotary_base"]
            self.angles = lambda positions: rotation(positions, size, base)
        self.embeddings = Embeddings(hyper)
        self.layers = nn.ModuleList(Layer(hyper) for _ in range(hyper["layers"]))
        self.norm = _norm(hyper)
        self.head: Optional[nn.Linear] = None  # tied: logits use the token embedding
        if not hyper["tied"]:
            units = hyper.get("classes", hyper["vocabulary"])
            self.head = nn.Linear(hyper["hidden"], units, bias=hyper["bias"])

    def forward(self, token_ids: Tensor) -> Tuple[Tensor]:
        angles = self.beside(token_ids)
        x = self.begin(token_ids)
        for layer in self.layers:
            x = layer(x, angles)
        return self.finish(x)

    # Parts for the stages of a pipeline: see pipeline.py.

    def begin(self, token_ids: Tensor) -> Tensor:
        return self.embeddings(token_ids)

    def beside(self, token_ids: Tensor) -> Optional[Rotation]:
        return self._angles(0, token_ids)

    def finish(self, x: Tensor, *inputs: Tensor) -> Tuple[Tensor]:
        return (self._logits(x),)

    def following(self, token_ids: Tensor, begin: int, caches: List[Cache]) -> Tensor:
        """Return logits (batch, vocabulary) of the token after ``token_ids``, (batch, sequence),
        which start at position ``begin``. Their keys and values are appended to ``caches``, one for
        each layer."""
        angles = self._angles(begin, token_ids)
        x = self.embeddings(token_ids, begin)
        for layer, cache in zip(self.layers, caches):
            x = layer(x, angles, cache)
        return self._logits(x[:, -1])

    def _angles(self, begin: int, token_ids: Tensor) -> Optional[Rotation]:
        if self.angles is None:
            return None
        end = begin + token_ids.shape[1]
        return self.angles(torch.arange(begin, end, device=token_ids.device))

    def _logits(self, x: Tensor) -> Tensor:
        x = self.norm(x)
        if self.head is not None:
            return self.head(x)
        return F.linear(x, self.embeddings.token.weight)


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
            self._last = tokens[:, None]
        self.logits = self._model.following(self._last, self._length, self._caches)
        self._length += self._last.shape[1]
        following = self.logits.argmax(dim=-1)
        self._last = following[:, None]
        return following


class Definition(ModelDefinition):
    """A language model, and how its layers are sharded among devices, see sharded.py."""

    LAYER = Layer
    COLUMNS = ("attention.query_key_value", "feed_forward.gate", "feed_forward.up")
    ROWS = ("attention.output", "feed_forward.down")
    NORMS = ("attention_norm", "feed_forward_norm")
    Generator = Generator

    def build(self) -> nn.Module:
        return initialized(LanguageModel(self.hyper), transformers.decoder(self.hyper))

    def heads_of(self, layer: Layer) -> List[int]:
        """Return the numbers of heads of queries, keys and values."""
        return list(layer.attention.parts)

    def share_heads(self, layer: Layer, ranks: int) -> Dict[str, List[int]]:
        """Restrict ``layer`` to the heads of one of ``ranks``.

        Returns the heads of queries, keys and values, of all ranks, by the name of their
        projection."""
        parts = layer.attention.parts
        layer.attention.parts = [heads // ranks for heads in parts]
        return {"attention.query_key_value": parts}

    def tied(self, model: LanguageModel) -> List[str]:
        """Return the parameters of the embeddings that the head multiplies by."""
        return [] if model.head is not None else ["embeddings.token.weight"]
