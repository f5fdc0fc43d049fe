"""Causal language models: GPT-2 (Radford et al. 2019) and Llama (Touvron et al. 2023,
arXiv:2302.13971), told apart by their model config (see scripts/reference/decoder.py)."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import numpy as np
from harness.adapter import inputs as inputs
from mindspore import Parameter, Tensor, float32, int32, nn, ops
from mindspore.common.initializer import Normal
from networks.transformers import MASKED_SCORE, added_share

from .bert import table

Compiled = Callable[[Any], Any]


class RMSNorm(nn.Cell):
    """Over the last axis, written out: MindSpore's RmsNorm has no kernel for CPUs."""

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


def positions(where: Tensor, seen: int, hyper: Dict[str, Any]) -> List[Tensor]:
    """Return what all layers need of the positions ``where`` (sequence,), which attend to ``seen``
    ones: the causal mask that is added to scores (sequence, seen) and, if rotary, cosine and sine
    (sequence, size / 2)."""
    later = (ops.arange(seen) > where[:, None]).astype(float32) * MASKED_SCORE
    if hyper["position"] != "rotary":
        return [later]
    size = hyper["hidden"] // hyper["heads"]
    frequencies = hyper["rotary_base"] ** (-2.0 / size * np.arange(size // 2))
    angles = where[:, None].astype(float32) * Tensor(frequencies.astype(np.float32))
    return [later, ops.cos(angles), ops.sin(angles)]


class Cache(nn.Cell):
    """Keys and values of one layer, for up to ``room`` positions: rows (batch x heads x room,
    size), written in place."""

    def __init__(self, hyper: Dict[str, Any], batch: int, room: int) -> None:
        super().__init__()
        size, heads = hyper["hidden"] // hyper["heads"], hyper["key_value_heads"]
        self.room, self.shape = room, (batch, heads, room, size)
        self.begins = Tensor(room * np.arange(batch * heads)[:, None], int32)
        rows = (batch * heads * room, size)
        self.keys, self.values = (
            Parameter(ops.zeros(rows), name=name, requires_grad=False)
            for name in ("keys", "values")
        )

    def extend(self, where: Tensor, key: Tensor, value: Tensor) -> Tuple[Tensor, Tensor]:
        """Write ``key`` and ``value`` (batch, heads, sequence, size) at the positions ``where`` and
        return those that they attend to: themselves if there are several, which must be the first,
        else the whole room."""
        rows = (self.begins + where).reshape(-1)
        size = key.shape[3]
        ops.scatter_update(self.keys, rows, key.reshape(-1, size))
        ops.scatter_update(self.values, rows, value.reshape(-1, size))
        if key.shape[2] > 1:
            return key, value
        return self.keys.reshape(self.shape), self.values.reshape(self.shape)


class Attention(nn.Cell):
    """Attention that keeps (batch, sequence, hidden). Keys and values go through a ``cache``, if
    there is one, at the positions ``where``."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        hidden, heads = hyper["hidden"], hyper["heads"]
        self.heads, self.groups = heads, hyper["key_value_heads"]
        self.size = hidden // heads
        columns = (heads + 2 * self.groups) * self.size
        self.query_key_value = dense(hidden, columns, hyper)
        self.output = dense(hidden, hidden, hyper, added=True)
        self.dropout = nn.Dropout(p=hyper.get("dropout", 0.0))  # of the attention probabilities
        self.scores = ops.BatchMatMul(transpose_b=True)
        self.context = ops.BatchMatMul()

    def construct(
        self,
        x: Tensor,
        of_positions: Sequence[Tensor],
        where: Optional[Tensor] = None,
        cache: Optional[Cache] = None,
    ) -> Tensor:
        rows, length, hidden = x.shape
        later, angles = of_positions[0], of_positions[1:]
        every = self.query_key_value(x).reshape(rows, length, -1, self.size).swapaxes(1, 2)
        query = every[:, : self.heads]
        key = every[:, self.heads : self.heads + self.groups]
        value = every[:, self.heads + self.groups :]
        if angles:
            query, key = rotate(query, *angles), rotate(key, *angles)
        if cache is not None:
            key, value = cache.extend(where, key, value)
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
        # one each: in a graph, two calls of one have the same masks
        self.attention_dropout = nn.Dropout(p=hyper.get("dropout", 0.0))
        self.feed_forward_dropout = nn.Dropout(p=hyper.get("dropout", 0.0))

    def construct(
        self,
        x: Tensor,
        of_positions: Sequence[Tensor],
        where: Optional[Tensor] = None,
        cache: Optional[Cache] = None,
    ) -> Tensor:
        attended = self.attention(self.attention_norm(x), of_positions, where, cache)
        x = x + self.attention_dropout(attended)
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
        length = token_ids.shape[1]
        where = ops.arange(length)
        x = self.embeddings(token_ids, where)
        of_positions = positions(where, length, self.hyper)
        for layer in self.layers:
            x = layer(x, of_positions)
        return (self.logits(x),)

    def logits(self, x: Tensor) -> Tensor:
        """Return logits (batch, sequence, vocabulary or classes) from the output of the layers."""
        x = self.norm(x)
        if not self.hyper["tied"]:
            return self.head(x)
        tokens = self.tied_head(x.reshape(-1, x.shape[2]), self.embeddings.token.embedding_table)
        return tokens.reshape(*x.shape[:2], -1)


class Following(nn.Cell):
    """Token ids (batch, sequence), the first at the position ``begin`` -> the tokens that follow,
    (batch,), and their logits (batch, vocabulary). Keys and values go into a cache for ``room``
    positions."""

    def __init__(self, network: LanguageModel, batch: int, room: int) -> None:
        super().__init__()
        self.network, self.room = network, room
        caches = [Cache(network.hyper, batch, room) for _ in network.layers]
        self.caches = nn.CellList(caches)

    def construct(self, token_ids: Tensor, begin: Tensor) -> Tuple[Tensor, Tensor]:
        length, network = token_ids.shape[1], self.network
        where = begin + ops.arange(length)
        x = network.embeddings(token_ids, where)
        of_positions = positions(where, length if length > 1 else self.room, network.hyper)
        for layer, cache in zip(network.layers, self.caches):
            x = layer(x, of_positions, where, cache)
        logits = network.logits(x[:, -1:])[:, 0]
        return ops.argmax(logits, -1).astype(int32), logits


class Generator:
    """Continues ``prompts`` (batch, sequence) by up to ``count`` tokens. ``compiled``: makes a
    graph of a function; None for operations one by one."""

    def __init__(
        self, network: LanguageModel, prompts: Tensor, count: int, compiled: Optional[Compiled]
    ) -> None:
        batch, length = prompts.shape
        following = Following(network, batch, length + count)
        following.set_train(False)

        def follow(token_ids: Tensor, begin: Tensor) -> Tuple[Tensor, Tensor]:
            return following(token_ids, begin)

        self._follow = compiled(follow) if compiled else follow
        self._prompts = self._last = prompts
        self._length = 0

    def prefill(self, more: Optional[Tensor] = None) -> Tensor:
        self._last, self._length = self._prompts, 0
        if more is not None:
            self._last = ops.cat([self._prompts, more], 1)
        return self.decode()

    def decode(self, tokens: Optional[Tensor] = None) -> Tensor:
        if tokens is not None:
            self._last = tokens[:, None]
        following, self.logits = self._follow(self._last, Tensor(self._length, int32))
        self._length += self._last.shape[1]
        self._last = following[:, None]
        return following


def build(model_config: Dict[str, Any], training: bool) -> nn.Cell:
    return LanguageModel(model_config["hyperparameters"])


def loss(
    outputs: Tuple[Tensor, ...], batch: Dict[str, Tensor], model_config: Dict[str, Any]
) -> Tensor:
    """Return the mean cross-entropy of all tokens; of classes, that of the last token."""
    logits = outputs[0]
    if "classes" in model_config["hyperparameters"]:
        logits = logits[:, -1]
    return ops.cross_entropy(logits.reshape(-1, logits.shape[-1]), batch["labels"].reshape(-1))
