"""Credentials, by name and by shape: the lists in ``scripts/secrets.json``, which the harness reads
too."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

from ..files import json_files

FILE = Path(__file__).parents[3] / "scripts" / "secrets.json"
#: How a run gets a credential all the same; ends a message.
ADVICE = (
    "a value that records and archives may show; a credential that a run needs is exported to the "
    "call or read from a file of yours: the run inherits it and records leave it out"
)


class Shapes(NamedTuple):
    """``names`` of keys whose values are credentials, unless ``harmless_names`` match, too;
    ``shapes``: what values of each kind look like."""

    names: re.Pattern[str]
    harmless_names: re.Pattern[str]
    shapes: dict[str, re.Pattern[str]]


@cache
def known() -> Shapes:
    """The lists of the file."""
    lists = json_files.read(FILE)
    shapes = {kind: re.compile(shape) for kind, shape in lists["shapes"].items()}
    return Shapes(re.compile(lists["names"]), re.compile(lists["harmless_names"]), shapes)


def is_named_like_one(name: str) -> bool:
    """Return whether a variable or key of this name holds a credential."""
    lists = known()
    return bool(lists.names.search(name)) and not lists.harmless_names.search(name)


def kind_of(text: str) -> str:
    """Return which kind of credential ``text`` contains, "" for none."""
    return next((kind for kind, shape in known().shapes.items() if shape.search(text)), "")
