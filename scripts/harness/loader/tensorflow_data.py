"""Load images by tf.data, with TensorFlow's JPEG decoder and image operations: the common part of
TensorFlow 1 and 2, after their guides to input pipeline performance."""

from __future__ import annotations

import math
import os
from typing import Any, Dict, Tuple

import numpy as np
import tensorflow as tf

from harness.loader import AREA, DRAWS, RATIO, SHORTER, TRIES, Loads, Request, TokenLoads
from harness.loader.one_by_one import normalization

#: Numpy arrays or tensors by name, with a row for each sample.
Arrays = Dict[str, Any]
#: Relative position of a centred part, so that its offset is rounded down.
_MIDDLE = 0.5 - 1e-9


def arrays(loads: Request) -> Arrays:
    """Return the numpy arrays that :func:`dataset` takes. A token file is read into memory as a
    whole."""
    if isinstance(loads, TokenLoads):
        kept = {1: np.uint8, 2: np.uint16, 4: np.int32, 8: np.int64}  # tokens are positive
        read = np.fromfile(loads.path, np.dtype(loads.dtype).newbyteorder("<"))
        tokens = read.astype(kept[read.dtype.itemsize], copy=False)
        return {"start": loads.starts, "tokens": tokens}
    samples = {
        "path": np.array([os.fsencode(path) for path in loads.paths], object),
        "label": loads.labels,
    }
    if loads.draws is not None:
        samples.update(_drawn(loads.draws))
    return samples


def _drawn(draws: Any) -> Dict[str, Any]:
    """Return the part of :func:`harness.loader.crop` that needs no image.

    Arrays have a column for each try: share of the area, ratio, relative position. Positions have
    one more column, for the centre."""
    tries = draws[:, : 4 * TRIES].reshape(-1, TRIES, 4)
    part, shape, down, along = (tries[:, :, column] for column in range(4))
    low, high = (math.log(bound) for bound in RATIO)
    middle = np.full((len(draws), 1), _MIDDLE)
    return {
        "area": AREA[0] + part * (AREA[1] - AREA[0]),
        "ratio": np.exp(low + shape * (high - low)),
        "down": np.concatenate([down, middle], 1),
        "along": np.concatenate([along, middle], 1),
        "flip": (draws[:, DRAWS - 1] < 0.5).astype(np.int32),
    }


def dataset(loads: Request, parts: Arrays) -> Any:
    """Return a data set of batches: images and labels, or tokens.

    ``parts``: tensors of :func:`arrays`. Without workers nothing is prefetched."""

    def sample(part: Arrays) -> Tuple[Any, ...]:
        if not isinstance(loads, TokenLoads):
            return _image_and_label(loads, part)
        ids = parts["tokens"][part["start"] : part["start"] + loads.length]
        return (tf.ensure_shape(tf.cast(ids, tf.int64), (loads.length,)),)

    of_samples = {name: part for name, part in parts.items() if name != "tokens"}
    data = tf.data.Dataset.from_tensor_slices(of_samples)
    data = data.map(sample, loads.workers or None).batch(loads.batch)
    if loads.workers:
        data = data.prefetch(2)
    options = tf.data.Options()
    threads = "threading" if hasattr(options, "threading") else "experimental_threading"
    getattr(options, threads).private_threadpool_size = max(1, loads.workers)
    return data.with_options(options)


def settings(accelerator: str) -> Dict[str, Any]:
    """Return the settings of the loader for the record; see
    :meth:`harness.loader.Loading.loader_settings`."""
    return {
        "loader": "tf.data",
        "workers_are": "threads",
        "decoder": "tf.io.decode_jpeg, INTEGER_ACCURATE",
        "transforms": "tf.image",
        "interpolation": "bilinear, antialiased",
    }


def _image_and_label(loads: Loads, part: Dict[str, Any]) -> Tuple[Any, Any]:
    size, content = loads.size, tf.io.read_file(part["path"])
    # decodes exactly like Pillow; TensorFlow's default is faster and slightly off
    image = tf.io.decode_jpeg(content, channels=3, dct_method="INTEGER_ACCURATE")
    image = _centre(image, size) if loads.draws is None else _augmented(image, part, size)
    scale, offset = map(tf.constant, normalization(size))
    image = tf.ensure_shape(image * scale - offset, (size, size, 3))
    return image, part["label"]


def _rounded(value: Any) -> Any:
    return tf.cast(tf.round(value), tf.int32)


def _crop(height: Any, width: Any, part: Dict[str, Any]) -> Tuple[Any, Any, Any, Any]:
    """Compute :func:`harness.loader.crop` as operations; the centre is the last try, which always
    fits."""
    tall, wide = tf.cast(height, tf.float64), tf.cast(width, tf.float64)
    target = tall * wide * part["area"]
    most_tall = tf.where(wide < RATIO[0] * tall, _rounded(wide / RATIO[0]), height)
    most_wide = tf.where(wide > RATIO[1] * tall, _rounded(tall * RATIO[1]), width)
    last = [tf.maximum(most, 1) for most in (most_tall, most_wide)]
    heights = tf.concat([_rounded(tf.sqrt(target / part["ratio"])), last[:1]], 0)
    widths = tf.concat([_rounded(tf.sqrt(target * part["ratio"])), last[1:]], 0)
    fits = (widths > 0) & (widths <= width) & (heights > 0) & (heights <= height)
    first = tf.argmax(tf.cast(fits, tf.int32))
    own_height, own_width = heights[first], widths[first]
    room = tf.cast(height - own_height + 1, tf.float64)
    beside = tf.cast(width - own_width + 1, tf.float64)
    top = tf.cast(part["down"][first] * room, tf.int32)
    left = tf.cast(part["along"][first] * beside, tf.int32)
    return top, left, own_height, own_width


def _resized(image: Any, height: Any, width: Any) -> Any:
    """Resize to values rounded as in uint8, like other frameworks' loaders."""
    resize = tf.compat.v2.image.resize  # TensorFlow 1's own resize is not antialiased
    image = resize(image, (height, width), "bilinear", antialias=True)
    return tf.floor(image + 0.5)  # tf.round takes much longer


def _centre(image: Any, size: int) -> Any:
    """Compute :func:`harness.loader.centre` as operations, and crop."""
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


def _augmented(image: Any, part: Dict[str, Any], size: int) -> Any:
    top, left, height, width = _crop(tf.shape(image)[0], tf.shape(image)[1], part)
    image = tf.slice(image, tf.stack([top, left, 0]), tf.stack([height, width, 3]))
    image = _resized(image, size, size)
    return tf.reverse(image, tf.range(1, 1 + part["flip"]))  # flips along no axis, or left to right
