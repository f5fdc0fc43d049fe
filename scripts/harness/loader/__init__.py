"""What a framework brings to read samples from files: the loader that it recommends itself.

What is loaded, in which order and by which crops, the harness says, the same for all frameworks;
how it is done is the framework's business. Standard library and numpy; Python 3.7 to 3.13.
"""

from __future__ import annotations

import importlib
import math
import multiprocessing
import os
from typing import Any, ClassVar, Dict, Iterator, NamedTuple, Sequence, Tuple

from core.inputs import DALI

from harness.adapter import Capability, Unsupported
from harness.loader import features, ofrecords, records
from harness.loader.workers import watched

#: Of the channels red, green and blue, on a scale from 0 to 1: those of ImageNet, as torchvision
#: and NVIDIA's ResNet-50 have them.
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
#: Of a random crop: its part of the area, its width over its height, how often it is drawn.
AREA, RATIO, TRIES = (0.08, 1.0), (3 / 4, 4 / 3), 10
#: Numbers that a sample's crop is drawn by: four for each try, and one for the flip.
DRAWS = 4 * TRIES + 1
#: The shorter side in validation over the side of the centre that is cut out: 256 over 224.
SHORTER = 256 / 224
#: What samples lie in: images in a folder of each class, or records of one or more files.
FOLDER, TFRECORD, RECORDIO = "folder", features.TFRECORD, "recordio"
OFRECORD = features.OFRECORD
#: Those of them whose records a loader reads from the beginning of their file.
SEQUENTIAL = (TFRECORD, OFRECORD)
_CALLED = {
    FOLDER: "folders of image files",
    TFRECORD: "TFRecord",
    RECORDIO: "RecordIO",
    OFRECORD: "OFRecord",
}


class Loads(NamedTuple):
    """What is to be loaded, in this order. ``paths``: of JPEG files, or FILE/NUMBER of records,
    which in formats of SEQUENTIAL lie together and upwards; ``labels``: int64 (samples,);
    ``draws``: float64 (samples, DRAWS) from 0 to 1, None in validation; ``batch``: samples of each
    batch, of which the last may have fewer; ``size``: pixels of a side; ``workers``: processes or
    threads beside the one that asks; ``decodes_only``: the files are read and decoded to RGB, and
    nothing else; of each image one pixel is given on; ``format``: FOLDER, RECORDIO or one of
    SEQUENTIAL."""

    paths: Sequence[str]
    labels: Any
    draws: Any
    batch: int
    size: int
    workers: int
    decodes_only: bool = False
    format: str = FOLDER


class Loaded(NamedTuple):
    """A batch as the loader gives it, of arrays that numpy takes without a copy where that can be.
    ``images``: float32 (batch, size, size, 3), normalised; ``labels``: int64 (batch,); ``numbers``:
    int64 (batch,), the place of each sample in what was asked for."""

    images: Any
    labels: Any
    numbers: Any


class TokenLoads(NamedTuple):
    """Sequences of tokens, in this order. ``path``: of a file of whole numbers of the type
    ``dtype``, little-endian, and nothing else; ``starts``: int64 (samples,), the place of the first
    token of each; ``length``: tokens of each; ``batch``, ``workers``: as of :class:`Loads`.

    Or ``records``, FILE/NUMBER, that lie together and upwards as of :class:`Loads`: a sequence is
    the numbers of the ``features`` (name and count) one behind the other, ``length`` in all;
    ``format``: TFRECORD or OFRECORD; ``path`` is the folder, ``starts`` counts them."""

    path: str
    dtype: str
    starts: Any
    length: int
    batch: int
    workers: int
    records: Sequence[str] = ()
    features: Sequence[Tuple[str, int]] = ()
    format: str = ""


class LoadedTokens(NamedTuple):
    """A batch as the loader gives it. ``tokens``: int64 (batch, length); ``numbers``: int64
    (batch,), the place of each sequence in what was asked for."""

    tokens: Any
    numbers: Any


class Loading(Capability):
    """Samples come through the loader that the framework recommends: the module ``loader`` in its
    folder, with the functions ``load``, ``load_tokens``, ``pixels`` (of the bytes of a JPEG file)
    and ``settings``, as the methods here have them; ``FORMATS`` where it reads more images than
    folders of files, ``TOKEN_FORMATS`` where it does not read all records of tokens, ``MODULES``
    where another module beside it reads images of a format. They are called behind :meth:`start`,
    without :meth:`build`."""

    LACKING: ClassVar[str] = "brings no loader of files here"

    def _loader(self, form: str = FOLDER) -> Any:
        """Raises :class:`Unsupported` where something is missing that it imports."""
        package = type(self).__module__.rpartition(".")[0]
        try:
            if self.case.input == DALI:
                return importlib.import_module("harness.loader.dali")
            usual = importlib.import_module(f"{package}.loader")
            other = getattr(usual, "MODULES", {}).get(form)
            return importlib.import_module(f"{package}.{other}") if other else usual
        except ImportError as error:
            name = error.name or error
            if self.case.input == DALI:
                what = f"{name} is missing, of nvidia-dali-cuda120 or nvidia-dali-cuda130"
                raise Unsupported(f"its environment has no DALI: {what}") from None
            raise Unsupported(f"{self._whose} needs {name}, which is not there") from None

    @property
    def _whose(self) -> str:
        """The loader, in words."""
        return "DALI" if self.case.input == DALI else f"{self.case.framework}'s loader"

    def load(self, asked: Loads) -> Iterator[Loaded]:
        """Each sample once, in the order asked for. In training it is cropped at random
        (:func:`crop`), resized to the size bilinearly, flipped where :func:`is_flipped` says so,
        and normalised; in validation (:func:`centre`) resized and its centre cut out. Grey and CMYK
        become RGB. Raises whatever reading and decoding raise, and
        :class:`harness.loader.workers.WorkerLost`."""
        formats = getattr(self._loader(), "FORMATS", (FOLDER,))
        if asked.format not in formats:
            known = " and ".join(_CALLED[name] for name in formats)
            found = _CALLED[asked.format]
            raise Unsupported(f"{self._whose} reads {known} here, not {found}")
        _shorten_sockets()
        loader, accelerator = self._loader(asked.format), self.rank_context.accelerator
        given: Iterator[Loaded] = loader.load(asked, accelerator)
        return watched(given) if asked.workers else given

    def load_tokens(self, asked: TokenLoads) -> Iterator[LoadedTokens]:
        """Each sequence once, in the order asked for. Raises as :meth:`load`."""
        if self.case.input == DALI:
            raise Unsupported("DALI reads images here, no tokens")
        loader, accelerator = self._loader(), self.rank_context.accelerator
        readable = getattr(loader, "TOKEN_FORMATS", (TFRECORD, OFRECORD))
        if asked.format and asked.format not in readable:
            known = " and ".join(_CALLED[name] for name in readable)
            raise Unsupported(
                f"{self._whose} reads records of {known} here, not {_CALLED[asked.format]}"
            )
        _shorten_sockets()
        given: Iterator[LoadedTokens] = loader.load_tokens(asked, accelerator)
        return watched(given) if asked.workers else given

    def decode_file(self, path: str) -> Any:
        """The pixels of a file, or of a record FILE/NUMBER, as :meth:`load` decodes them: a numpy
        array of uint8 (height, width, 3). Called from several threads. Raises what is wrong with
        it."""
        of_oneflow = ofrecords.is_part(os.path.dirname(path))
        return self._loader(OFRECORD if of_oneflow else FOLDER).pixels(content_of(path))

    def loader_settings(self, form: str = FOLDER) -> Dict[str, Any]:
        """What the loader is, of images in this format or of tokens, and how it is set up: JSON
        values, for the record."""
        settings: Dict[str, Any] = self._loader(form).settings(self.rank_context.accelerator)
        return settings


def _shorten_sockets() -> None:
    """Worker processes hand batches over through sockets that :mod:`multiprocessing` makes in the
    temporary folder, and the kernel allows 107 bytes for the path of one. Where that is longer a
    worker says nothing, and whoever asks waits. A rank's working folder is its own and is
    temporary, too, and its workers share it: relative to that, paths are short."""
    multiprocessing.current_process()._config["tempdir"] = "."  # type: ignore[attr-defined]


def crop(height: int, width: int, draws: Sequence[float]) -> Tuple[int, int, int, int]:
    """Top, left, height and width of a random crop of an image, as torchvision's RandomResizedCrop
    draws it: the first try that fits, else the largest centre whose ratio is allowed."""
    area = height * width
    low, high = (math.log(bound) for bound in RATIO)
    for number in range(TRIES):
        part, shape, down, along = draws[4 * number : 4 * number + 4]
        target = area * (AREA[0] + part * (AREA[1] - AREA[0]))
        ratio = math.exp(low + shape * (high - low))
        tall, wide = round(math.sqrt(target / ratio)), round(math.sqrt(target * ratio))
        if 0 < wide <= width and 0 < tall <= height:
            return int(down * (height - tall + 1)), int(along * (width - wide + 1)), tall, wide
    tall, wide = height, width
    if width < RATIO[0] * height:
        tall = max(1, round(width / RATIO[0]))
    elif width > RATIO[1] * height:
        wide = max(1, round(height * RATIO[1]))
    return (height - tall) // 2, (width - wide) // 2, tall, wide


def is_flipped(draws: Sequence[float]) -> bool:
    """Whether an image is mirrored, left to right: every second one."""
    return bool(draws[DRAWS - 1] < 0.5)


def centre(height: int, width: int, size: int) -> Tuple[int, int, int, int]:
    """Height and width that an image is resized to in validation, then top and left of the square
    that is cut out of its centre."""
    shorter = round(size * SHORTER)
    if height <= width:
        tall, wide = shorter, max(shorter, int(shorter * width / height))
    else:
        tall, wide = max(shorter, int(shorter * height / width)), shorter
    return tall, wide, round((tall - size) / 2), round((wide - size) / 2)


def content_of(path: str) -> bytes:
    """The bytes of a JPEG file, or of that in the record FILE/NUMBER. Raises ValueError for a bad
    record, and OSError."""
    file, number = os.path.split(path)
    if not os.path.isfile(file):
        with open(path, "rb") as stream:
            return stream.read()
    if file.endswith(".rec"):
        return records.recordio_image(file, int(number))
    if ofrecords.is_part(file):
        return ofrecords.image(file, int(number))
    return records.tfrecord_image(file, int(number))
