"""Images and tokens from files: tf.data with TensorFlow's own JPEG decoder and image operations, as
its guide to the performance of input pipelines has them."""

from __future__ import annotations

from typing import Iterator

import tensorflow as tf
from harness.loader import Loaded, LoadedTokens, Loads, TokenLoads, tensorflow_data


def _constants(arrays: tensorflow_data.Arrays) -> tensorflow_data.Arrays:
    return {name: tf.constant(array) for name, array in arrays.items()}


def load(loads: Loads, accelerator: str) -> Iterator[Loaded]:
    """Yield batches of images; see :meth:`harness.loader.Loading.load`. Without workers nothing is
    done ahead."""
    with tf.device("/CPU:0"):
        parts = _constants(tensorflow_data.arrays(loads))
        for images, labels, numbers in tensorflow_data.dataset(loads, parts):
            yield Loaded(images.numpy(), labels.numpy(), numbers.numpy())


def load_tokens(loads: TokenLoads, accelerator: str) -> Iterator[LoadedTokens]:
    """Yield batches of token sequences; see :meth:`harness.loader.Loading.load_tokens`."""
    with tf.device("/CPU:0"):
        parts = _constants(tensorflow_data.token_arrays(loads))
        for tokens, numbers in tensorflow_data.token_dataset(loads, parts):
            yield LoadedTokens(tokens.numpy(), numbers.numpy())


settings = tensorflow_data.settings
