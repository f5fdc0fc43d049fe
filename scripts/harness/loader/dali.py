"""Load images by NVIDIA's DALI with its CPU operators, for any framework: NVIDIA's ResNet-50 calls
this ``dali-cpu``. :mod:`harness.loader.dali_gpu` decodes on the GPU.

Batches are numpy arrays and reach the framework like those of any loader. The harness's crops are
cut out while a file is decoded, as DALI's own ``image_random_crop`` does.

Source: NVIDIA DALI documentation, operators ``decoders.image``, ``decoders.image_slice``,
``resize``, ``crop_mirror_normalize``, ``external_source``; for a GPU, ``device="mixed"`` of the
decoders, whose output the other operators follow."""

from __future__ import annotations

import threading
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import numpy as np
import nvidia.dali
from nvidia.dali import fn, types

from harness.adapter import Unsupported
from harness.loader import DEVIATION, MEAN, Loaded, Loads, centre, content_of, crop, is_flipped
from harness.loader.encoded import size_of, whole_image

_SCALE = 255.0
OWN = threading.local()


def pixels(content: bytes, gpu: Optional[int] = None) -> Any:
    """Decode a JPEG file, uint8 (height, width, 3); see :class:`harness.loader.Loading`. ``gpu``:
    number of the GPU that decodes; None for the CPU."""
    if not hasattr(OWN, "decoder"):
        OWN.decoder = _built(
            1, 1, gpu, lambda: _decoded(fn.external_source(name="file"), gpu), ahead=False
        )
    file = _bytes(content)
    try:
        OWN.decoder.feed_input("file", [file])
        (images,) = OWN.decoder.run()
    except Exception:
        del OWN.decoder  # nothing else can be decoded by it
        raise
    return np.array(images.as_cpu().at(0))


def load(loads: Loads, accelerator: str) -> Iterator[Loaded]:
    """Yield batches of images; see :meth:`harness.loader.Loading.load`."""
    for images, labels, numbers in batches(loads):
        yield Loaded(np.array(images.as_array()), labels, numbers)


def batches(loads: Loads, gpu: Optional[int] = None) -> Iterator[Tuple[Any, Any, Any]]:
    """Yield images as DALI's list of tensors, with labels and positions.

    The images are complete, because ``run`` without a stream waits for them. They are valid while
    something refers to them, also by DLPack. ``gpu``: number of the GPU that decodes; None for the
    CPU. Raises :class:`Unsupported` for a DALI that reuses their memory at the next batch."""
    pipeline = _built(loads.batch, max(1, loads.workers), gpu, lambda: _samples(loads, gpu))
    if gpu is not None and not getattr(pipeline, "exec_dynamic", False):
        version = nvidia.dali.__version__
        raise Unsupported(f"DALI {version} overwrites images on the GPU: exec_dynamic is not set")
    while True:
        try:
            images, labels, numbers = pipeline.run()
        except StopIteration:
            return
        yield images, np.array(labels.as_array()), np.array(numbers.as_array())


def settings(accelerator: str, operators: str = "CPU") -> Dict[str, Any]:
    """Return the settings of the loader for the record; see
    :meth:`harness.loader.Loading.loader_settings`."""
    return {
        "loader": f"nvidia.dali {nvidia.dali.__version__}, operators for the {operators}",
        "workers_are": "threads",
        "decoder": "nvidia.dali.fn.decoders",
        "interpolation": "bilinear, antialiased",
    }


def _built(
    batch: int, threads: int, gpu: Optional[int], define: Callable[[], Any], ahead: bool = True
) -> Any:
    """Return a built pipeline. ``ahead``: it makes batches before they are requested."""
    pipeline = nvidia.dali.Pipeline(
        batch,
        threads,
        gpu,
        exec_async=ahead,
        exec_pipelined=ahead,
        prefetch_queue_depth=2 if ahead else 1,
    )
    with pipeline:
        outputs = define()
        pipeline.set_outputs(*(outputs if isinstance(outputs, tuple) else (outputs,)))
    pipeline.build()
    return pipeline


def _samples(loads: Loads, gpu: Optional[int]) -> Tuple[Any, Any, Any]:
    """Return images, labels and positions of each batch."""
    count = 1 if loads.decodes_only else 3 if loads.draws is None else 4
    labels, numbers, *arguments = fn.external_source(
        source=_batches(loads), num_outputs=2 + count, batch=True
    )
    return _images(loads, gpu, *arguments), labels, numbers


def _batches(loads: Loads) -> Iterator[Tuple[List[Any], ...]]:
    for first in range(0, len(loads.paths), loads.batch):
        numbers = range(first, min(first + loads.batch, len(loads.paths)))
        samples = [
            (np.int64(loads.labels[number]), np.int64(number), *_arguments(loads, number))
            for number in numbers
        ]
        yield tuple(list(values) for values in zip(*samples))


def _arguments(loads: Loads, number: int) -> Tuple[Any, ...]:
    """Return the file, and in validation the size to resize to and the centre's top and left; in
    training the crop's top and left, height and width, and whether it is mirrored."""
    content = content_of(loads.paths[number])
    if loads.decodes_only:
        return (_bytes(content),)
    if loads.draws is None:
        tall, wide, top, left = centre(*size_of(content), loads.size)
        return _bytes(content), _pair(tall, wide).astype(np.float32), _pair(top, left)
    draws = loads.draws[number]
    top, left, tall, wide = crop(*size_of(content), draws)
    return _bytes(content), _pair(top, left), _pair(tall, wide), np.int32(is_flipped(draws))


def _images(loads: Loads, gpu: Optional[int], files: Any, *arguments: Any) -> Any:
    """Return the images of a batch, from what :func:`_arguments` gives of each."""
    side = (loads.size, loads.size)
    if loads.decodes_only:
        pixel = fn.slice(_decoded(files, gpu), start=(0, 0), shape=(1, 1), axes=(0, 1))
        return fn.reshape(fn.cast(pixel, dtype=types.FLOAT), shape=(3,), layout="")
    if loads.draws is None:
        resized, start = arguments
        images = fn.resize(_decoded(files, gpu), size=resized, antialias=True)
        return _normalised(fn.slice(images, start=start, shape=side, axes=(0, 1)), 0)
    start, shape, flip = arguments
    images = fn.decoders.image_slice(
        files, start, shape, axis_names="HW", normalized_anchor=False, normalized_shape=False,
        device=_device(gpu), output_type=types.RGB, adjust_orientation=False,
    )  # fmt: skip
    return _normalised(fn.resize(images, size=side, antialias=True), flip)


def _device(gpu: Optional[int]) -> str:
    """Return the device of a decoder; ``mixed`` takes files on the host and decodes on the GPU."""
    return "cpu" if gpu is None else "mixed"


def _decoded(files: Any, gpu: Optional[int]) -> Any:
    return fn.decoders.image(
        files, device=_device(gpu), output_type=types.RGB, adjust_orientation=False
    )


def _normalised(images: Any, flip: Any) -> Any:
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


def _bytes(content: bytes) -> Any:
    """Return the bytes of a whole file; DALI's decoder would fill up a truncated one."""
    return np.frombuffer(whole_image(content), np.uint8)
