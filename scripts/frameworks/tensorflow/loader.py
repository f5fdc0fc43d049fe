"""Images from files: tf.data with TensorFlow's own JPEG decoder and image operations, as its guide
to the performance of input pipelines has them."""

from __future__ import annotations

import math
from typing import Any, Dict, Iterator, Tuple

import tensorflow as tf
from harness.loader import AREA, DEVIATION, DRAWS, MEAN, RATIO, SHORTER, TRIES, Loaded, Loads


def decode(content: Any) -> Any:
    """The bytes of a file as uint8 (height, width, 3). By default TensorFlow's decoder is quick and
    up to some levels off; this is what Pillow and others do."""
    return tf.io.decode_jpeg(content, channels=3, dct_method="INTEGER_ACCURATE")


def _rounded(value: Any) -> Any:
    return tf.cast(tf.round(value), tf.int32)


def _crop(height: Any, width: Any, draws: Any) -> Tuple[Any, Any, Any, Any]:
    """:func:`harness.loader.crop` as operations."""
    tall, wide = tf.cast(height, tf.float64), tf.cast(width, tf.float64)
    part, shape, down, along = tf.unstack(tf.reshape(draws[: 4 * TRIES], (TRIES, 4)), axis=1)
    target = tall * wide * (AREA[0] + part * (AREA[1] - AREA[0]))
    low, high = (math.log(bound) for bound in RATIO)
    ratio = tf.exp(low + shape * (high - low))
    heights, widths = _rounded(tf.sqrt(target / ratio)), _rounded(tf.sqrt(target * ratio))
    fits = (widths > 0) & (widths <= width) & (heights > 0) & (heights <= height)

    def drawn() -> Tuple[Any, Any, Any, Any]:
        first = tf.argmax(tf.cast(fits, tf.int32))
        own_height, own_width = heights[first], widths[first]
        room = tf.cast(height - own_height + 1, tf.float64)
        beside = tf.cast(width - own_width + 1, tf.float64)
        top, left = tf.cast(down[first] * room, tf.int32), tf.cast(along[first] * beside, tf.int32)
        return top, left, own_height, own_width

    def middle() -> Tuple[Any, Any, Any, Any]:
        own_height = tf.where(wide < RATIO[0] * tall, _rounded(wide / RATIO[0]), height)
        own_width = tf.where(wide > RATIO[1] * tall, _rounded(tall * RATIO[1]), width)
        own_height, own_width = tf.maximum(own_height, 1), tf.maximum(own_width, 1)
        return (height - own_height) // 2, (width - own_width) // 2, own_height, own_width

    return tf.cond(tf.reduce_any(fits), drawn, middle)


def _resized(image: Any, height: Any, width: Any) -> Any:
    """Levels as uint8 has them, so that they are rounded as by others."""
    image = tf.image.resize(image, (height, width), "bilinear", antialias=True)
    return tf.clip_by_value(tf.round(image), 0.0, 255.0)


def _centre(image: Any, size: int) -> Any:
    """:func:`harness.loader.centre` as operations, and what it is of."""
    height, width = tf.shape(image)[0], tf.shape(image)[1]
    shorter = round(size * SHORTER)
    length = tf.cast(tf.maximum(height, width), tf.float64)
    least = tf.cast(tf.minimum(height, width), tf.float64)
    longer = tf.maximum(shorter, tf.cast(shorter * length / least, tf.int32))
    tall = tf.where(height <= width, shorter, longer)
    wide = tf.where(height <= width, longer, shorter)
    image = _resized(image, tall, wide)
    top = _rounded(tf.cast(tall - size, tf.float64) / 2)
    left = _rounded(tf.cast(wide - size, tf.float64) / 2)
    return tf.slice(image, tf.stack([top, left, 0]), (size, size, 3))


def _augmented(image: Any, draws: Any, size: int) -> Any:
    top, left, height, width = _crop(tf.shape(image)[0], tf.shape(image)[1], draws)
    image = tf.slice(image, tf.stack([top, left, 0]), tf.stack([height, width, 3]))
    image = _resized(image, size, size)
    return tf.cond(draws[DRAWS - 1] < 0.5, lambda: tf.reverse(image, [1]), lambda: image)


def load(asked: Loads, accelerator: str) -> Iterator[Loaded]:
    """See :meth:`harness.loader.Loading.load`. Without workers nothing is done ahead."""
    size, count = asked.size, len(asked.paths)
    parts: Dict[str, Any] = {
        "path": tf.constant(list(asked.paths)),
        "label": tf.constant(asked.labels),
        "number": tf.range(count, dtype=tf.int64),
    }
    if asked.draws is not None:
        parts["draws"] = tf.constant(asked.draws, tf.float64)

    def read(part: Dict[str, Any]) -> Tuple[Any, Any, Any]:
        image = decode(tf.io.read_file(part["path"]))
        if asked.decodes_only:
            return tf.cast(image[0, 0], tf.float32), part["label"], part["number"]
        if asked.draws is None:
            image = _centre(image, size)
        else:
            image = _augmented(image, part["draws"], size)
        image = (image / 255.0 - tf.constant(MEAN)) / tf.constant(DEVIATION)
        return tf.ensure_shape(image, (size, size, 3)), part["label"], part["number"]

    data = tf.data.Dataset.from_tensor_slices(parts)
    data = data.map(read, num_parallel_calls=asked.workers or None, deterministic=True)
    data = data.batch(asked.batch)
    if asked.workers:
        data = data.prefetch(2)
    options = tf.data.Options()
    options.threading.private_threadpool_size = max(1, asked.workers)
    with tf.device("/CPU:0"):
        for images, labels, numbers in data.with_options(options):
            yield Loaded(images.numpy(), labels.numpy(), numbers.numpy())


def pixels(path: str) -> Any:
    """See :meth:`harness.loader.Loading.decode_file`."""
    with tf.device("/CPU:0"):
        return decode(tf.io.read_file(path)).numpy()


def settings(accelerator: str) -> Dict[str, Any]:
    """See :meth:`harness.loader.Loading.loader_settings`."""
    return {
        "loader": "tf.data",
        "workers_are": "threads",
        "decoder": "tf.io.decode_jpeg, INTEGER_ACCURATE",
        "transforms": "tf.image",
        "interpolation": "bilinear, antialiased",
    }
