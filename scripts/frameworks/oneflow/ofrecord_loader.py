"""Images from OFRecord: OneFlow's own reader and decoder, as in its ResNet-50, and Pillow's
transforms. OneFlow's own random crop is not used, because it draws by itself and accepts no given
crops.

Threads of OneFlow read ahead and decode, without waiting for Python. OneFlow would end the process
for a missing file, so each is opened first and OneFlow reads the open file."""

from __future__ import annotations

import collections
import contextlib
import functools
import io
import os
import struct
import tempfile
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Deque, Dict, Iterator, Sequence, Tuple

import oneflow
from harness.loader import Loaded, Loads, ofrecords, one_by_one, pillow, sequential
from oneflow.core.record.record_pb2 import OFRecord
from PIL import Image

#: Batches that are begun before one is waited for, where there are workers.
_AHEAD = 2
#: Digits of a file's number.
_DIGITS = 5


@contextlib.contextmanager
def _reading(files: Sequence[str], batch: int) -> Iterator[Callable[[], Any]]:
    """Return a function that reads the next ``batch`` records of the ``files`` in order, over
    and over. Raises OSError."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        for number, file in enumerate(files):
            opened = stack.enter_context(open(file, "rb"))
            path = os.path.join(folder, f"{ofrecords.PART}{number:0{_DIGITS}d}")
            os.symlink(f"/proc/{os.getpid()}/fd/{opened.fileno()}", path)
        reader = [oneflow.nn.OFRecordReader(folder, batch, len(files), ofrecords.PART, _DIGITS)]
        try:
            yield lambda: reader[0]()
        finally:
            # before the files are closed: its thread opens them anew for as long as it is there
            oneflow._oneflow_internal.eager.Sync()
            reader.clear()


def _decoded(loads: Loads) -> Iterator[Tuple[Any, int]]:
    """Yield pixels, uint8 (height, width, 3), and label of each sample that is asked for, and of
    what fills the last batch up. Where records between them are not, or such as would fill it up,
    they are read one by one: nothing else keeps OneFlow from decoding them all, and from ending the
    process at a bad one."""
    read = sequential.read_of(loads.paths)
    totals = [len(ofrecords.frames_of(file)[0]) for file in read.files]
    selected = sequential.to_the_end(read, totals).selected
    filled = len(selected) % loads.batch == 0 or read.counts[-1] == totals[-1]
    batch = loads.batch if all(selected) and filled else 1
    decoder = oneflow.nn.OFRecordImageDecoder(ofrecords.IMAGE, color_space="RGB")
    labels = oneflow.nn.OFRecordRawDecoder(ofrecords.LABEL, shape=(), dtype=oneflow.int32)
    ahead = _AHEAD * loads.batch if loads.workers else 0
    begun: Deque[Tuple[Any, Any]] = collections.deque()

    def ended() -> Iterator[Tuple[Any, int]]:
        pixels, numbers = begun.popleft()
        return zip(pixels.numpy(), numbers.numpy().tolist())

    with _reading(read.files, batch) as reader:
        for first in range(0, len(selected), batch):
            record = reader()
            if selected[first]:
                begun.append((decoder(record), labels(record)))
            while len(begun) * batch > ahead:
                yield from ended()
        while begun:
            yield from ended()


def load(loads: Loads, accelerator: str) -> Iterator[Loaded]:
    """Yield batches of images; see :meth:`harness.loader.Loading.load`."""
    images = pillow.PillowImages(loads)
    waiting: Deque[Callable[[], Any]] = collections.deque()
    ahead = _AHEAD * loads.batch if loads.workers else 0

    def whole() -> Loaded:
        count = min(loads.batch, len(waiting))
        return Loaded(*one_by_one.stacked([waiting.popleft()() for _ in range(count)]))

    with ThreadPoolExecutor(max(1, loads.workers)) as pool:
        for number, (pixels, label) in zip(range(len(loads.paths)), _decoded(loads)):
            work = functools.partial(_sample, images, pixels, label, number)
            waiting.append(pool.submit(work).result if loads.workers else work)
            if len(waiting) == loads.batch + ahead:
                yield whole()
        while waiting:
            yield whole()


def _sample(images: Any, pixels: Any, label: int, number: int) -> Tuple[Any, int, int]:
    image, _, _ = images.sample(Image.fromarray(pixels), number)
    return image, label, number


def pixels(content: bytes) -> Any:
    """Decode a JPEG file, see :class:`harness.loader.Loading`.

    Files that Pillow cannot decode are not passed to OneFlow."""
    ofrecords.check(content)
    pillow.decode(io.BytesIO(content))
    message = OFRecord()
    message.feature[ofrecords.IMAGE].bytes_list.value.append(content)
    record = message.SerializeToString()
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, f"{ofrecords.PART}0")
        with open(file, "wb") as stream:
            stream.write(struct.pack("<Q", len(record)) + record)
        decoder = oneflow.nn.OFRecordImageDecoder(ofrecords.IMAGE, color_space="RGB")
        with _reading([file], 1) as reader:
            return decoder(reader()).numpy()[0]


def settings(accelerator: str) -> Dict[str, Any]:
    """Return the settings of the loader for the record; see
    :meth:`harness.loader.Loading.loader_settings`."""
    return {
        "loader": "oneflow.nn.OFRecordReader",
        "workers_are": "threads, beside OneFlow's own, which decode",
        "decoder": "oneflow.nn.OFRecordImageDecoder, OpenCV",
        "transforms": "Pillow",
        "interpolation": pillow.settings()["interpolation"],
    }
