"""Values as text for people: numbers, conditions, formatted cells.

Values are rounded and formatted here, for Markdown, page and terminal; CSV files have full
precision. Numbers of a column have equal decimals. A missing number is a dash with its reason,
never a zero."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from core import axes
from core.text import counted as counted

from ..cases.conditions import CONDITIONS
from ..cases.names import topology
from .columns import NUMBER, PLAIN, PRINTED, TOPOLOGY, Column, Row

#: Missing figures on the page, and in plain text and Markdown.
DASH, MISSING = "\N{EN DASH}", "-"
LONG = 28  # characters beyond which a cell may wrap
LONG_NOTE = 160  # characters beyond which a note gets more width
_EXPONENT_FROM = 1e7


class Cell(NamedTuple):
    """A formatted cell.

    ``kind``: CSS classes. ``why``: why there is no figure. ``flags``: flags of the figure."""

    text: str
    kind: str = ""
    why: str = ""
    flags: str = ""


# ---- numbers -------------------------------------------------------------------------------------


def number(value: float) -> str:
    """Return four significant digits without closing zeros, for plots and captions."""
    return rounded(value, ".4g")


def rounded(value: Any, spec: str) -> str:
    """Return a number by a format specification, without an exponent below 10^7."""
    text = format(value, spec).removesuffix(".")
    is_short = spec.endswith("g") and "e+" in text and abs(value) < _EXPONENT_FROM
    return f"{value:.0f}" if is_short else text


# ---- conditions and parameters -------------------------------------------------------------------

_REGISTER = {axis.name: axis for axis in axes.CONDITIONS}
#: Text of a condition in labels, where it differs from the text in a cell.
_SHORT: dict[str, Callable[[Any], str]] = {
    **{name: axis.text for name, axis in _REGISTER.items()},
    "batch_per_device": lambda batch: f"batch {batch}",
    "compiler": lambda name: "" if name == "none" else name,
    "sequence_length": lambda length: f"length {length}",
    "on_machine": _REGISTER["machine"].text,
}


def condition_text(name: str, value: Any) -> str:
    """Return a condition as text for a cell; "" if it is unknown or the default."""
    if value is None or value is False:
        return ""
    is_missing = value != value  # pandas.NA != pandas.NA is pandas.NA, neither true nor false
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


def own_parameters(rows: Sequence[Row]) -> Callable[[Row], str]:
    """Return a function that gives a row's parameters that are not common to its mode."""
    common: dict[str, set[str]] = {}
    for row in rows:
        own = {*plain(row["parameters"]).split(", ")}
        mode = str(row.get("mode", ""))
        common[mode] = common.get(mode, own) & own

    def text_of(row: Row) -> str:
        shared = common[str(row.get("mode", ""))]
        own = plain(row["parameters"]).split(", ")
        return ", ".join(text for text in own if text not in shared)

    return text_of


# ---- cells ---------------------------------------------------------------------------------------


def plain(value: Any) -> str:
    """Return a value as text; "" if it is missing."""
    return "" if value is None else str(value)


def cell_text(column: Column, value: Any) -> str:
    """Return a value that is not a figure as text."""
    if column.name in CONDITIONS:
        return condition_text(column.name, value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return plain(value)


def cells(column: Column, rows: Sequence[Row]) -> list[Cell]:
    """Return the formatted cells of a column."""
    if column.form is TOPOLOGY:
        texts = [topology(row.get("nodes", 1), row["devices_per_node"]) for row in rows]
        unknown = Cell(DASH, "number missing", "not known")
        return [Cell(text, "number") if text else unknown for text in texts]
    if column.is_number:
        return _numbers(column, rows)
    if rows and isinstance(rows[0][column.name], Cell):
        return [row[column.name] for row in rows]
    texts = [cell_text(column, row[column.name]) for row in rows]
    if column.form is PRINTED:  # shown as printed, even if it is not a number
        return [Cell(text, "number") for text in texts]
    if looks := column.form.looks:
        return [Cell(text or DASH, f"status {looks.get(text, '')}".strip()) for text in texts]
    longest = max(map(len, texts), default=0)
    kind = "note long" if longest > LONG_NOTE else "case" if longest > LONG else ""
    return [Cell(text, kind) for text in texts]


def _numbers(column: Column, rows: Sequence[Row]) -> list[Cell]:
    form, is_whole = column.form, column.form is PLAIN and column.type != NUMBER
    made = []
    for row in rows:
        value = row[column.name]
        if value is None:
            made.append(Cell(DASH, "number missing", _why(column, row)))
        else:
            text = str(value) if is_whole else rounded(value * form.factor, form.spec)
            flags = plain(row.get("flags")) if column.flagged else ""
            made.append(Cell(text, "number", flags=flags))
    return made


def _why(column: Column, row: Row) -> str:
    """Return why a figure is missing, as far as the column or the row says it."""
    if (status := row.get("status") or "ok") != "ok":
        return str(status)
    if column.missing is not None and (not column.of or row[column.of]):
        return column.missing
    reasons = [name for name in ("reason", "note") if row.get(name)]
    if reasons:
        return f"see {reasons[0]}"
    return "not known" if column.missing is None else ""


@lru_cache(maxsize=4096)  # many cells are equal
def escape(text: str) -> str:
    """Return text safe for one cell of Markdown: one line, without links, images or code.

    Reasons come from foreign programs."""
    plain = re.sub(r"([\\`*\[\]|])", r"\\\1", " ".join(text.split()))
    return plain.replace("&", "&amp;").replace("<", "&lt;")
