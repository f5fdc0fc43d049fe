"""Capability of frameworks to read samples from files, by the loader that each recommends.

The harness decides what is loaded, in which order and with which crops, alike for all frameworks;
how is up to the framework. Image files are checked without decoding, because some decoders fill up
missing data or end the process (ITU T.81 (JPEG), B.1 and B.2; W3C, *Portable Network Graphics*, 5.2
and 11.2)."""

from __future__ import annotations

import importlib
import math
import multiprocessing
import struct
from typing import Any, ClassVar, Dict, Iterator, NamedTuple, Sequence, Tuple, Union

from core.axes import DALI

from harness.adapter import Capability, Unsupported

#: Mean and standard deviation of red, green and blue (0 to 1) in ImageNet, as in torchvision and
#: NVIDIA's ResNet-50.
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
#: Random crop: part of the area, width over height, number of tries.
AREA, RATIO, TRIES = (0.08, 1.0), (3 / 4, 4 / 3), 10
#: Random numbers for each sample's crop: four for each try, and one for the flip.
DRAWS = 4 * TRIES + 1
#: Shorter side in validation over the side of the central crop: 256 over 224.
SHORTER = 256 / 224
#: Seconds that a DataLoader waits for a batch of its worker processes before it gives up.
TIMEOUT = 120

#: Arrays of a loader's batch by the names in the request's class. Where possible, numpy takes them
#: without a copy.
Batch = Dict[str, Any]


class Loads(NamedTuple):
    """Request to a loader for images, in this order.

    A batch has ``images``, float32 (batch, size, size, 3), normalized, and ``labels``, int64
    (batch,).

    ``paths``: JPEG files. ``labels``: int64 (samples,). ``draws``: float64 (samples, DRAWS) from 0
    to 1, None in validation. ``batch``: samples of each batch, of which the last may have fewer.
    ``size``: pixels of a side. ``workers``: processes or threads besides the caller."""

    paths: Sequence[str]
    labels: Any
    draws: Any
    batch: int
    size: int
    workers: int

    def beginning(self, count: int) -> Loads:
        """Return the request for the first ``count`` samples only."""
        draws = None if self.draws is None else self.draws[:count]
        return self._replace(paths=self.paths[:count], labels=self.labels[:count], draws=draws)


class TokenLoads(NamedTuple):
    """Request to a loader for sequences of tokens, in this order.

    A batch has ``tokens``, int64 (batch, length).

    ``path``: file of little-endian whole numbers of type ``dtype``, and nothing else. ``starts``:
    int64 (samples,), position of each sequence's first token. ``length``: tokens of each.
    ``batch``, ``workers``: as in :class:`Loads`."""

    path: str
    dtype: str
    starts: Any
    length: int
    batch: int
    workers: int

    def beginning(self, count: int) -> TokenLoads:
        return self._replace(starts=self.starts[:count])


Request = Union[Loads, TokenLoads]


class Loading(Capability):
    """Samples come through the loader that the framework recommends.

    The module ``loader`` in its folder has the functions ``load``, which yields the arrays of a
    batch (images and labels, or tokens), and ``settings``. They are called after :meth:`start`,
    without :meth:`build`."""

    LACKING: ClassVar[str] = "has no loader of files here"

    def _loader(self) -> Any:
        """Return the loader's module. Raises :class:`Unsupported` where something that it imports
        is missing."""
        package = type(self).__module__.rpartition(".")[0]
        try:
            if self.case.input == DALI:
                return importlib.import_module("harness.loader.dali")
            return importlib.import_module(f"{package}.loader")
        except ModuleNotFoundError as error:
            name = error.name
            if self.case.input == DALI:
                missing = f"{name} of nvidia-dali-cuda120 or nvidia-dali-cuda130 is missing"
                raise Unsupported(f"its environment has no DALI: {missing}") from None
            whose = f"{self.case.framework}'s loader"
            raise Unsupported(f"{whose} needs {name}, which is not installed") from None

    def load(self, loads: Request) -> Iterator[Batch]:
        """Yield batches with each sample once, in the requested order.

        In training, images are cropped at random (:func:`crop`), resized bilinearly, flipped where
        :func:`is_flipped` says so, and normalized. In validation (:func:`centre`) they are resized
        and the centre is cropped. Grey and CMYK become RGB. Raises errors of reading and decoding,
        and the framework's own error where a worker dies or hangs."""
        if isinstance(loads, TokenLoads) and self.case.input == DALI:
            raise Unsupported("DALI reads only images here, not tokens")
        names = ("tokens",) if isinstance(loads, TokenLoads) else ("images", "labels")
        _shorten_sockets()
        arrays: Iterator[Any] = self._loader().load(loads, self.rank_context.accelerator)
        return (dict(zip(names, each)) for each in arrays)

    def loader_settings(self) -> Dict[str, Any]:
        """Return name and settings of the loader, as JSON values for the record."""
        settings: Dict[str, Any] = self._loader().settings(self.rank_context.accelerator)
        return settings


def _shorten_sockets() -> None:
    """Put worker sockets in the rank's working folder, where their relative paths are short.

    :mod:`multiprocessing` makes them in the temporary folder, and the kernel limits their paths to
    107 bytes. Beyond that a worker stays silent, and its loader waits forever. The working folder
    is the rank's own, temporary, and shared with its workers."""
    multiprocessing.current_process()._config["tempdir"] = "."  # type: ignore[attr-defined]


def crop(height: int, width: int, draws: Sequence[float]) -> Tuple[int, int, int, int]:
    """Return top, left, height and width of a random crop, as torchvision's RandomResizedCrop draws
    it.

    It is the first try that fits, else the largest centre crop with an allowed ratio."""
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
    """Return whether an image is mirrored left to right, with probability one half."""
    return bool(draws[DRAWS - 1] < 0.5)


def centre(height: int, width: int, size: int) -> Tuple[int, int, int, int]:
    """Return height and width to resize an image to in validation, then top and left of the central
    square."""
    shorter = round(size * SHORTER)
    if height <= width:
        tall, wide = shorter, max(shorter, int(shorter * width / height))
    else:
        tall, wide = max(shorter, int(shorter * height / width)), shorter
    return tall, wide, round((tall - size) / 2), round((wide - size) / 2)


def content_of(path: str) -> bytes:
    """Return the bytes of a file. Raises OSError."""
    with open(path, "rb") as stream:
        return stream.read()


_JPEG, _SCAN, _END = b"\xff\xd8", 0xDA, b"\xff\xd9"
_PNG, _PNG_END = b"\x89PNG\r\n\x1a\n", b"IEND\xaeB`\x82"
#: Position of width and height in a PNG file.
_PNG_SIZE = 16


def whole_image(content: bytes) -> bytes:
    """Return the bytes of a JPEG or PNG file that is complete. Raises ValueError for a truncated
    one.

    One image of ImageNet is a PNG file named .JPEG. Data after the end are allowed, as in photos of
    some phones."""
    if content.startswith(_PNG):
        if _PNG_END not in content:
            raise ValueError("the PNG file is truncated: it has no end")
        return content
    if not content.startswith(_JPEG):
        raise ValueError("is not a JPEG file")
    # A thumbnail in the header has an end marker too.
    if content.find(_END, _markers(content).get(_SCAN, len(content))) < 0:
        raise ValueError("the JPEG file is truncated: it has no end marker")
    return content


def extents_of(content: bytes) -> Tuple[int, int]:
    """Return height and width in pixels of a JPEG or PNG file. Raises ValueError for a file without
    them, or without a pixel."""
    if content.startswith(_PNG) and len(content) >= _PNG_SIZE + 8:
        width, height = struct.unpack(">II", content[_PNG_SIZE : _PNG_SIZE + 8])
        return int(height), int(width)
    for marker, offset in _markers(content).items():
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):  # SOF, B.2.2
            height, width = struct.unpack(">HH", content[offset + 5 : offset + 9].ljust(4, b"\0"))
            if height and width:
                return int(height), int(width)
    raise ValueError("the JPEG file does not say how large its image is")


def _markers(content: bytes) -> Dict[int, int]:
    """Return the positions of the markers of a JPEG file up to its first scan."""
    places: Dict[int, int] = {}
    offset = 2
    while offset + 4 <= len(content) and content[offset] == 0xFF and _SCAN not in places:
        marker = content[offset + 1]
        places[marker] = offset
        # padding bytes of 0xFF may precede the length of a marker
        length = 2 + int.from_bytes(content[offset + 2 : offset + 4], "big")
        offset += 1 if marker == 0xFF else length
    return places
