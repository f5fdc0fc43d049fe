"""Images and tokens from files: tf.data with TensorFlow's own JPEG decoder and image operations, as
its guide to the performance of input pipelines has them."""

from __future__ import annotations

from typing import Any, Iterator

import tensorflow as tf
from harness.loader import Request, tensorflow_data


def load(loads: Request, accelerator: str) -> Iterator[Any]:
    """Yield batches; see :meth:`harness.loader.Loading.load`. Without workers nothing is
    prefetched."""
    with tf.device("/CPU:0"):
        arrays = tensorflow_data.arrays(loads)
        parts = {name: tf.constant(array) for name, array in arrays.items()}
        for batch in tensorflow_data.dataset(loads, parts):
            yield [tensor.numpy() for tensor in batch]


settings = tensorflow_data.settings
