"""Settings of variants: those in ``config/tuned.yaml`` make a framework faster, those in
``config/tuned_NAME.yaml`` are of published benchmarks. Each names its source."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

from core.case import Case
from pydantic import ValidationInfo

from .catalog import Catalog
from .keys import (
    CompilerName,
    FrameworkName,
    KeyContext,
    Keys,
    Text,
    Variables,
    default,
    read_as,
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
    processors: list[Text] = default([])
    compiler: CompilerName | None = None
    effect: Text
    source: Text


class TunedFile(Keys):
    """Settings by framework. ``all``: settings of every framework."""

    published: Text | None = None
    all: list[TunedSetting] = default([])
    frameworks: dict[FrameworkName, list[TunedSetting]] = default({})

    def settings(self, framework: str) -> list[TunedSetting]:
        """Return the settings of a framework, the more general ones first."""
        return [*self.all, *self.frameworks.get(framework, ())]

    def misfit(self, case: Case, accelerator: str) -> str:
        """Return why a case cannot have published settings; "" if it can, or if these are none."""
        if not self.published:
            return ""
        if accelerator == "cpu":
            return f"the settings of {self.published} are for GPUs"
        if any(applies(entry.cases, case) for entry in self.settings(case.framework)):
            return ""
        return f"{self.published} sets no variables for this {case.model} in {case.framework}"


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
TunedKey = Annotated[TunedFile | None, read_as(_load, bool | Literal["nvidia", "dlperf"])]


def applies(cases: PatternKeys | None, case: Case) -> bool:
    """Return whether a case has one of the values of each axis in ``cases``."""
    given = cases.named_axes if cases else {}
    return all(getattr(case, axis) in values for axis, values in given.items())


def variables(
    settings: Iterable[TunedSetting], accelerator: str, compiler: str, vendor: str = ""
) -> dict[str, str]:
    """Return the variables for ``accelerator`` and ``compiler``, in any mode.

    ``vendor``: of the processor, as the kernel names it; "" if unknown.

    A later setting of the same variable replaces an earlier one.
    """
    return {
        name: value
        for setting in settings
        if accelerator in setting.accelerators
        and (not setting.processors or vendor in setting.processors)
        and setting.compiler in (None, compiler, compiler.partition(":")[0])
        for name, value in setting.variables.items()
    }
