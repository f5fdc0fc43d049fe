"""What the user brings instead of an environment from ``envs/``, as the configuration names it: an
interpreter, an image, environment modules."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import paths
from .validation import ConfigError, show

#: Where Apptainer can pull an image from.
SCHEMES = ("docker", "library", "oras", "shub", "http", "https")
#: What starts Python where nothing else is said, in an image and with modules loaded.
PYTHON = "python3"
_MIB = 2**20


@dataclass(frozen=True)
class Image:
    """``name``: its URI, or its path, absolute and without links. ``digest``: of a file, else None.
    ``python``: what starts Python inside."""

    name: str
    digest: str | None
    python: str


@dataclass(frozen=True)
class Modules:
    """``names`` in the order in which they are loaded; ``python``: what starts Python then."""

    names: tuple[str, ...]
    python: str


def interpreter(place: str, path: str) -> str:
    """The absolute path of a Python. Raises :class:`ConfigError` at ``place`` for one that does not
    exist."""
    file = paths.given(place, path)
    if not file.is_file():
        raise ConfigError(f"{place}: found {show(path)}; allowed: the path of a Python that exists")
    # Not resolved: the python of a virtual environment is a link that must stay one.
    return str(file.absolute())


def image(place: str, value: str | Mapping[str, Any]) -> Image:
    """An image as the configuration names it, ``{image, python}`` or the former alone. Raises
    :class:`ConfigError` at ``place`` for what Apptainer would not find."""
    given = {"image": value} if isinstance(value, str) else value
    text, python = str(given["image"]), str(given.get("python", PYTHON))
    scheme, is_uri, _ = text.partition("://")
    path = Path(text) if is_uri else paths.given(place, text)
    fits = scheme in SCHEMES if is_uri else path.exists()
    if not fits:
        raise ConfigError(
            f"{place}: found {show(text)}; allowed: the path of an image that exists, or a URI "
            f"that begins with {', '.join(f'{scheme}://' for scheme in SCHEMES)}"
        )
    name = text if is_uri else str(path.resolve())
    if name.split() != [name]:
        raise ConfigError(
            f"{place}: found {show(name)}; allowed: a name without blanks, which Snakemake "
            "cannot take"
        )
    return Image(name, None if is_uri or path.is_dir() else _digest(path), python)


def modules(value: Sequence[str] | Mapping[str, Any]) -> Modules:
    """Modules as the checked configuration names them, ``{load, python}`` or the former alone."""
    given = value if isinstance(value, Mapping) else {"load": value}
    return Modules(tuple(given["load"]), str(given.get("python", PYTHON)))


def _digest(path: Path) -> str:
    """Twelve hexadecimal digits that tell one build of an image from another: of its size, and of
    its first and last MiB. Its header holds an id and the time of the build (SIF), or time and size
    (SquashFS), and its end the tables of all files. To read all of it would take half a minute,
    whenever Snakemake starts."""
    size = path.stat().st_size
    digest = hashlib.sha256(str(size).encode())
    with path.open("rb") as file:
        digest.update(file.read(_MIB))
        file.seek(max(0, size - _MIB), os.SEEK_SET)
        digest.update(file.read(_MIB))
    return digest.hexdigest()[:12]
