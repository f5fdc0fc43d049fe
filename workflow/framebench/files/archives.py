"""Bounded unpacking of untrusted archives: only plain files below a folder."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import re
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path, PurePosixPath
from typing import IO, Any, NamedTuple

from core import bounded
from core.text import printable

from .problem import cause
from .text import cut

#: Limits in bytes of an archive and of its content; a set of 10,000 runs has 150 MB of content.
LARGEST_ARCHIVE = 512 * 2**20
LARGEST_CONTENT = 2 * 2**30
MOST_ENTRIES = 200_000
#: Limit of content over archive size, and content that any archive may have. Records shrink to a
#: tenth, zeros to a thousandth.
LARGEST_RATIO = 100
SMALL_CONTENT = 64 * 2**20
#: File with checksums of all files, in the format of ``sha256sum``.
CHECKSUMS = "manifest-sha256.txt"
_CHECKSUM = re.compile(r"([0-9a-f]{64}) [ *](.+)")
_BLOCK = 2**20
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
_IS_ENCRYPTED = 1
_DECOMPRESSED: Mapping[str, Callable[[Any], Any]] = {
    ".tar": lambda file: file,
    ".tar.gz": lambda file: gzip.GzipFile(fileobj=file),
    ".tgz": lambda file: gzip.GzipFile(fileobj=file),
    ".tar.xz": lzma.LZMAFile,
    ".tar.bz2": bz2.BZ2File,
}
#: Suffixes of archives.
SUFFIXES = (".zip", *_DECOMPRESSED)


class BadArchive(ValueError):
    """Archive that is not unpacked, with the reason but without its path."""


class _ArchiveEntry(NamedTuple):
    """A plain file in an archive. ``open``: opens it for reading."""

    name: str
    size: int
    open: Callable[[], IO[bytes]]


def unpack(path: Path, folder: Path) -> None:
    """Unpack all files of an archive below ``folder``, and verify its checksums, if any.
    Raises :class:`BadArchive`."""
    try:
        with closing(bounded.open_to_read(path)) as file:
            size = file.seek(0, io.SEEK_END)
            file.seek(0)
            if size > LARGEST_ARCHIVE:
                raise BadArchive(f"has {size} bytes; allowed: at most {LARGEST_ARCHIVE}")
            most = min(LARGEST_CONTENT, max(SMALL_CONTENT, LARGEST_RATIO * size))
            entries = _of_zip(file) if path.suffix == ".zip" else _of_tar(path, file, most)
            _compare(_write(entries, folder, most), folder)
    except BadArchive:
        raise
    except Exception as error:  # for damaged archives the libraries raise anything
        why = printable(cause(error)).partition("\n")[0][:200] or type(error).__name__
        raise BadArchive(f"cannot be unpacked: {why}") from error


def _of_zip(file: IO[bytes]) -> Iterator[_ArchiveEntry]:
    with zipfile.ZipFile(file) as archive:
        for info in archive.infolist():
            if info.is_dir():
                continue
            kind = stat.S_IFMT(info.external_attr >> 16)
            if kind not in (0, stat.S_IFREG):
                raise BadArchive(f"{_shown(info.filename)} is a link or a device; {_ALLOWED}")
            if info.flag_bits & _IS_ENCRYPTED:
                raise BadArchive(f"{_shown(info.filename)} is encrypted; {_ALLOWED}")
            if info.compress_type not in _METHODS:
                raise BadArchive(
                    f"{_shown(info.filename)} is compressed by method {info.compress_type}; "
                    "allowed: stored, deflate, bzip2, LZMA"
                )
            yield _ArchiveEntry(info.filename, info.file_size, _opening(archive.open, info))


def _of_tar(path: Path, file: IO[bytes], most: int) -> Iterator[_ArchiveEntry]:
    suffix = max((text for text in _DECOMPRESSED if path.name.endswith(text)), key=len)
    stream: Any = _Bounded(_DECOMPRESSED[suffix](file), most)
    with tarfile.open(fileobj=stream, mode="r:") as archive:
        for member in archive:
            if member.isdir():
                continue
            if not member.isreg() or member.issparse():
                raise BadArchive(f"{_shown(member.name)} is a link, a device or sparse; {_ALLOWED}")
            yield _ArchiveEntry(member.name, member.size, _opening(archive.extractfile, member))


_ALLOWED = "allowed: plain files"


def _opening(opens: Callable[[Any], Any], entry: Any) -> Callable[[], IO[bytes]]:
    return lambda: opens(entry)


class _Bounded:
    """Stream for tarfile that ends if an archive unpacks to too much.
    Headers, which tarfile reads into memory, count as well."""

    def __init__(self, stream: IO[bytes], most: int) -> None:
        self._stream, self._content = stream, most
        self._most = most + 2**10 * MOST_ENTRIES

    def read(self, size: int) -> bytes:
        if size > SMALL_CONTENT or size + self.tell() > self._most:
            raise _too_large(self._content)
        return self._stream.read(size)

    def seek(self, offset: int) -> int:
        if offset > self._most:
            raise _too_large(self._content)
        return self._stream.seek(offset)

    def tell(self) -> int:
        return self._stream.tell()


def _write(entries: Iterator[_ArchiveEntry], folder: Path, most: int) -> dict[str, str]:
    """Write the entries below ``folder``. Returns the SHA-256 of each by its relative path."""
    digests: dict[str, str] = {}
    left = most
    for number, entry in enumerate(entries):
        if number == MOST_ENTRIES:
            raise BadArchive(f"has more than {MOST_ENTRIES} files; allowed: at most that")
        if entry.size > left:
            raise _too_large(most)
        path = PurePosixPath(entry.name)
        if path.is_absolute() or ".." in path.parts or not path.parts:
            raise BadArchive(f"{_shown(entry.name)} lies outside; allowed: relative names")
        name = path.as_posix()
        if name in digests:
            raise BadArchive(f"{_shown(name)} is there twice; allowed: each once")
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256()
        with entry.open() as source, open(target, "xb") as file:
            while block := source.read(_BLOCK):
                left -= len(block)
                if left < 0:
                    raise _too_large(most)
                digest.update(block)
                file.write(block)
        digests[name] = digest.hexdigest()
        if (size := target.stat().st_size) != entry.size:
            raise BadArchive(f"{_shown(name)} has {size} bytes, not {entry.size}; it is damaged")
    return digests


def _compare(digests: Mapping[str, str], folder: Path) -> None:
    """Raise :class:`BadArchive` if files differ from a list of checksums among them."""
    for name in digests:
        path = PurePosixPath(name)
        if path.name != CHECKSUMS:
            continue
        top = path.parent
        listed: dict[str, str] = {}
        for number, line in enumerate(bounded.read_text(folder / path).splitlines(), 1):
            match = _CHECKSUM.fullmatch(line)
            if match is None:
                raise BadArchive(f"{_shown(name)}, line {number}: is no checksum and name")
            listed[(top / match[2]).as_posix()] = match[1]
        there = {digest for digest in digests if PurePosixPath(digest).is_relative_to(top)} - {name}
        for text in sorted({*there, *listed}):
            if digests.get(text) != listed.get(text):
                how = "is missing" if text not in digests else "was changed or added"
                raise BadArchive(f"{_shown(text)} {how}, by the checksums in {_shown(name)}")


def _too_large(most: int) -> BadArchive:
    return BadArchive(
        f"unpacks to more than {most} bytes; allowed: at most {LARGEST_RATIO} times the size of "
        f"the archive or {SMALL_CONTENT} bytes, and never more than {LARGEST_CONTENT}"
    )


def _shown(name: str) -> str:
    return cut(printable(name).replace("\n", "\\n"), 100)
