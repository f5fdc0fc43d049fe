"""Settings of variants: those in ``config/tuned.yaml`` make a framework faster, those in
``config/tuned_NAME.yaml`` are of published benchmarks. Each names its source."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Literal

from core.case import Case
from pydantic import StringConstraints, model_validator

from .catalog import Catalog
from .fields import (
    AllowedValues,
    CompilerName,
    FrameworkName,
    Keys,
    ReadAs,
    Switch,
    Text,
    ValidationContext,
    default,
    validated,
)
from .suite_axes import Axes, Pattern, named_axes
from .validation import NotAllowed
from .variables import Variables
from .yaml_files import read_yaml

FOLDER = Path("config")
#: File of a variant with ``tuned: true``, without ``.yaml``.
RECOMMENDED = "tuned"
#: Name of a file without ``.yaml``, from the value of a variant's key; "" for ``false``.
FileName = Annotated[
    str,
    ReadAs(
        Annotated[
            Switch | Literal["nvidia", "dlperf"], AllowedValues("true, false, nvidia, dlperf")
        ],
        lambda value: f"tuned_{value}" if isinstance(value, str) else RECOMMENDED * value,
    ),
]

_Address = Annotated[
    str,
    StringConstraints(pattern=r"^https?://\S+$"),
    AllowedValues("the address of a page that recommends it"),
]


_Cases = Annotated[Axes, ReadAs(Pattern, named_axes)]


class TunedSetting(Keys):
    """Setting by environment variables. ``effect``: a sentence on what it changes."""

    variables: Variables
    cases: _Cases | None = None
    accelerators: list[Literal["cpu", "cuda"]] = default(["cpu", "cuda"])
    processors: list[Text] = default([])
    compiler: CompilerName | None = None
    effect: Text
    source: _Address


class PublishedFlag(Keys):
    """Flag of a published benchmark that no environment variable sets."""

    flag: Text
    cases: _Cases | None = None
    axes: _Cases | None = None
    always: Text | None = None
    lacking: Text | None = None
    source: _Address

    @model_validator(mode="after")
    def _one_counterpart(self) -> PublishedFlag:
        given = [key for key in ("axes", "always", "lacking") if getattr(self, key)]
        if len(given) != 1:
            raise NotAllowed(
                "one of axes, always and lacking", ", ".join(given) or "none", self.flag
            )
        return self


class TunedFile(Keys):
    """Settings by framework. ``all``: settings of every framework."""

    published: Text | None = None
    all: list[TunedSetting] = default([])
    frameworks: dict[FrameworkName, list[TunedSetting]] = default({})
    flags: dict[FrameworkName, list[PublishedFlag]] = default({})

    def settings(self, framework: str) -> list[TunedSetting]:
        """Return the settings of a framework, the more general ones first."""
        return [*self.all, *self.frameworks.get(framework, ())]

    def settings_and_flags(self, framework: str) -> Sequence[TunedSetting | PublishedFlag]:
        """Return all that the file has of a framework."""
        return [*self.settings(framework), *self.flags.get(framework, ())]

    def misfit(self, case: Case, accelerator: str) -> str:
        """Return why a case cannot have published settings; "" if it can, or if these are none."""
        if not self.published:
            return ""
        if accelerator == "cpu":
            return f"the settings of {self.published} are for GPUs"
        if any(applies(entry.cases, case) for entry in self.settings_and_flags(case.framework)):
            return ""
        return f"{self.published} has no {case.model} in {case.framework} with these axes"


#: Files by their names, without ``.yaml``.
Tuned = dict[str, TunedFile]


def load_tuned(catalog: Catalog, name: str = RECOMMENDED) -> TunedFile:
    """Return a file of settings. Raises ConfigError for a missing or invalid file."""
    file = FOLDER / f"{name}.yaml"
    written = read_yaml(catalog.root / file)
    return validated(TunedFile, written, ValidationContext(catalog), str(file))


def applies(cases: Axes | None, case: Case) -> bool:
    """Return whether a case has one of the values of each axis in ``cases``."""
    return all(getattr(case, axis) in values for axis, values in (cases or {}).items())


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
