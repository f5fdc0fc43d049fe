"""Text, token by token: the pass over the prompts and that over one token are a program each, to
which the cache is donated."""

from __future__ import annotations

from typing import Any, Dict, Optional

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from .models.layers import Arrays
from .programs import compiled


class Generator:
    """Continues ``prompts`` (batch, sequence) by up to ``count`` tokens. ``is_compiled``: whether
    passes are programs, which are compiled here for all shapes that are timed."""

    def __init__(
        self,
        definition: Any,
        model: Any,
        dtype: Any,
        parameters: Arrays,
        prompts: Array,
        count: int,
        is_compiled: bool,
    ) -> None:
        batch, length = prompts.shape
        (device,) = prompts.devices()

        def follow(parameters: Arrays, kept: Any, used: Array, tokens: Array) -> Any:
            """Return the tokens that follow, (batch,), what they were chosen by, and the cache."""
            cache = definition.Cache(kept, used)
            tokens = tokens.reshape(batch, -1)
            logits, (kept, used) = definition.following(parameters, tokens, cache, model, dtype)
            return jnp.argmax(logits, axis=-1).astype(tokens.dtype), logits, kept, used

        self._follow, self._is_compiled = follow, is_compiled
        self._parameters, self._prompts = parameters, prompts
        self._kept = jax.device_put(definition.empty(model, batch, length + count, dtype), device)
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

    def prefill(self, more: Optional[Array] = None) -> Array:
        self._used, self._last = self._none, self._prompts
        if more is not None:
            self._last = jnp.concatenate([self._prompts, more.astype(self._prompts.dtype)], axis=1)
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
