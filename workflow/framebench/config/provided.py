"""Software that the user provides: interpreter, image or environment modules instead of an
environment from ``envs/``."""

from __future__ import annotations

from typing import Annotated, Any

from . import values
from .keys import Keys, Text, Values, matching, read_as
from .validation import NotAllowed

#: Default command of Python in an image and with modules loaded.
PYTHON = "python3"
#: Pattern of a pinned package, as pip writes it.
PIN = r"[A-Za-z0-9._-]+(\[[^]\s]+\])?==[^=\s]+"


class Image(Keys):
    """A container image. ``image``: URI or path; ``python``: command of Python inside."""

    image: Text
    python: Text = PYTHON


class Modules(Keys):
    """Environment modules. ``load``: names, in this order; ``python``: command of Python."""

    load: Values[
        Annotated[
            str,
            matching(
                r"[^\s-]\S*", 'the name of a module, as in "module load NAME", without blanks'
            ),
        ]
    ]
    python: Text = PYTHON


def _interpreter(written: Any) -> str:
    """Return the absolute path of an interpreter."""
    file = values.path(written)
    if not file.is_file():
        raise NotAllowed("the path of a Python that exists")
    # Not resolved: the python of a virtual environment must stay a link.
    return str(file.absolute())


Interpreter = Annotated[str, read_as(_interpreter)]
ImageEntry = Annotated[
    Image,
    read_as(lambda some: {"image": some} if isinstance(some, str) else some, str | Image),
]
ModulesEntry = Annotated[
    Modules,
    read_as(lambda some: some if isinstance(some, dict) else {"load": some}, list[str] | Modules),
]
Pin = Annotated[str, matching(PIN, "NAME==VERSION")]
