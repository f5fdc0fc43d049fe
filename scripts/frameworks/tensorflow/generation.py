"""Generate text token by token: the pass over the prompts and the pass over one token are one graph
each, with fixed shapes."""

from __future__ import annotations

from typing import Any, Dict, Optional

import keras
import numpy as np
import tensorflow as tf

from .steps import traced


class Generator:
    """Continues ``prompts`` (batch, sequence) by up to ``count`` tokens."""

    def __init__(
        self,
        definition: Any,
        model: keras.Model,
        model_config: Dict[str, Any],
        prompts: tf.Tensor,
        count: int,
        xla: bool,
    ) -> None:
        hyper, (batch, length) = model_config["hyperparameters"], prompts.shape
        dtype = keras.config.dtype_policy().compute_dtype
        caches = [
            definition.Cache(hyper, batch, length + count, dtype, xla)
            for _ in range(hyper["layers"])
        ]

        def follow(tokens: tf.Tensor, begin: tf.Tensor) -> Any:
            """Return the tokens that follow, (batch,), what they were chosen by, and where they
            stand."""
            tokens = tf.reshape(tokens, (batch, -1))
            logits = definition.following(model, model_config, tokens, begin, caches)
            return tf.argmax(logits, axis=-1), logits, begin + tokens.shape[1]

        self._follow = traced(follow, xla)
        self._prompts, self._none = prompts, tf.constant(0)
        self._over_prompts = self._follow.get_concrete_function(prompts, self._none)
        self.over_one = self._follow.get_concrete_function(prompts[:, 0], self._none)
        self._last: Any = None
        self._begin: Any = None
        self.logits: Any = None

    def prefill(self, more: Optional[np.ndarray] = None) -> tf.Tensor:
        tokens, run = self._prompts, self._over_prompts
        if more is not None:
            tokens = tf.concat([tokens, more], axis=1)
            run = self._follow.get_concrete_function(tokens, self._none)
        return self._after(run(tokens, self._none))

    def decode(self, tokens: Optional[np.ndarray] = None) -> tf.Tensor:
        if tokens is not None:
            self._last = tf.constant(tokens)
        return self._after(self.over_one(self._last, self._begin))

    def _after(self, results: Any) -> tf.Tensor:
        self._last, self.logits, self._begin = results
        return self._last
