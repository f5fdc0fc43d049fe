"""Declaration of columns, and the register of columns that several tables share.

A column is declared once, with its value, unit, meaning and format. Data frames take their values
and types from it; Markdown, the report and docs/columns.md read the same declaration. Columns
of a single table are declared in its module."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from typing import Any

from core import axes, observed

from ..cases.conditions import CONDITIONS, COUNTS, KEYS, path_of
from ..config.statuses import STATUSES
from .results import CaseResult, flags_of, highest

#: Types by pandas' names. COUNT and NUMBER may be missing, WHOLE may not.
TEXT, WHOLE, COUNT, NUMBER, YES_NO, YES_NO_OR_NEITHER = (
    "str", "int64", "Int64", "float64", "bool", "boolean"
)  # fmt: skip
NUMBERS = (WHOLE, COUNT, NUMBER)

#: Row of any table: value by column, None if missing.
Row = Mapping[str, Any]
#: Function that returns the value of a case.
Value = Callable[[CaseResult], Any]


@dataclass(frozen=True)
class Form:
    """Format of a value.

    ``factor``: multiplies numbers. ``spec``: format specification; "" gives a column the decimals
    that its smallest number needs. ``looks``: status whose colour a text has. ``name``: of a
    special format."""

    factor: float = 1.0
    spec: str = ""
    looks: Mapping[str, str] = field(default_factory=dict, hash=False)
    name: str = ""


PLAIN = Form()
PERCENT = Form(100.0, ".1f")
GIBIBYTES = Form(2.0**-30, ".2f")
TENTHS = Form(spec=".1f")
THOUSANDTHS = Form(spec=".3f")
P_VALUE = Form(spec=".4f")
THREE_DIGITS = Form(spec=".3g")
SCIENTIFIC = Form(spec=".1e")
STATUS = Form(looks={name: name for name in STATUSES})
#: Colours of verdicts of verifications and comparisons.
VERDICT = Form(
    looks={
        "passed": "ok",
        "failed": "failed",
        "unsupported": "unsupported",
        "partly_fp32": "failed",
        "not made": "unsupported",
        "faster": "ok",
        "slower": "failed",
        "no difference shown": "unsupported",
        "cannot tell": "unsupported",
    }
)
AGREES = Form(looks={"no": "failed"})
#: Figure as printed by others: text, right-aligned, sorted by its value.
PRINTED = Form(name="printed")
#: Devices per node combined with the column ``nodes``: 2n8g.
TOPOLOGY = Form(name="topology")


@dataclass(frozen=True)
class Column:
    """A column of a table.

    ``unit``: "" for none. ``title``: header, by default the name. ``value``: function that returns
    the value of a case; None if only the rows of a table have it.

    CSV files have each column by itself. Readers see some columns merged: ``to`` names the upper
    end of a range, ``share`` a fraction shown as percentage in brackets, ``detail`` text in
    brackets."""

    name: str
    type: str
    explanation: str
    unit: str = ""
    value: Value | None = field(default=None, hash=False)
    title: str = ""
    form: Form = PLAIN
    flagged: bool = False  # shows the flags of its row
    to: str = ""
    share: str = ""
    detail: str = ""  # column whose text follows in brackets
    note: bool = False  # remark on the row: last column, or a footnote
    hoisted: bool = False  # moves to the caption if all rows have the same value
    follows: str = ""  # moves to the caption if this column determines it
    listed: bool = False  # list whose items that all rows of a mode share move to the caption
    hidden: bool = False  # shown in another column only
    figure: bool = False  # figure that ratios to a baseline make sense for
    optional: bool = False  # left out if no row has a value
    #: Return why a value is missing; "" if the notes of the row say so.
    why: Callable[[Row], str] | None = field(default=None, hash=False)
    about: str = ""  # explanation that readers need, below the table

    @property
    def header(self) -> str:
        return self.title or self.name.replace("_", " ")

    @property
    def is_number(self) -> bool:
        """Return whether values are formatted as numbers; those of conditions are text."""
        return self.type in NUMBERS and self.name not in CONDITIONS


def interval(
    name: str, quantity: str, unit: str = "", value: Value | None = None, **shown: Any
) -> list[Column]:
    """Return columns of both ends of a 95 % interval, which readers see as one.

    ``value``: function that returns both ends, or None. ``shown``: further arguments of
    :class:`Column`."""
    end = f"{name}_ci_high"
    text = "end of the 95 % interval of"
    first = {"title": "95 % interval", **shown}
    low, high = (_end(value, at) if value else None for at in (0, 1))
    return [
        Column(f"{name}_ci_low", NUMBER, f"lower {text} {quantity}", unit, low, to=end, **first),
        Column(end, NUMBER, f"upper {text} {quantity}", unit, high),
    ]


def _end(value: Value, at: int) -> Value:
    return lambda case: ends[at] if (ends := value(case)) else None


def interval_cells(name: str, ends: Sequence[float | None] | None) -> dict[str, float | None]:
    """Return the values of the columns that :func:`interval` declares.

    ``ends``: lower and upper end; None without an interval."""
    low, high = ends or (None, None)
    return {f"{name}_ci_low": low, f"{name}_ci_high": high}


def why_no_interval(
    figure: str = "",
    *,
    is_ratio: bool = False,
    confidence: float | None = None,
    lacking: Callable[[Row], str] = lambda row: "",
    more: str = "",
) -> Callable[[Row], str]:
    """Return a function that says why the figure in a column has no interval.

    Parameters
    ----------
    figure : its column; "" for the median of a row with a status, which says why it is missing
    is_ratio : whether it is a ratio of two cases
    confidence : of the interval, by default 95 %
    lacking : says why the figure is missing; "" if the row says so
    more : what the repeats need besides
    """

    def why(row: Row) -> str:
        from ..statistics import intervals  # slow to import, and plans need only names

        if row.get("status", "ok") != "ok" if not figure else row[figure] is None:
            return lacking(row)
        fewest = intervals.repeats_for_ratio if is_ratio else intervals.repeats_for_interval
        count = fewest() if confidence is None else fewest(confidence)
        return f"needs {count} repeats{more}"

    return why


#: As :func:`why_no_interval`, of the ratio in a column.
why_no_ratio_interval = partial(why_no_interval, is_ratio=True)


def why_no_spread(row: Row) -> str:
    """Return why repeats have no spread; "" if the status says so."""
    return "needs 2 repeats" if row["status"] == "ok" else ""


_TYPES = {axes.TEXT: TEXT, axes.COUNT: COUNT, axes.YES_NO: YES_NO}
_OF_CONDITIONS = [
    Column(axis.name, _TYPES[axis.form], axis.help, axis.unit, title=axis.title, follows="model")
    for axis in (*observed.CONDITIONS, *axes.further())
]
_OBSERVED = {axis.name for axis in observed.CONDITIONS if axis.observed}
#: Columns of the axes among the conditions.
AXIS_COLUMNS = [column for column in _OF_CONDITIONS if column.name not in _OBSERVED]

RATE = "samples/s"  # the column `unit` says which samples

_DECLARED = [
    Column("framework", TEXT, "the framework"),
    Column(
        "framework_version", TEXT, "version that the framework reports", title="version",
        hoisted=True, follows="framework",
    ),
    Column(
        "source", TEXT, "who measured: `framebench`, or the name of an imported set",
        hoisted=True, follows="framework",
    ),
    Column("model", TEXT, "the model", hoisted=True),
    Column("mode", TEXT, "`train` or `inference`", hoisted=True),
    Column(
        "precision", TEXT, "name of the precision, or as printed by others", hoisted=True,
        detail="matmul_dtypes",
    ),
    Column(
        "compiler", TEXT, "the framework's graph compiler, or `none`", hoisted=True,
        detail="uncompiled",
    ),
    Column("nodes", COUNT, "number of nodes", hidden=True),
    Column(
        "devices_per_node", COUNT, "devices on each of them", title="devices", form=TOPOLOGY
    ),
    Column(
        "batch_per_device", COUNT, "batch of each device", "samples", title="batch per device",
        hoisted=True,
    ),
    *_OF_CONDITIONS,
    # Execution in the framework.
    Column(
        "matmul_dtypes", TEXT,
        "dtypes of the matmuls that were observed, the commonest first, where the "
        "precision leaves them to the framework", value=attrgetter("matmul_dtypes"),
    ),
    Column(
        "uncompiled", TEXT,
        "how the framework runs without a compiler: `op by op`, `eager`, as a `graph`, or "
        "`compiled by the model`; of `none` alone", value=attrgetter("uncompiled"),
    ),
    # Outcome.
    Column(
        "status", TEXT, "`" + "`, `".join(STATUSES[:-1]) + f"` or `{STATUSES[-1]}`", form=STATUS,
        hoisted=True, value=attrgetter("status"),
    ),
    Column(
        "reason", TEXT, "why the status is another than `ok`, or why a figure is missing",
        note=True, value=attrgetter("reason"),
    ),
    Column(
        "excluded", TEXT, "figures that take part in no comparison, because their verification "
        "failed or part of the work ran in another precision, each with the reason", hidden=True,
    ),
    Column("note", TEXT, "why a figure is missing, or why it differs", note=True),
    Column(
        "flags", TEXT, "quality flags of the figure, between blanks", hidden=True,
        value=flags_of,
    ),
    Column(
        "remarks", TEXT, "what is odd about the repeats, in words", note=True,
        value=lambda case: "; ".join(case.remarks),
    ),
    Column(
        "repeats", WHOLE, "repeats behind the figure; without one, those that were tried",
        value=lambda case: len(case.values) or len(case.runs),
    ),
    # Throughput.
    Column(
        "unit", TEXT, "of the throughput, or of the metric", hoisted=True, follows="model",
        value=attrgetter("unit"),
    ),
    Column(
        "throughput_median", NUMBER, "median over repeats, of all devices together", RATE,
        title="median", flagged=True, figure=True,
        value=attrgetter("throughput"),
    ),
    Column(
        "peak_device_memory_bytes", COUNT, "most that any rank held on its device", "bytes",
        title="device GiB", form=GIBIBYTES, optional=True, value=highest("peak_device_memory"),
    ),
    Column(
        "peak_host_memory_bytes", COUNT, "most that any rank held on the host", "bytes",
        title="host GiB", form=GIBIBYTES, value=highest("peak_host_memory"),
    ),
    # Ratios.
    Column(
        "devices", WHOLE, "nodes x devices per node", hidden=True,
        value=attrgetter("case.devices"),
    ),
    Column(
        "speedup", NUMBER, "median over the median of the baseline", title="speed-up",
        flagged=True,
    ),
    *interval(
        "speedup", "the speed-up", why=why_no_ratio_interval("speedup")
    ),
    Column(
        "verdict", TEXT,
        "of the ratio: `faster`, `slower`, `no difference shown` or `cannot tell`; adjusted for "
        "the number of ratios in the table, which an interval is not",
        form=VERDICT,
    ),
    # Verification and printed figures.
    Column("quantity", TEXT, "what is compared, or what a printed figure is"),
    Column("recomputed", NUMBER, "what the runs, or the other figures, give"),
]  # fmt: skip


def _key_value(name: str) -> Value:
    """Return the function of an axis or condition; None for a count that an import lacks."""
    value: Value = attrgetter(path_of(name))
    return (lambda case: value(case) or None) if name in COUNTS else value


#: Shared columns by name, in the order of docs/columns.md.
COLUMNS = {
    column.name: replace(column, value=_key_value(column.name)) if column.name in KEYS else column
    for column in _DECLARED
}
#: Columns of the case and its conditions.
CASE_COLUMNS = tuple(COLUMNS[name] for name in KEYS)
#: Columns of the case and its execution.
RESULT_COLUMNS = (*CASE_COLUMNS, COLUMNS["matmul_dtypes"], COLUMNS["uncompiled"])


def shared(*names: str) -> tuple[Column, ...]:
    """Return columns of the register. Raises KeyError for an unknown name."""
    return tuple(COLUMNS[name] for name in names)
