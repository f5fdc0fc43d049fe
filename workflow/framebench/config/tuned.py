"""Settings of variants: those in ``config/tuned.yaml`` make a framework faster, those in
``config/tuned_NAME.yaml`` come from published benchmarks. Each names its source."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from core.case import Case
from pydantic import BeforeValidator, ValidationInfo

from .catalog import Catalog
from .keys import (
    FrameworkName,
    KeyContext,
    Keys,
    Text,
    Variables,
    default,
    validated,
)
from .suite_axes import PatternKeys
from .validation import NotAllowed
from .yaml_files import read_yaml

FOLDER = Path("config")
#: Files of published settings.
_PUBLISHED = ("nvidia", "dlperf")


class TunedSetting(Keys):
    """Setting by environment variables. ``effect``: a sentence on what it changes."""

    variables: Variables
    cases: PatternKeys | None = None
    accelerators: list[Literal["cpu", "cuda"]] = default(["cpu", "cuda"])
    effect: Text
    source: Text

    def is_for(self, case: Case) -> bool:
        """Return whether a case has one of the values of each axis in ``cases``."""
        given = self.cases.named_axes if self.cases else {}
        return all(getattr(case, axis) in values for axis, values in given.items())


class TunedFile(Keys):
    """Settings by framework. ``all``: settings of every framework."""

    all: list[TunedSetting] = default([])
    frameworks: dict[FrameworkName, list[TunedSetting]] = default({})

    def variables(self, case: Case, accelerator: str) -> dict[str, str]:
        """Return the variables for a case; its framework's values replace those for all
        frameworks."""
        return {
            name: value
            for setting in (*self.all, *self.frameworks.get(case.framework, ()))
            if setting.is_for(case) and accelerator in setting.accelerators
            for name, value in setting.variables.items()
        }


def load_tuned(catalog: Catalog, name: str) -> TunedFile:
    """Return a file of settings. Raises ConfigError for a missing or invalid file."""
    file = FOLDER / f"{name}.yaml"
    return validated(TunedFile, read_yaml(catalog.root / file), str(file), catalog)


def _load(written: Any, info: ValidationInfo[KeyContext]) -> TunedFile | None:
    if written is False:
        return None
    if written is not True and written not in _PUBLISHED:
        raise NotAllowed(f"true, false, {', '.join(_PUBLISHED)}")
    return load_tuned(info.context.catalog, "tuned" if written is True else f"tuned_{written}")


#: Key that names a file of settings.
TunedKey = Annotated[TunedFile | None, BeforeValidator(_load)]
