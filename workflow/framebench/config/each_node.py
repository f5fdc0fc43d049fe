"""Type of the key ``nodes_named``: nodes that are measured one by one."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints

from .fields import AllowedValues, each_once, split

ALL = "all"
_WORDS = "all, or a list of at least 1 name of a node, each name once"


_Name = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,252}$"),
    AllowedValues("the name of a node: letters, digits, '_', '.' and '-', at most 253"),
]
_Names = Annotated[list[_Name], Field(min_length=1), AfterValidator(each_once)]
NodesNamed = Annotated[
    Literal["all"] | _Names,
    BeforeValidator(lambda value: value if value == ALL else split(value)),
    AllowedValues(_WORDS),
]
