"""Credentials by name and shape: the lists in ``scripts/secrets.json``, also read by the
harness."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

from ..files import json_files

FILE = Path(__file__).parents[3] / "scripts" / "secrets.json"
#: End of a message: how a run may get a credential.
ADVICE = (
    "a value that records and archives may show; a credential that a run needs is exported to the "
    "call or read from a file of yours: the run inherits it and records leave it out"
)


class Shapes(NamedTuple):
    """Patterns of credentials.

    ``names``: keys whose values are credentials, unless ``harmless_names`` match too; ``shapes``:
    values, by kind of credential.
    """

    names: re.Pattern[str]
    harmless_names: re.Pattern[str]
    shapes: dict[str, re.Pattern[str]]


@cache
def known() -> Shapes:
    """Return the patterns of the file."""
    lists = json_files.read(FILE)
    shapes = {kind: re.compile(shape) for kind, shape in lists["shapes"].items()}
    return Shapes(re.compile(lists["names"]), re.compile(lists["harmless_names"]), shapes)


def is_named_like_one(name: str) -> bool:
    """Return whether a variable or key of this name holds a credential."""
    lists = known()
    return bool(lists.names.search(name)) and not lists.harmless_names.search(name)


def kind_of(text: str) -> str:
    """Return the kind of credential that ``text`` contains; "" for none."""
    return next((kind for kind, shape in known().shapes.items() if shape.search(text)), "")
