"""Environment variables that users set for the ranks of a run."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, StringConstraints

from . import secrets
from .fields import AllowedValues, ReadAs
from .validation import NotAllowed

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


def _text(value: Any) -> str:
    if "\0" in str(value):
        raise NotAllowed("a text without NUL")
    return str(value)


def _checked(variables: dict[str, str]) -> dict[str, str]:
    for name, value in variables.items():
        if name in OF_RANKS:
            raise NotAllowed(
                f"all but {', '.join(OF_RANKS)}", f"{name}, which the harness sets for each rank"
            )
        if secrets.is_named_like_one(name):
            raise NotAllowed(secrets.ADVICE, f"{name}, which may be a secret")
        if kind := secrets.kind_of(value):
            raise NotAllowed(secrets.ADVICE, f"{name} with {kind}")
    return variables


_Name = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$"),
    AllowedValues("the name of an environment variable (letters, digits and _)"),
]
_Value = Annotated[
    str, ReadAs(Annotated[str | int | float, AllowedValues("a text or a number")], _text)
]
Variables = Annotated[dict[_Name, _Value], AfterValidator(_checked)]
