"""Environment variables that users set for the ranks of a run, and credentials among them.

Credentials are known by name and shape: the lists in ``scripts/secrets.json``, also read by the
harness.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator

from ..files import json_files
from .keys import matching, read_as
from .validation import ConfigError, NotAllowed

#: Variables that the harness sets for each rank, overriding other values.
OF_RANKS = (
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "TMPDIR",
    "FRAMEBENCH_ADDRESSES",
    "FRAMEBENCH_CORES",
    "FRAMEBENCH_RUN",
)
_FILE = Path(__file__).parents[3] / "scripts" / "secrets.json"
_ADVICE = (
    "a value that records and archives may show; a credential that a run needs is exported to the "
    "call or read from a file of yours: the run inherits it and records leave it out"
)


@cache
def _credentials() -> Mapping[str, Any]:
    """Return the lists of the file: ``names`` of variables whose values are credentials, unless
    ``harmless_names`` match too, and ``shapes`` of values by kind of credential."""
    lists: Mapping[str, Any] = json_files.read(_FILE)
    return lists


def _kind_of(text: str) -> str:
    """Return the kind of credential that ``text`` contains; "" for none."""
    shapes = _credentials()["shapes"]
    return next((kind for kind, shape in shapes.items() if re.search(shape, text)), "")


def check_credentials(part: Any, source: str, key: str = "") -> None:
    """Raise :class:`ConfigError` for a text that looks like a credential, without showing it.

    It would appear in command lines and records.
    """
    if isinstance(part, Mapping):
        for name, value in part.items():
            check_credentials(str(name), source, key)
            check_credentials(value, source, f"{key}.{name}" if key else str(name))
    elif isinstance(part, list):
        for value in part:
            check_credentials(value, source, key)
    elif isinstance(part, str) and (kind := _kind_of(part)):
        raise ConfigError(f"{source}: {key}: found {kind}; allowed: {_ADVICE}")


def _text(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)) or "\0" in str(value):
        raise NotAllowed("a text without NUL, or a number")
    return str(value)


def _checked(variables: dict[str, str]) -> dict[str, str]:
    lists = _credentials()
    for name, value in variables.items():
        if name in OF_RANKS:
            raise NotAllowed(
                f"all but {', '.join(OF_RANKS)}", f"{name}, which the harness sets for each rank"
            )
        if re.search(lists["names"], name) and not re.search(lists["harmless_names"], name):
            raise NotAllowed(_ADVICE, f"{name}, which may be a secret")
        if kind := _kind_of(value):
            raise NotAllowed(_ADVICE, f"{name} with {kind}")
    return variables


_Name = Annotated[
    str,
    matching(
        "[A-Za-z_][A-Za-z0-9_]*", "the name of an environment variable (letters, digits and _)"
    ),
]
_Value = Annotated[str, read_as(_text, str | float)]
Variables = Annotated[dict[_Name, _Value], AfterValidator(_checked)]
