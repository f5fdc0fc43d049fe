"""Values as text for people: numbers, conditions, formatted cells, footnotes.

Values are rounded and formatted here, for Markdown, page and terminal; CSV files have full
precision. Numbers of a column have equal decimals. A missing number is a dash with its reason,
never a zero."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from core import axes, observed
from core.text import counted as counted

from ..cases.conditions import CONDITIONS, COUNTS
from ..cases.names import topology
from .columns import (
    NUMBERS,
    PRINTED,
    TOPOLOGY,
    YES_NO,
    YES_NO_OR_NEITHER,
    Column,
    Row,
)

#: Missing figures on the page and in plain text.
DASH, MISSING = "\N{EN DASH}", "-"
LONG = 28  # characters from which on a cell may wrap
LONG_NOTE = 160  # characters from which on a note gets more width
_EXPONENT_FROM = 1e7


class Cell(NamedTuple):
    """A formatted cell.

    ``kind``: CSS classes. ``sort``: sort key, if it is not the text. ``why``: why there is no
    figure. ``flags``: flags of the figure."""

    text: str
    kind: str = ""
    sort: str | None = None
    why: str = ""
    flags: str = ""

    @property
    def is_missing(self) -> bool:
        return self.kind.endswith("missing")


# ---- numbers ------------------------------------------------------------------------------------


def figure(value: float, digits: int = 3) -> str:
    """Return a number with so many digits, or all digits before the point."""
    if not math.isfinite(value) or value == int(value):
        return f"{value:.0f}"
    return f"{value:.{max(0, digits - 1 - math.floor(math.log10(abs(value))))}f}"


def number(value: float) -> str:
    """Return four significant digits without closing zeros, for plots and captions."""
    if not abs(value) < _EXPONENT_FROM:
        return f"{value:.4g}"
    text = figure(value, 4)
    return text.rstrip("0").rstrip(".") if "." in text else text


def rounded(value: Any, spec: str) -> str:
    """Return a number by a format specification, without an exponent below 10^7."""
    text = format(value, spec).removesuffix(".")
    is_short = spec.endswith("g") and "e+" in text and abs(value) < _EXPONENT_FROM
    return f"{value:.0f}" if is_short else text


# ---- conditions and parameters ------------------------------------------------------------------

_REGISTER = {axis.name: axis for axis in (*observed.CONDITIONS, *axes.further())}
#: Short forms for labels without a title that differ from those of lists of cases.
_SHORT: dict[str, Callable[[Any], str]] = {
    **{name: axis.text for name, axis in _REGISTER.items()},
    "sequence_length": lambda length: f"length {length}",
    "on_machine": _REGISTER["machine"].text,
}


def condition_text(name: str, value: Any) -> str:
    """Return a condition as text for a cell; "" if it is unknown or the default."""
    if value is None or value is False:
        return ""
    is_missing = value != value  # pandas.NA gives itself, neither true nor false
    usual = _REGISTER[name].default if name in _REGISTER else None
    if is_missing is value or is_missing or value == usual:
        return ""
    return "yes" if value is True else str(value)


def condition_label(name: str, value: Any) -> str:
    """Return a condition as text that also names it; "" if :func:`condition_text` is ""."""
    said = condition_text(name, value)
    return _SHORT[name](value) if said and name in _SHORT else said


def differing(rows: Sequence[Row], more: Sequence[str] = ()) -> list[str]:
    """Return the names of conditions in which ``rows`` differ.

    ``more``: further columns that count as conditions."""
    if len(rows) < 2:
        return []
    names = [*(name for name in CONDITIONS if name in rows[0]), *more]
    return [name for name in names if len({condition_text(name, row[name]) for row in rows}) > 1]


def differing_conditions(rows: Sequence[Row]) -> Callable[[Row], str]:
    """Return a function that gives a row's conditions in which ``rows`` differ.

    The function returns "" for a row with the defaults."""
    apart = differing(rows)
    return lambda row: ", ".join(filter(None, (condition_label(name, row[name]) for name in apart)))


def distinct_names(
    rows: Sequence[Row],
    name: Callable[[Row], str],
    but: Collection[str] = (),
    more: Sequence[str] = (),
) -> Callable[[Row], str]:
    """Return a function that gives a row's ``name`` and its distinguishing conditions.

    Conditions are added only if rows of the same name differ in them. ``but``: conditions never
    added. ``more``: see :func:`differing`."""
    alike: dict[str, list[Row]] = {}
    for row in rows:
        alike.setdefault(name(row), []).append(row)
    apart = {
        word: [text for text in differing(some, more) if text not in but]
        for word, some in alike.items()
    }

    def full(row: Row) -> str:
        parts = [name(row), *(condition_label(text, row[text]) for text in apart[name(row)])]
        return " ".join(filter(None, parts))

    return full


def common_parameters(rows: Sequence[Row], name: str = "parameters") -> dict[str, str]:
    """Return, by mode, the parameters that all ``rows`` of that mode share; "" for none.

    ``name``: column with a list of parameters."""
    texts: dict[str, dict[str, None]] = {}
    for row in rows:
        texts.setdefault(_mode(row), {})[plain(row[name])] = None
    lists = {mode: [text.split(", ") for text in some] for mode, some in texts.items()}
    return {
        mode: ", ".join(text for text in some[0] if all(text in own for own in some))
        for mode, some in lists.items()
    }


def own_parameters(rows: Sequence[Row], name: str = "parameters") -> Callable[[Row], str]:
    """Return a function that gives a row's parameters that are not common to its mode."""
    shared = {mode: {*text.split(", ")} for mode, text in common_parameters(rows, name).items()}

    def text_of(row: Row) -> str:
        own = plain(row[name]).split(", ")
        return ", ".join(text for text in own if text not in shared[_mode(row)])

    return text_of


def _mode(row: Row) -> str:
    return str(row.get("mode", ""))


# ---- cells --------------------------------------------------------------------------------------


def plain(value: Any) -> str:
    """Return a value as text; "" if it is missing."""
    return "" if value is None else str(value)


def cell_text(column: Column, row: Row) -> str:
    """Return a cell's text, with its detail in brackets."""
    value = row[column.name]
    text = condition_text(column.name, value) if column.name in CONDITIONS else plain(value)
    detail = row.get(column.detail)
    return f"{text} ({detail})" if detail else text


def cells(column: Column, rows: Sequence[Row], notes: Sequence[str]) -> Iterator[Cell]:
    """Yield the formatted cells of a column. ``notes``: columns with notes on a row."""
    values = [row[column.name] for row in rows]
    if column.form is TOPOLOGY:
        return map(_topology, rows)
    if column.note:
        return (
            Cell(text, "note" + " long" * (len(text) > LONG_NOTE)) for text in map(plain, values)
        )
    if column.is_number:
        return _numbers(column, rows, notes)
    if column.form is PRINTED:  # as printed, even if it is no number
        return (_printed(column, row) for row in rows)
    if column.type in NUMBERS:  # numeric conditions, where the default is blank
        texts = [plain(value) for value in values]
    elif column.type in (YES_NO, YES_NO_OR_NEITHER) and column.name not in CONDITIONS:
        texts = ["" if value is None else "yes" if value else "no" for value in values]
    elif column.listed:
        texts = [*map(own_parameters(rows, column.name), rows)]
    else:
        texts = [cell_text(column, row) for row in rows]
    if looks := column.form.looks:
        return (Cell(text or DASH, _status(looks.get(text, ""))) for text in texts)
    kind = "case" if max(map(len, texts), default=0) > LONG else ""
    return (Cell(text, kind) for text in texts)


def _printed(column: Column, row: Row) -> Cell:
    text = plain(row[column.name])
    if not text and column.why:
        return Cell(DASH, "number missing", "", column.why(row))
    flags = plain(row.get("flags")).split() if column.flagged else []
    return Cell(text, "number", _sort_key(text), flags=" ".join(flags))


def _status(look: str) -> str:
    return f"status {look}" if look else ""


def _topology(row: Row) -> Cell:
    nodes, devices = row.get("nodes", 1), row["devices_per_node"]
    if nodes in (None, "", 0) or devices in (None, "", 0):
        return Cell(DASH, "number missing", "", "not known")
    order = int(nodes) * int(devices) * 10_000 + int(nodes)
    return Cell(topology(nodes, devices), "number", str(order))


def _numbers(column: Column, rows: Sequence[Row], notes: Sequence[str]) -> Iterator[Cell]:
    """Yield cells of numbers, ranges, or numbers with a share."""
    values = [row[column.name] for row in rows]
    ends = [row[column.to] for row in rows] if column.to else []
    write = _writer(column, [*values, *ends])
    is_whole = column.type != "float64" and column.form.factor == 1
    for number, (row, value) in enumerate(zip(rows, values, strict=True)):
        # Counts of 0 are unknown: imported figures and benchmarks without a model have none.
        is_unknown = value is None or (value == 0 and column.name in COUNTS)
        if is_unknown or (ends and ends[number] is None):
            yield Cell(DASH, "number missing", "", _why(column, row, notes))
            continue
        text = write(value)
        if ends:
            text += f" {DASH} {write(ends[number])}"
        elif column.share and row[column.share] is not None:
            text += f" ({100 * row[column.share]:.0f})"
        flags = row.get("flags", "") if column.flagged else ""
        sort = None if is_whole and not ends else repr(value)
        yield Cell(text, "number", sort, flags=flags)


def _writer(column: Column, values: Sequence[Any]) -> Callable[[Any], str]:
    form = column.form
    if form.spec:
        return lambda value: rounded(value * form.factor, form.spec)
    if column.type != "float64":
        return str
    digits = _digits(values)
    return lambda value: f"{value:.{digits}f}"


def _digits(values: Sequence[Any]) -> int:
    """Return the decimals of a column: 2, or more if the smallest value needs them."""
    smallest = min((abs(value) for value in values if value), default=1.0)
    if not 0 < smallest < 1:
        return 2
    return min(6, 2 - math.floor(math.log10(smallest)))


def _why(column: Column, row: Row, notes: Sequence[str]) -> str:
    """Return why a figure is missing; "" if the status or a note of the row says so."""
    if column.why:
        return column.why(row)
    is_explained = row.get("status", "ok") != "ok" or any(row[name] for name in notes)
    return "" if is_explained else "not known"


def _sort_key(value: str) -> str:
    try:
        return repr(float(value))
    except ValueError:
        return ""


# ---- Markdown -----------------------------------------------------------------------------------


class Footnotes:
    """Footnotes with reasons, numbered by first use, each once."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def mark(self, text: str) -> str:
        """Return the footnote mark of a reason, " [3]"; "" for no text."""
        if not text:
            return ""
        return f" [{self._numbers.setdefault(text, len(self._numbers) + 1)}]"

    def numbered(self) -> list[tuple[int, str]]:
        """Return each reason with its number."""
        return [(number, text) for text, number in self._numbers.items()]

    def lines(self) -> list[str]:
        # An escaped bracket, because "[3]:" would be a hidden link definition.
        return [f"\\[{number}]: {escape(text)}" for text, number in self._numbers.items()]


@lru_cache(maxsize=4096)  # cells repeat each other
def escape(text: str) -> str:
    """Return text safe for one cell: one line, without links, images or code.

    Reasons come from foreign programs."""
    plain = re.sub(r"([\\`*\[\]|])", r"\\\1", " ".join(text.split()))
    return plain.replace("&", "&amp;").replace("<", "&lt;")
