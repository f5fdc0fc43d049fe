"""Software that the user provides instead of an environment from ``envs/``: interpreter, image or
environment modules."""

from __future__ import annotations

import hashlib
import os
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from core import bounded
from pydantic import StringConstraints, ValidationInfo

from . import values
from .fields import AllowedValues, Distinct, Keys, ReadAs, Text, ValidationContext, text
from .validation import NotAllowed, show

#: URI schemes from which Apptainer can pull an image.
SCHEMES = ("docker", "library", "oras", "shub", "http", "https")
#: Default command of Python in an image and with modules loaded.
PYTHON = "python3"
_MIB = 2**20


@dataclass(frozen=True)
class Image:
    """A container image. ``name``: URI, or absolute path without links; ``digest``: of a file, else
    None; ``python``: command of Python inside."""

    name: str
    digest: str | None
    python: str


class _ImageKeys(Keys):
    image: Text
    python: Text = PYTHON


_ModuleNames = Distinct[
    Annotated[
        str,
        StringConstraints(pattern=r"^[^\s-][^\s]*$"),
        AllowedValues('the name of a module, as in "module load NAME", without blanks'),
    ]
]


class Modules(Keys):
    """Environment modules. ``load``: names, in this order; ``python``: command of Python."""

    load: _ModuleNames
    python: Text = PYTHON


def _interpreter(text: str) -> str:
    """Return the absolute path of an interpreter."""
    file = values.path(text)
    if not file.is_file():
        raise NotAllowed("the path of a Python that exists")
    # Not resolved: the python of a virtual environment must stay a link.
    return str(file.absolute())


def _image(written: str | _ImageKeys, info: ValidationInfo[ValidationContext]) -> Image:
    """Return an image. It is checked only with Apptainer, because elsewhere it may be missing."""
    entry = _ImageKeys(image=written) if isinstance(written, str) else written
    if info.context.deployment != "apptainer":
        return Image(entry.image, None, entry.python)
    scheme, is_uri, _ = entry.image.partition("://")
    path = Path(entry.image) if is_uri else values.path(entry.image)
    if scheme not in SCHEMES if is_uri else not path.exists():
        schemes = ", ".join(f"{scheme}://" for scheme in SCHEMES)
        raise NotAllowed(
            f"the path of an image that exists, or a URI that begins with {schemes}",
            show(entry.image),
        )
    name = entry.image if is_uri else str(path.resolve())
    if name.split() != [name]:
        raise NotAllowed("a name without blanks, which Snakemake cannot take", show(name))
    return Image(name, None if is_uri or path.is_dir() else _digest(path), entry.python)


def _digest(path: Path) -> str:
    """Return twelve hexadecimal digits that identify the build of an image file.

    They cover its size, and its first and last MiB. The header has an id and the time of the build
    (SIF), or time and size (SquashFS), the end has the tables of all files. Reading the whole file
    would take half a minute whenever Snakemake starts.
    """
    with closing(bounded.open_to_read(path)) as file:
        size = os.fstat(file.fileno()).st_size
        digest = hashlib.sha256(str(size).encode())
        digest.update(file.read(_MIB))
        file.seek(max(0, size - _MIB), os.SEEK_SET)
        digest.update(file.read(_MIB))
    return digest.hexdigest()[:12]


Interpreter = Annotated[str, ReadAs(Text, _interpreter)]
ImageEntry = Annotated[
    Image,
    ReadAs(
        Annotated[
            Text | _ImageKeys,
            AllowedValues("the path or URI of an image or {image: .., python: ..}"),
        ],
        _image,
    ),
]
#: Pattern of a pinned package, as pip writes it.
PIN = r"^[A-Za-z0-9._-]+(\[[^]\s]+\])?==[^=\s]+$"
Pin = text("NAME==VERSION", PIN)
ModulesEntry = Annotated[
    Modules,
    ReadAs(
        Annotated[
            _ModuleNames | Modules,
            AllowedValues(
                "a list of names of modules, at least 1 and each once, or {load: [..], python: ..}"
            ),
        ],
        lambda written: Modules(load=written) if isinstance(written, list) else written,
    ),
]
