"""Compute capabilities of the GPU code in CUDA libraries, read from their fat binaries.

A library holds fat binaries, each with entries of machine code (ELF) and PTX for one compute
capability. The layout is that of ``fatbinary_section.h`` of CUDA's toolkit; the code itself, which
may be compressed, is not read.
"""

from __future__ import annotations

import mmap
import struct
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

from core import bounded

from ..config.validation import ConfigError
from ..files import temporary
from ..files.problem import cause

#: Header of a fat binary: magic number, version, size of the header, size of all entries.
_BINARY = struct.Struct("<IHHQ")
_MAGIC = struct.pack("<IHH", 0xBA55ED50, 1, _BINARY.size)
#: Header of an entry up to its compute capability: kind, unknown, size of the header, size of the
#: code, unknown, minor and major version of its format, ten times the capability.
_ENTRY = struct.Struct("<HHIQQHHI")
_PTX, _ELF = 1, 2
#: Share of a build's fat binaries that must have code for a capability. Some kernels are compiled
#: for few GPUs only; a GPU that has no more than these cannot run the framework.
MOST = 0.5
#: Names of shared libraries.
LIBRARIES = "*.so*"


class GpuCode(NamedTuple):
    """Compute capabilities that most fat binaries of a build have code for, in ascending order.

    ``binaries``: number of fat binaries."""

    machine_code: tuple[str, ...]
    ptx: tuple[str, ...]
    binaries: int


def read(places: Sequence[Path], pattern: str = LIBRARIES) -> GpuCode:
    """Return the GPU code of the libraries in wheels and folders.

    ``pattern``: of the libraries' names, for wheels that hold CUDA's own libraries, too. Raises
    :class:`ConfigError` if there is none, and for files that are no wheels."""
    counted: Counter[tuple[int, int]] = Counter()
    binaries = 0
    for library in (library for place in places for library in _libraries(place, pattern)):
        for entries in _fat_binaries(library):
            binaries += 1
            counted.update(entries)
    if not binaries:
        raise ConfigError(
            f"PATH: found no GPU code in {', '.join(map(str, places))}; allowed: wheels or folders "
            "of a framework's build for CUDA"
        )
    common = sorted(item for item, count in counted.items() if count >= MOST * binaries)
    archives = {
        kind: tuple(f"{code // 10}.{code % 10}" for what, code in common if what == kind)
        for kind in (_ELF, _PTX)
    }
    return GpuCode(archives[_ELF], archives[_PTX], binaries)


def _libraries(place: Path, pattern: str = LIBRARIES) -> Iterator[Path]:
    """Yield the libraries in a folder, or in a wheel, where each is removed after its use."""
    if place.is_dir():
        yield from (path for path in sorted(place.rglob(pattern)) if path.is_file())
        return
    try:
        with zipfile.ZipFile(place) as wheel:
            for name in sorted(wheel.namelist()):
                if fnmatch(Path(name).name, pattern):
                    with temporary.folder() as folder:
                        yield Path(wheel.extract(name, folder))
    except (OSError, zipfile.BadZipFile) as error:
        raise ConfigError(
            f"PATH: {place}: cannot be read: {cause(error)}; allowed: a wheel or a folder"
        ) from None


def _fat_binaries(library: Path) -> Iterator[set[tuple[int, int]]]:
    """Yield the entries of each fat binary in a file: kind, and ten times the capability."""
    if library.stat().st_size < _BINARY.size:
        return
    with (
        bounded.open_to_read(library) as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
    ):
        start = data.find(_MAGIC)
        while start >= 0 and start + _BINARY.size <= len(data):
            begin = start + _BINARY.size
            end = min(begin + _BINARY.unpack_from(data, start)[3], len(data))
            if entries := set(_entries(data, begin, end)):
                yield entries
            start = data.find(_MAGIC, max(begin, end))


def _entries(data: mmap.mmap, offset: int, end: int) -> Iterator[tuple[int, int]]:
    while offset + _ENTRY.size <= end:
        kind, _, header, size, *_, capability = _ENTRY.unpack_from(data, offset)
        if kind not in (_PTX, _ELF) or header < _ENTRY.size:
            return
        yield kind, capability
        offset += header + size
