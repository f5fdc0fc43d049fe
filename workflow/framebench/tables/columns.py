"""Declaration of columns. Every column of this project's tables is declared once, in columns.yaml.

Markdown, the report and docs/columns.md read the same declaration. Features declare columns of
their own tables in files like it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from core import axes

from ..cases.conditions import CASE, CONDITIONS, KEYS, OF_VARIANT
from ..config.keys import read_mapping
from ..config.statuses import STATUSES

#: Types by pandas' names. COUNT and NUMBER may be missing, WHOLE may not.
TEXT, WHOLE, COUNT, NUMBER, YES_NO, YES_NO_OR_NEITHER = (
    "str", "int64", "Int64", "float64", "bool", "boolean"
)  # fmt: skip

#: Types in words.
TYPE_WORDS = {
    **{TEXT: "text", NUMBER: "number"},
    **dict.fromkeys((WHOLE, COUNT), "whole number"),
    **dict.fromkeys((YES_NO, YES_NO_OR_NEITHER), "yes or no"),
}

#: Row of any table: value by column, None if missing.
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Form:
    """Format of a value.

    ``factor``: multiplies numbers. ``spec``: format specification. ``looks``: by text, the status
    whose colour it gets. ``name``: name of a special format."""

    factor: float = 1.0
    spec: str = "#.4g"
    looks: Mapping[str, str] = field(default_factory=dict, hash=False)
    name: str = ""


PLAIN = Form()
#: Status whose colour each verdict of a verification or comparison gets.
_VERDICTS = {
    **dict.fromkeys(("passed", "faster"), "ok"),
    **dict.fromkeys(("failed", "partly_fp32", "slower"), "failed"),
    **dict.fromkeys(
        ("unsupported", "not made", "no difference shown", "cannot tell"), "unsupported"
    ),
}
#: Figure as another publisher printed it: text, right-aligned, sorted by value.
PRINTED = Form(name="printed")
#: Devices per node combined with the column ``nodes``: 2n8g.
TOPOLOGY = Form(name="topology")
#: Formats by their names in columns.yaml; other names are format specifications.
_FORMS = {
    "percent": Form(100.0, ".1f"),
    "gibibytes": Form(2.0**-30, ".2f"),
    "gigabytes": Form(1e-9, ".3g"),
    "status": Form(looks={name: name for name in STATUSES}),
    "verdict": Form(looks=_VERDICTS),
    "topology": TOPOLOGY,
    "printed": PRINTED,
    "agrees": Form(looks={"no": "failed"}),
    "plain": PLAIN,
}
#: Types by their names in columns.yaml.
_TYPES = {
    "text": TEXT,
    "whole": WHOLE,
    "count": COUNT,
    "number": NUMBER,
    "yes_no": YES_NO,
    "yes_no_or_neither": YES_NO_OR_NEITHER,
}


@dataclass(frozen=True)
class Column:
    """A column of a table.

    ``unit``: "" for none. ``title``: header, by default the name. ``missing``: text of a missing
    figure in rows where the column ``of`` has a value; None for the default."""

    name: str
    type: str
    explanation: str
    unit: str = ""
    title: str = ""
    form: Form = PLAIN
    flagged: bool = False  # shows the flags of its row
    hidden: bool = False  # only in the CSV file
    optional: bool = False  # left out if no row has a value
    of: str = ""
    missing: str | None = None

    @property
    def header(self) -> str:
        return self.title or self.name.replace("_", " ")

    @property
    def is_number(self) -> bool:
        """Return whether values are formatted as numbers; conditions are formatted as text."""
        return self.type in (WHOLE, COUNT, NUMBER) and self.name not in CONDITIONS


def interval_cells(name: str, ends: Sequence[float | None] | None) -> dict[str, float | None]:
    """Return the values of the columns ``name_ci_low`` and ``name_ci_high``.

    ``ends``: lower and upper end; None without an interval."""
    low, high = ends or (None, None)
    return {f"{name}_ci_low": low, f"{name}_ci_high": high}


@cache
def declarations() -> Mapping[str, Mapping[str, Any]]:
    """Return the settings in tables.yaml by table. The driver needs nothing else of tables."""
    return read_mapping(Path(__file__).with_name("tables.yaml"))


def with_settings(column: Column, settings: Mapping[str, Any]) -> Column:
    """Return a column with the settings of columns.yaml or tables.yaml."""
    given = {"explanation" if name == "help" else name: value for name, value in settings.items()}
    if "type" in given:
        given["type"] = _TYPES[given["type"]]
    if "format" in given:
        text = given.pop("format")
        given["form"] = _FORMS.get(text) or Form(spec=text)
    if "looks" in given:
        given["form"] = Form(looks=given.pop("looks"))
    return replace(column, **given)


def own_columns(declared: Mapping[str, Mapping[str, Any]]) -> dict[str, Column]:
    """Return the columns that a file declares, by name."""
    return {
        name: with_settings(Column(name, NUMBER, ""), settings)
        for name, settings in declared.items()
    }


#: Fields in which cases of one setting may differ; a framework's fastest case counts.
OWN = ("framework", "framework_version", "source", "compiler", *OF_VARIANT, "environment")
#: Fields in which the variants of one case may differ.
OWN_OF_VARIANT = ("framework_version", *OF_VARIANT, "environment")


def _load() -> dict[str, Column]:
    """Return all columns by name: those of axes and conditions, and those of columns.yaml."""
    types = {axes.TEXT: TEXT, axes.COUNT: COUNT, axes.NUMBER: NUMBER, axes.YES_NO: YES_NO}
    columns = {
        axis.name: Column(axis.name, types[axis.form], axis.help, axis.unit, axis.title)
        for axis in axes.CONDITIONS
    }
    columns |= own_columns(read_mapping(Path(__file__).with_name("columns.yaml")))
    sides = (("next_", OWN, "the runner-up"), ("base_", OWN_OF_VARIANT, "the first variant"))
    for prefix, names, whose in sides:
        for name in names:
            side = Column(prefix + name, columns[name].type, f"`{name}` of {whose}", hidden=True)
            columns.setdefault(side.name, side)
    return columns


#: Columns by name.
COLUMNS: Mapping[str, Column] = _load()
#: Names of columns that tables use as a group, by the group's name in tables.yaml.
GROUPS: Mapping[str, Sequence[str]] = {
    "case": KEYS,
    "result": (*KEYS, "matmul_dtypes", "uncompiled"),
    "conditions": CONDITIONS,
    "axes": [axis.name for axis in axes.CONDITIONS if not axis.observed],
    "setting": [name for name in KEYS if name not in OWN],
    "own": OWN,
    "next": [f"next_{name}" for name in OWN],
    "base": [f"base_{name}" for name in OWN_OF_VARIANT if name != "suite_variant"],
    "trained": [name for name in CASE if name != "mode"],
    "recipe": ("epochs", "epoch_steps", "schedule", "learning_rate", "warmup",
               "learning_rate_batch", "weight_decay", "momentum", "label_smoothing", "mixup",
               "start", "data_folder"),
}  # fmt: skip


def names_in(listed: Sequence[str]) -> list[str]:
    """Return names of columns, with each group's name replaced by the names of its columns."""
    return [name for entry in listed for name in GROUPS.get(entry, (entry,))]


def shared(*names: str) -> tuple[Column, ...]:
    """Return columns of the register. Raises KeyError for an unknown name."""
    return tuple(COLUMNS[name] for name in names)
