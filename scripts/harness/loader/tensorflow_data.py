"""Images by tf.data, with TensorFlow's own JPEG decoder and image operations: what TensorFlow 1 and
2 have alike. Their guides to the performance of input pipelines have it so.

Record files are read from their beginning, as tf.data does, and in the order that is asked for.
"""

from __future__ import annotations

import itertools
import math
import os
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

import numpy as np
import tensorflow as tf

from harness.loader import (
    AREA,
    DEVIATION,
    DRAWS,
    MEAN,
    RATIO,
    SHORTER,
    TFRECORD,
    TRIES,
    Loads,
    TokenLoads,
)
from harness.loader.records import IMAGE, LABEL


def decode(content: Any) -> Any:
    """The bytes of a file as uint8 (height, width, 3). By default TensorFlow's decoder is quick and
    up to some levels off; this is what Pillow and others do."""
    return tf.io.decode_jpeg(content, channels=3, dct_method="INTEGER_ACCURATE")


def arrays(asked: Loads) -> Dict[str, Any]:
    """What :func:`dataset` is given of each sample, as numpy arrays (samples, ..)."""
    found = {
        "path": np.array([os.fsencode(path) for path in asked.paths], object),
        "label": asked.labels,
        "number": np.arange(len(asked.paths), dtype=np.int64),
    }
    if asked.draws is not None:
        found["draws"] = asked.draws
    return found


def dataset(asked: Loads, parts: Dict[str, Any]) -> Any:
    """Batches of images, labels and numbers, as :class:`harness.loader.Loaded` has them. ``parts``:
    tensors of :func:`arrays`. Without workers nothing is done ahead."""
    data = tf.data.Dataset.from_tensor_slices(parts)
    how = asked.workers or None
    if asked.format == TFRECORD:
        data = tf.data.Dataset.zip((_records(asked.paths), data))
        data = data.map(lambda record, part: _of_record(asked, record, part), how)
    else:
        data = data.map(lambda part: _of_file(asked, part), how)
    return _batched(data, asked.batch, asked.workers)


#: Of the file's numbers, by their bytes; a token is positive, with a sign or without.
_TOKENS = {1: tf.uint8, 2: tf.uint16, 4: tf.int32, 8: tf.int64}


def token_dataset(asked: TokenLoads, starts: Any) -> Any:
    """Batches of tokens and numbers, as :class:`harness.loader.LoadedTokens` has them. ``starts``:
    the tensor of those asked for. A file of numbers lies in memory as a whole; records are read
    from the beginning of their file."""
    number = tf.data.Dataset.from_tensor_slices(np.arange(len(asked.starts), dtype=np.int64))
    if asked.records:
        data = tf.data.Dataset.zip((_records(asked.records), number))
        data = data.map(lambda record, number: (_row(asked, record), number), asked.workers or None)
        return _batched(data, asked.batch, asked.workers)
    length = asked.length
    tokens = tf.io.decode_raw(tf.io.read_file(asked.path), _TOKENS[np.dtype(asked.dtype).itemsize])

    def sequence(start: Any, number: Any) -> Tuple[Any, Any]:
        found = tf.cast(tokens[start : start + length], tf.int64)
        return tf.ensure_shape(found, (length,)), number

    data = tf.data.Dataset.zip((tf.data.Dataset.from_tensor_slices(starts), number))
    data = data.map(sequence, asked.workers or None)
    return _batched(data, asked.batch, asked.workers)


def _row(asked: TokenLoads, record: Any) -> Any:
    """The numbers of a record's features, one behind the other."""
    each = {name: tf.io.FixedLenFeature((count,), tf.int64) for name, count in asked.features}
    found = tf.io.parse_single_example(record, each)
    return tf.concat([found[name] for name, _ in asked.features], 0)


def _batched(data: Any, batch: int, workers: int) -> Any:
    data = data.batch(batch)
    if workers:
        data = data.prefetch(2)
    options = tf.data.Options()
    threads = "threading" if hasattr(options, "threading") else "experimental_threading"
    getattr(options, threads).private_threadpool_size = max(1, workers)
    return data.with_options(options)


def settings() -> Dict[str, Any]:
    """See :meth:`harness.loader.Loading.loader_settings`."""
    return {
        "loader": "tf.data",
        "workers_are": "threads",
        "decoder": "tf.io.decode_jpeg, INTEGER_ACCURATE",
        "transforms": "tf.image",
        "interpolation": "bilinear, antialiased",
    }


class Read(NamedTuple):
    """What is read of record files in their turn. ``files``; ``counts``: records from the beginning
    of each; ``wanted``: of all these, whether each is asked for."""

    files: List[str]
    counts: List[int]
    wanted: List[bool]


def read_of(paths: Sequence[str]) -> Read:
    """``paths``: FILE/NUMBER of each record, those of a file together and upwards."""
    found = Read([], [], [])
    for file, pairs in itertools.groupby(map(os.path.split, paths), lambda pair: pair[0]):
        numbers = [int(number) for _, number in pairs]
        assert numbers == sorted(numbers), "a file is read from its beginning"
        asked = set(numbers)
        found.files.append(file)
        found.counts.append(numbers[-1] + 1)
        found.wanted.extend(number in asked for number in range(numbers[-1] + 1))
    return found


def _records(paths: Sequence[str]) -> Any:
    read = read_of(paths)
    files = np.array([os.fsencode(file) for file in read.files], object)
    each = tf.data.Dataset.from_tensor_slices((files, np.array(read.counts, np.int64)))
    data = each.flat_map(lambda file, count: tf.data.TFRecordDataset(file).take(count))
    if all(read.wanted):
        return data
    wanted = tf.constant(read.wanted)
    chosen = data.enumerate().filter(lambda number, record: tf.gather(wanted, number))
    return chosen.map(lambda number, record: record)


def _of_file(asked: Loads, part: Dict[str, Any]) -> Tuple[Any, Any, Any]:
    image = _sample(asked, decode(tf.io.read_file(part["path"])), part)
    return image, part["label"], part["number"]


def _of_record(asked: Loads, record: Any, part: Dict[str, Any]) -> Tuple[Any, Any, Any]:
    one = {IMAGE: tf.io.FixedLenFeature((), tf.string), LABEL: tf.io.FixedLenFeature((), tf.int64)}
    found = tf.io.parse_single_example(record, one)
    return _sample(asked, decode(found[IMAGE]), part), found[LABEL], part["number"]


def _sample(asked: Loads, image: Any, part: Dict[str, Any]) -> Any:
    if asked.decodes_only:
        return tf.cast(image[0, 0], tf.float32)
    size = asked.size
    random = asked.draws is not None
    image = _augmented(image, part["draws"], size) if random else _centre(image, size)
    image = (image / 255.0 - tf.constant(MEAN)) / tf.constant(DEVIATION)
    return tf.ensure_shape(image, (size, size, 3))


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

    found: Tuple[Any, Any, Any, Any] = tf.cond(tf.reduce_any(fits), drawn, middle)
    return found


def _resized(image: Any, height: Any, width: Any) -> Any:
    """Levels as uint8 has them, so that they are rounded as by others."""
    resize = tf.compat.v2.image.resize  # TensorFlow 1's own is not antialiased
    image = resize(image, (height, width), "bilinear", antialias=True)
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
