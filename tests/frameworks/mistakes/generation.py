"""Mistakes in the text that adapters generate, by framework."""

from __future__ import annotations

from collections.abc import Sequence

from core.axes import GENERATE

from ..transformers import GENERATED
from .planted import Change, PlantedMistake

#: Models with learned positions; and with rotary positions and keys that heads share.
LEARNED, ROTARY = "gpt2_small", "llama_8b"
DECODER, GENERATOR = "models/decoder.py", "generation.py"


def _mistake(
    about: str, model: str, file: str, right: str, wrong: str, precision: str = "fp32"
) -> PlantedMistake:
    change = Change(file, right, wrong)
    return PlantedMistake(about, GENERATED[model], change, mode=GENERATE, precision=precision)


#: PyTorch and PaddlePaddle, whose definitions have these texts in common.
_IN_BOTH = [
    _mistake(
        "the last layer skipped", LEARNED, DECODER, "zip(self.layers,", "zip(self.layers[:-1],"
    ),
    _mistake(
        "one position too far",
        LEARNED,
        DECODER,
        "self._last, self._length, self._caches",
        "self._last, self._length + 1, self._caches",
    ),
    _mistake(
        "positions that go on behind the first token",
        ROTARY,
        DECODER,
        "self._length += self._last.shape[1]",
        "self._length += 1",
    ),
    _mistake(
        "each token in the place of the one before",
        LEARNED,
        DECODER,
        "begin, end = self._length, self._length",
        "begin, end = max(self._length - 1, 0), self._length",
    ),
    _mistake(
        "the logits of the first position", ROTARY, DECODER, "_logits(x[:, -1])", "_logits(x[:, 0])"
    ),
]
#: Mistakes in the adapter of each framework.
MISTAKES: dict[str, Sequence[PlantedMistake]] = {
    "pytorch": [
        *_IN_BOTH,
        _mistake(
            "values for keys",
            LEARNED,
            DECODER,
            "tuple(kept[:, :, :end] for kept in self._kept)",
            "tuple(kept[:, :, :end] for kept in self._kept[::-1])",
        ),
        _mistake(
            "the newest token not seen",
            ROTARY,
            DECODER,
            "tuple(kept[:, :, :end]",
            "tuple(kept[:, :, :max(begin, 1)]",
        ),
        _mistake(
            "prompts that see what comes",
            LEARNED,
            DECODER,
            "is_causal=query.shape[2] > 1",
            "is_causal=cache is None",
        ),
        _mistake(
            "each token fed twice",
            ROTARY,
            DECODER,
            "self._last = following[:, None]",
            "self._last = self._last[:, -1:]",
        ),
        _mistake(
            "the token of the other sequence fed",
            LEARNED,
            DECODER,
            "self._last = following[:, None]",
            "self._last = following.flip(0)[:, None]",
        ),
        _mistake(
            "the likeliest token but one",
            LEARNED,
            DECODER,
            "self.logits.argmax(dim=-1)",
            "self.logits.topk(2).indices[:, 1]",
        ),
        _mistake(
            "one position too far in half precision",
            LEARNED,
            DECODER,
            "self._last, self._length, self._caches",
            "self._last, self._length + 1, self._caches",
            "amp",
        ),
        _mistake(
            "float32 in half precision",
            LEARNED,
            "adapter.py",
            "with self._without_gradients(), self._autocast():\n            moved",
            "with self._without_gradients():\n            moved",
            "amp",
        ),
        _mistake(
            "the likeliest token but one in half precision",
            LEARNED,
            DECODER,
            "self.logits.argmax(dim=-1)",
            "self.logits.topk(2).indices[:, 1]",
            "amp",
        ),
    ],
    "paddle": [
        *_IN_BOTH,
        _mistake(
            "values for keys",
            LEARNED,
            DECODER,
            "[kept[:, :end] for kept in self._kept]",
            "[kept[:, :end] for kept in self._kept[::-1]]",
        ),
        _mistake(
            "prompts that see what comes",
            LEARNED,
            DECODER,
            "is_causal=cache is None or x.shape[1] > 1",
            "is_causal=cache is None",
        ),
        _mistake(
            "each token fed twice",
            ROTARY,
            DECODER,
            "self._last = following.unsqueeze(1)",
            "self._last = self._last[:, -1:]",
        ),
        _mistake(
            "the likeliest token but one",
            LEARNED,
            DECODER,
            "self.logits.argmax(axis=-1)",
            "self.logits.topk(2)[1][:, 1]",
        ),
    ],
    "jax": [
        _mistake(
            "the last layer skipped",
            LEARNED,
            DECODER,
            'for number in range(hyper["layers"])):\n        y =',
            'for number in range(hyper["layers"] - (cache is not None))):\n        y =',
        ),
        _mistake(
            "one position too far",
            LEARNED,
            DECODER,
            "dynamic_slice_in_dim(table, cache.length, length)",
            "dynamic_slice_in_dim(table, cache.length + 1, length)",
        ),
        _mistake(
            "positions that go on behind the first token",
            ROTARY,
            DECODER,
            "length=cache.length + token_ids.shape[1]",
            "length=cache.length + 1",
        ),
        _mistake(
            "values for keys",
            LEARNED,
            DECODER,
            "cache.length[None], cache.kept[name]",
            "cache.length[None], cache.kept[name][::-1]",
        ),
        _mistake(
            "a place behind the newest token seen",
            ROTARY,
            DECODER,
            "= cache.length[None], cache.kept[name]",
            "= cache.length[None] + 1, cache.kept[name]",
        ),
        _mistake(
            "tokens rotated as at the beginning",
            ROTARY,
            DECODER,
            "positions if cache is None else cache.length + positions",
            "positions",
        ),
        _mistake(
            "the prompts' last token fed again",
            ROTARY,
            GENERATOR,
            "        run = self._program(self._last)",
            "        self._last = self._last if self._last.ndim == 2 else self._prompts[:, -1]\n"
            "        run = self._program(self._last)",
        ),
        _mistake(
            "the likeliest token but one",
            LEARNED,
            GENERATOR,
            "jnp.argmax(logits, axis=-1)",
            "jnp.argsort(logits, axis=-1)[:, -2]",
        ),
        _mistake(
            "float32 in half precision",
            LEARNED,
            "adapter.py",
            "(self.model_config),\n            self._dtype,",
            "(self.model_config),\n            self._jax.numpy.float32,",
            "amp",
        ),
    ],
    "tensorflow": [
        _mistake("the last layer skipped", LEARNED, DECODER, "(caches):", "(caches[:-1]):"),
        _mistake(
            "one position too far",
            LEARNED,
            DECODER,
            "self.position(begin + tf",
            "self.position(begin + 1 + tf",
        ),
        _mistake(
            "each token at the beginning of the cache",
            ROTARY,
            DECODER,
            "kept[:, :, begin : begin + length]",
            "kept[:, :, :length]",
        ),
        _mistake(
            "values for keys",
            LEARNED,
            DECODER,
            "tf.convert_to_tensor(kept) for kept in self._kept]",
            "tf.convert_to_tensor(kept) for kept in self._kept[::-1]]",
        ),
        _mistake(
            "a place behind the newest token seen",
            ROTARY,
            DECODER,
            "else tf.range(room)",
            "else tf.range(room) - 1",
        ),
        _mistake(
            "tokens rotated as at the beginning",
            ROTARY,
            DECODER,
            "tf.cast(positions, tf.float32)",
            "tf.cast(positions - begin, tf.float32)",
        ),
        _mistake(
            "the prompts' last token fed again",
            ROTARY,
            GENERATOR,
            "self.over_one(self._last,",
            "self.over_one(self._prompts[:, -1],",
        ),
        _mistake(
            "the likeliest token but one",
            LEARNED,
            GENERATOR,
            "tf.argmax(logits, axis=-1)",
            "tf.cast(tf.math.top_k(logits, 2).indices[:, 1], tf.int64)",
        ),
    ],
    "mindspore": [
        _mistake(
            "the last layer skipped",
            LEARNED,
            DECODER,
            "zip(network.layers, self.caches)",
            "zip(network.layers[:-1], self.caches)",
        ),
        _mistake(
            "one position too far",
            LEARNED,
            DECODER,
            "x = network.embeddings(token_ids, where)",
            "x = network.embeddings(token_ids, where + 1)",
        ),
        _mistake(
            "positions that go on behind the first token",
            ROTARY,
            DECODER,
            "self._length += self._last.shape[1]",
            "self._length += 1",
        ),
        _mistake(
            "values for keys",
            LEARNED,
            DECODER,
            "ops.scatter_update(self.keys, rows, key.",
            "ops.scatter_update(self.keys, rows, value.",
        ),
        _mistake(
            "prompts that see what comes",
            LEARNED,
            DECODER,
            "of_positions = positions(where, length if length > 1 else self.room, ",
            "of_positions = positions(where + length - 1, length if length > 1 else self.room, ",
        ),
        _mistake("the logits of the first position", ROTARY, DECODER, "(x[:, -1:])", "(x[:, :1])"),
        _mistake(
            "each token fed twice",
            ROTARY,
            DECODER,
            "self._last = following[:, None]",
            "self._last = self._last[:, -1:]",
        ),
        _mistake(
            "the likeliest token but one",
            LEARNED,
            DECODER,
            "ops.argmax(logits, -1)",
            "ops.topk(logits, 2)[1][:, 1]",
        ),
    ],
}
