"""Tuned settings in ``config/tuned.yaml``: environment variables that make a framework faster, with
the page that recommends them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

from pydantic import StringConstraints

from .catalog import Catalog
from .fields import (
    AllowedValues,
    CompilerName,
    FrameworkName,
    Keys,
    OneOf,
    Text,
    ValidationContext,
    default,
    validated,
)
from .variables import Variables
from .yaml_files import read_yaml

FILE = Path("config", "tuned.yaml")

_Address = Annotated[
    str,
    StringConstraints(pattern=r"^https?://\S+$"),
    AllowedValues("the address of a page that recommends it"),
]


class TunedSetting(Keys):
    """Recommended setting. ``effect``: sentence about what it changes."""

    variables: Variables
    accelerators: list[Annotated[Literal["cpu", "cuda"], OneOf()]] = default(["cpu", "cuda"])
    processors: list[Text] = default([])
    compiler: CompilerName | None = None
    effect: Text
    source: _Address


class TunedFile(Keys):
    """Recommended settings by framework. ``all``: settings of every framework."""

    all: list[TunedSetting] = default([])
    frameworks: dict[FrameworkName, list[TunedSetting]] = default({})


Tuned = dict[str, list[TunedSetting]]


def load_tuned(catalog: Catalog) -> Tuned:
    """Return the settings by framework. Raises ConfigError for a missing or invalid file."""
    written = read_yaml(catalog.root / FILE)
    found = validated(TunedFile, written, ValidationContext(catalog), str(FILE))
    return {name: [*found.all, *found.frameworks.get(name, ())] for name in catalog.frameworks}


def variables(
    settings: Iterable[TunedSetting], accelerator: str, compiler: str, vendor: str = ""
) -> dict[str, str]:
    """Return the variables for ``accelerator`` and ``compiler``, in any mode.

    ``vendor``: of the processor, as the kernel names it; "" if unknown.

    A later setting of the same variable replaces an earlier one.
    """
    return {
        name: value
        for one in settings
        if accelerator in one.accelerators
        and (not one.processors or vendor in one.processors)
        and one.compiler in (None, compiler, compiler.partition(":")[0])
        for name, value in one.variables.items()
    }
