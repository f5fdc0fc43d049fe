"""Causal language models: GPT-2 (Radford et al. 2019) and Llama (Touvron et al. 2023,
arXiv:2302.13971), told apart by their model config (see scripts/reference/decoder.py)."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from networks import Weight, transformers

from ..steps import compiled
from .layers import (
    SHARING,
    Arrays,
    Hyper,
    Key,
    ModelDefinition,
    attention,
    cut,
    dense,
    dropout,
    joined,
    keys,
    layer_norm,
    rms_norm,
)

DROPOUTS_OF_A_LAYER = 3  # attention probabilities, attention output, feed-forward output

#: Keys and values of each layer, by its name: (batch, room, key-value heads, size) each.
Kept = Dict[str, Tuple[Array, Array]]


class Cache(NamedTuple):
    """Keys and values of earlier positions; ``length`` positions are in use."""

    kept: Kept
    length: Array

    def extend(self, name: str, *new: Array) -> None:
        """Append keys and values of a layer, (batch, sequence, heads, size)."""
        begin = (0, self.length, 0, 0)
        keys, values = (
            lax.dynamic_update_slice(kept, update, begin)
            for kept, update in zip(self.kept[name], new)
        )
        self.kept[name] = keys, values


def _angles(positions: Array, hyper: Hyper) -> Tuple[Array, Array]:
    """Return cosine and sine of each position's angles, (positions, 1, size / 2) in float32."""
    size = hyper["hidden"] // hyper["heads"]
    frequencies = hyper["rotary_base"] ** (-2.0 / size * jnp.arange(size // 2, dtype=jnp.float32))
    angles = positions.astype(jnp.float32)[:, None, None] * frequencies
    return jnp.cos(angles), jnp.sin(angles)


def _rotated(x: Array, angles: Tuple[Array, Array]) -> Array:
    """Rotate positions of (batch, sequence, heads, size) in float32 (RoPE); keep the dtype."""
    cosine, sine = angles
    first, second = jnp.split(x.astype(jnp.float32), 2, axis=-1)
    turned = (first * cosine - second * sine, second * cosine + first * sine)
    return jnp.concatenate(turned, axis=-1).astype(x.dtype)


def _attention(
    parameters: Arrays,
    name: str,
    x: Array,
    angles: Optional[Tuple[Array, Array]],
    hyper: Hyper,
    key: Key,
    cache: Optional[Cache],
) -> Array:
    """Return the attention of (batch, sequence, hidden), in the same shape. Each position sees
    itself and earlier positions; a single position also sees the cache. All keys and values enter
    the cache."""
    heads, groups = hyper["heads"], hyper["key_value_heads"]
    every = dense(parameters, f"{name}.query_key_value", x)
    query, key_of_token, value = _heads(every, hyper)
    if angles is not None:
        query, key_of_token = _rotated(query, angles), _rotated(key_of_token, angles)
    positions = of_keys = jnp.arange(x.shape[1])
    if cache is not None:
        cache.extend(name, key_of_token, value)
        if x.shape[1] == 1:
            positions, (key_of_token, value) = cache.length[None], cache.kept[name]
            of_keys = jnp.arange(key_of_token.shape[1])
    # Query heads that share a key head become further rows of one matmul, so that keys are not
    # copied: each head has one row per position.
    query = jnp.swapaxes(query.reshape(*x.shape[:2], groups, heads // groups, -1), 2, 3)
    rows = query.reshape(x.shape[0], -1, *key_of_token.shape[2:])
    seen = jnp.repeat(positions, heads // groups)[:, None] >= of_keys
    context = attention(rows, key_of_token, value, seen, hyper.get("dropout", 0.0), key)
    context = jnp.swapaxes(context.reshape(query.shape), 2, 3)
    return dense(parameters, f"{name}.output", context.reshape(x.shape))


def _heads(every: Array, hyper: Hyper) -> List[Array]:
    """Return queries, keys and values (batch, sequence, heads, size) from (batch, sequence,
    columns). Where ranks shard the heads, each rank's heads of queries, keys and values are
    adjacent."""
    ranks = hyper[SHARING].ranks if SHARING in hyper else 1
    heads, groups = hyper["heads"] // ranks, hyper["key_value_heads"] // ranks
    positions = every.shape[:2]
    if ranks == 1:
        every = every.reshape(*positions, heads + 2 * groups, -1)
        return jnp.split(every, (heads, heads + groups), axis=2)
    every = every.reshape(*positions, ranks, heads + 2 * groups, -1)
    parts = jnp.split(every, (heads, heads + groups), axis=3)
    return [part.reshape(*positions, -1, part.shape[-1]) for part in parts]


def _feed_forward(parameters: Arrays, name: str, x: Array, hyper: Hyper) -> Array:
    up = dense(parameters, f"{name}.up", x)
    if hyper["activation"] == "swiglu":
        inner = jax.nn.silu(dense(parameters, f"{name}.gate", x)) * up
    else:
        inner = jax.nn.gelu(up, approximate=True)
    return dense(parameters, f"{name}.down", inner)


def _hidden(
    parameters: Arrays,
    token_ids: Array,
    hyper: Hyper,
    dtype: Any,
    key: Key,
    cache: Optional[Cache] = None,
) -> Array:
    """Return (batch, sequence, hidden) after the last layer; keys and values are put in the
    cache."""
    rate, epsilon = hyper.get("dropout", 0.0), hyper["norm_epsilon"]
    dropouts = keys(key, 1 + DROPOUTS_OF_A_LAYER * hyper["layers"])
    normalised = _normalised(hyper)
    x = parameters["embeddings.token.weight"][token_ids]
    length, angles = x.shape[1], None
    if hyper["position"] == "learned":
        table = parameters["embeddings.position.weight"]
        if cache is None:
            x = x + table[:length]
        else:
            x = x + lax.dynamic_slice_in_dim(table, cache.length, length)
    else:
        positions = jnp.arange(length)
        angles = _angles(positions if cache is None else cache.length + positions, hyper)
    x = cut(dropout(x.astype(dtype), rate, next(dropouts)), hyper)
    for name in (f"layers.{number}" for number in range(hyper["layers"])):
        y = normalised(parameters, f"{name}.attention_norm", x, epsilon)
        y = joined(y, hyper)
        y = _attention(parameters, f"{name}.attention", y, angles, hyper, next(dropouts), cache)
        x = x + dropout(cut(y, hyper), rate, next(dropouts))
        y = normalised(parameters, f"{name}.feed_forward_norm", x, epsilon)
        y = _feed_forward(parameters, f"{name}.feed_forward", joined(y, hyper), hyper)
        x = x + dropout(cut(y, hyper), rate, next(dropouts))
    return joined(x, hyper)


def _normalised(hyper: Hyper) -> Callable[..., Array]:
    return {"layer": layer_norm, "rms": rms_norm}[hyper["norm"]]


def _logits(parameters: Arrays, x: Array, hyper: Hyper) -> Array:
    """Map (batch, sequence, hidden) to (batch, sequence, vocabulary or classes)."""
    x = _normalised(hyper)(parameters, "norm", x, hyper["norm_epsilon"])
    if hyper["tied"]:
        tokens = parameters["embeddings.token.weight"].astype(x.dtype)
        return jnp.einsum("bsh,vh->bsv", x, tokens)
    return dense(parameters, "head", x)


class Generator:
    """Continues ``prompts`` (batch, sequence) by up to ``count`` tokens. ``is_compiled``: whether
    the passes over the prompts and over one token are compiled programs, to which the cache is
    donated. They are compiled here for all timed shapes."""

    def __init__(
        self,
        hyper: Hyper,
        dtype: Any,
        parameters: Arrays,
        prompts: Array,
        count: int,
        is_compiled: bool,
    ) -> None:
        batch, length = prompts.shape
        (device,) = prompts.devices()

        def follow(parameters: Arrays, kept: Any, used: Array, tokens: Array) -> Any:
            """Return the next tokens (batch,), the logits they were chosen by, and the cache with
            ``tokens``. Several tokens need an empty cache."""
            cache, tokens = Cache(dict(kept), used), tokens.reshape(batch, -1)
            x = _hidden(parameters, tokens, hyper, dtype, None, cache)
            logits = _logits(parameters, x[:, -1:], hyper)[:, 0]
            following = jnp.argmax(logits, axis=-1).astype(tokens.dtype)
            return following, logits, cache.kept, used + tokens.shape[1]

        self._follow, self._is_compiled = follow, is_compiled
        self._parameters, self._prompts = parameters, prompts
        shape = (batch, length + count, hyper["key_value_heads"], hyper["hidden"] // hyper["heads"])
        names = (f"layers.{number}.attention" for number in range(hyper["layers"]))
        kept = {name: (jnp.zeros(shape, dtype), jnp.zeros(shape, dtype)) for name in names}
        self._kept = jax.device_put(kept, device)
        self._none = self._used = jax.device_put(jnp.int32(0), device)
        self._programs: Dict[Any, Any] = {}
        self._last = prompts[:, 0]
        self.logits: Optional[Array] = None
        self.decoding = self._program(self._last)
        self._program(prompts)

    def _program(self, tokens: Array) -> Any:
        """Return the compiled program for a pass over ``tokens`` (batch, length), one for each
        length."""
        if not self._is_compiled:
            return self._follow
        if tokens.shape not in self._programs:
            arguments = (self._parameters, self._kept, self._none, tokens)
            self._programs[tokens.shape] = compiled(self._follow, arguments, donated=(1,))
        return self._programs[tokens.shape]

    def prefill(self) -> Array:
        self._used, self._last = self._none, self._prompts
        return self.decode()

    def decode(self, tokens: Optional[np.ndarray] = None) -> Array:
        if tokens is not None:
            like = self._prompts
            self._last = jax.device_put(tokens.astype(like.dtype), like.device)
        run = self._program(self._last)
        self._last, self.logits, self._kept, self._used = run(
            self._parameters, self._kept, self._used, self._last
        )
        return self._last


class Definition(ModelDefinition):
    """A language model, and how its layers are sharded among ranks, see sharded.py."""

    COLUMNS = ("attention.query_key_value", "feed_forward.gate", "feed_forward.up")
    ROWS = ("attention.output", "feed_forward.down")
    Generator = Generator

    def weights(self) -> Mapping[str, Weight]:
        return transformers.decoder(self.hyper)

    def heads_of(self, hyper: Hyper) -> Dict[str, Sequence[int]]:
        """Return the numbers of adjacent heads in a projection, one number for each kind of
        head."""
        kept = hyper["key_value_heads"]
        return {"attention.query_key_value": (hyper["heads"], kept, kept)}

    def forward(
        self, parameters: Arrays, statistics: Arrays, batch: Arrays, key: Key, dtype: Any
    ) -> Tuple[Tuple[Array, ...], Arrays]:
        """Return logits (batch, sequence, vocabulary or classes)."""
        x = _hidden(parameters, batch["token_ids"], self.hyper, dtype, key)
        return (_logits(parameters, x, self.hyper),), statistics
