"""Load images by NVIDIA's DALI with its CPU operators, for any framework: NVIDIA's ResNet-50 calls
this ``dali-cpu``.

Batches are numpy arrays and reach the framework like those of any loader. The harness's crops are
cut out while a file is decoded, as DALI's own ``image_random_crop`` does.

Source: NVIDIA DALI documentation, operators ``decoders.image``, ``decoders.image_slice``,
``resize``, ``crop_mirror_normalize``, ``external_source``."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Tuple

import numpy as np
import nvidia.dali
from nvidia.dali import fn, types

from harness.loader import (
    DEVIATION,
    MEAN,
    Loads,
    centre,
    content_of,
    crop,
    extents_of,
    is_flipped,
    whole_image,
)

_SCALE = 255.0


def load(loads: Loads, accelerator: str) -> Iterator[Tuple[Any, Any]]:
    """Yield images and labels; see :meth:`harness.loader.Loading.load`."""
    pipeline = nvidia.dali.Pipeline(loads.batch, max(1, loads.workers), None)
    with pipeline:
        labels, *arguments = fn.external_source(
            source=_batches(loads), num_outputs=4 if loads.draws is None else 5, batch=True
        )
        pipeline.set_outputs(_images(loads, *arguments), labels)
    pipeline.build()
    while True:
        try:
            images, labels = pipeline.run()
        except StopIteration:
            return
        yield np.array(images.as_array()), np.array(labels.as_array())


def settings(accelerator: str) -> Dict[str, Any]:
    """Return the settings of the loader for the record; see
    :meth:`harness.loader.Loading.loader_settings`."""
    return {
        "loader": f"nvidia.dali {nvidia.dali.__version__}, operators for the CPU",
        "workers_are": "threads",
        "decoder": "nvidia.dali.fn.decoders",
        "interpolation": "bilinear, antialiased",
    }


def _batches(loads: Loads) -> Iterator[Tuple[List[Any], ...]]:
    for first in range(0, len(loads.paths), loads.batch):
        numbers = range(first, min(first + loads.batch, len(loads.paths)))
        samples = [
            (np.int64(loads.labels[number]), *_arguments(loads, number)) for number in numbers
        ]
        yield tuple(list(values) for values in zip(*samples))


def _arguments(loads: Loads, number: int) -> Tuple[Any, ...]:
    """Return the file, and in validation the size to resize to and the centre's top and left; in
    training the crop's top and left, height and width, and whether it is mirrored. Raises
    ValueError for a truncated file, which DALI's decoder would fill up."""
    content = whole_image(content_of(loads.paths[number]))
    file = np.frombuffer(content, np.uint8)
    if loads.draws is None:
        tall, wide, top, left = centre(*extents_of(content), loads.size)
        return file, _pair(tall, wide).astype(np.float32), _pair(top, left)
    draws = loads.draws[number]
    top, left, tall, wide = crop(*extents_of(content), draws)
    return file, _pair(top, left), _pair(tall, wide), np.int32(is_flipped(draws))


def _images(loads: Loads, files: Any, *arguments: Any) -> Any:
    """Return the images of a batch, from the result of :func:`_arguments` for each image."""
    side, flip = (loads.size, loads.size), 0
    options = {"device": "cpu", "output_type": types.RGB, "adjust_orientation": False}
    if loads.draws is None:
        resized, start = arguments
        images = fn.resize(fn.decoders.image(files, **options), size=resized, antialias=True)
        images = fn.slice(images, start=start, shape=side, axes=(0, 1))
    else:
        start, shape, flip = arguments
        images = fn.decoders.image_slice(
            files, start, shape, axis_names="HW", normalized_anchor=False,
            normalized_shape=False, **options,
        )  # fmt: skip
        images = fn.resize(images, size=side, antialias=True)
    return fn.crop_mirror_normalize(
        images,
        mirror=flip,
        dtype=types.FLOAT,
        output_layout="HWC",
        mean=[_SCALE * value for value in MEAN],
        std=[_SCALE * value for value in DEVIATION],
    )


def _pair(first: int, second: int) -> Any:
    return np.array([first, second], np.int32)
