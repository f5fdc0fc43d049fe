"""Written values: shares, sizes, numbers and paths, in files and on command lines."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from core.limits import parse_limit

from .. import PROJECT
from .validation import NotAllowed, show

T = TypeVar("T")
MEMORY = (
    "auto, a size above 0 like 16GiB (or KiB, MiB, TiB), or a share of the machine's memory like "
    "80%, up to 100%"
)


def argument(read: Callable[[str], T]) -> Callable[[str], T]:
    """Return a type function for argparse, whose errors show the allowed values."""

    def parse(text: str) -> T:
        try:
            return read(text)
        except NotAllowed as error:
            shown = f"found {error.shown or show(text)}; allowed: {error.allowed}"
            raise argparse.ArgumentTypeError(shown) from None

    return parse


def share(written: Any) -> float:
    """Return a fraction, written as ``5%`` or ``0.05``. Raises :class:`NotAllowed`."""
    text = str(written)
    try:
        part = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        part = 0.0
    if not 0 < part < 1:
        raise NotAllowed("a percentage like 5%, or a number like 0.05, above 0 and below 100 %")
    return part


def memory_limit(written: Any) -> str | None:
    """Return a size or share in the harness's form; None for ``auto``. Raises
    :class:`NotAllowed`."""
    if written == "auto":
        return None
    try:
        parse_limit(str(written))
    except ValueError:
        raise NotAllowed(MEMORY) from None
    return str(written)


def path(written: Any) -> Path:
    """Return a path with ``~`` expanded, existing or not. Raises :class:`NotAllowed` for none."""
    if not isinstance(written, str) or not written:
        raise NotAllowed("a text that is not empty")
    return Path(os.path.expanduser(written))


def file(written: Any, kind: str = "a file") -> Path:
    """Return the path of a file. Raises :class:`NotAllowed` if there is none."""
    named = path(written)
    if not os.path.isfile(named):
        raise NotAllowed(f"the path of {kind} that exists")
    return named


def from_here(named: Path) -> Path:
    """Return a path relative to the working directory if it lies below it, else unchanged.

    A command with a relative path is valid on every machine.
    """
    here = Path.cwd()
    return named.relative_to(here) if named.is_relative_to(here) else named


def folder(written: Any) -> Path:
    """Return the path of a folder, existing or not. Raises :class:`NotAllowed` for the path of a
    file, and for characters that Snakemake reads as wildcards or shells as redirections."""
    named = path(written)
    if re.search("[{}<>]", str(written)):
        raise NotAllowed("a path without { } < >")
    if any(os.path.exists(part) and not part.is_dir() for part in (named, *named.parents)):
        raise NotAllowed("a folder")
    return named


def records(text: str) -> Path:
    """Return the path of records: ``runs`` in a results folder, else the path itself."""
    named = Path(text)
    return named / "runs" if (named / "runs").is_dir() else named


def existing_folder(written: Any) -> Path:
    """Return the path of a folder. Raises :class:`NotAllowed` if there is none."""
    named = path(written)
    if not os.path.isdir(named):
        raise NotAllowed("the path of a folder that exists")
    return named


def environment_file(written: Any) -> Path:
    """Return the path of an environment file, or of the one with this name in ``envs``.

    Raises :class:`NotAllowed` if there is none.
    """
    named, ours = path(written), PROJECT / "envs" / str(written)
    if os.path.isfile(named):
        return named
    if "/" in written or not ours.is_file():
        raise NotAllowed("the path of an environment file, or the name of one in envs/")
    return ours


def record_set(written: Any) -> Path:
    """Return the path of a record set; for a results folder the path of its runs.

    Raises :class:`NotAllowed` if there is none.
    """
    named = path(written)
    if not os.path.exists(named):
        raise NotAllowed("a folder of records or a CSV of runs that exists")
    return records(str(named))


@dataclass(frozen=True)
class RecordSource:
    """Record set to compare: all runs, or the runs of one variant."""

    path: Path
    variant: str

    @staticmethod
    def parse(text: str) -> RecordSource:
        """Return the source in a text ``PATH`` or ``PATH@VARIANT``."""
        path, separator, variant = text.rpartition("@")
        if not separator or os.path.exists(text):
            return RecordSource(Path(text), "")
        return RecordSource(Path(path), variant)

    def __str__(self) -> str:
        return f"{self.path}@{self.variant}" if self.variant else str(self.path)


def side(text: str) -> RecordSource:
    """Return one side of a comparison. Raises :class:`NotAllowed` if there are no records."""
    source = RecordSource.parse(text)
    return RecordSource(record_set(str(source.path)), source.variant)
