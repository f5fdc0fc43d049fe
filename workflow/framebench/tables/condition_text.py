"""Conditions as text: varying ones for columns and labels, constant ones for the caption."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from core import axes, observed

from ..cases.conditions import CONDITIONS

#: Row by column, with pandas' values.
Row = Mapping[Any, Any]

_REGISTER = {axis.name: axis for axis in (*observed.CONDITIONS, *axes.further())}
#: Short forms for labels without a title that differ from those of lists of cases.
_SHORT: dict[str, Callable[[Any], str]] = {
    **{name: axis.text for name, axis in _REGISTER.items()},
    "sequence_length": lambda length: f"length {length}",
    "on_machine": _REGISTER["machine"].text,
}


def text(name: str, value: Any) -> str:
    """Return a condition as text for a cell; "" if it is unknown or the default."""
    if value is None or value is False:
        return ""
    is_missing = value != value  # pandas.NA gives itself, neither true nor false
    usual = _REGISTER[name].default if name in _REGISTER else None
    if is_missing is value or is_missing or value == usual:
        return ""
    return "yes" if value is True else str(value)


def short(name: str, value: Any) -> str:
    """Return a condition as text that also names it; "" if :func:`text` is ""."""
    said = text(name, value)
    return _SHORT[name](value) if said and name in _SHORT else said


def differing(rows: Sequence[Row], more: Sequence[str] = ()) -> list[str]:
    """Return the names of conditions in which ``rows`` differ.

    ``more``: further columns that count as conditions."""
    names = [*_columns(rows), *more]
    return [name for name in names if len({text(name, row[name]) for row in rows}) > 1]


def telling(rows: Sequence[Row]) -> Callable[[Row], str]:
    """Return a function that gives a row's conditions in which ``rows`` differ.

    The function returns "" for a row with the defaults."""
    apart = differing(rows)
    return lambda row: ", ".join(filter(None, (short(name, row[name]) for name in apart)))


def named(
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
        word: [one for one in differing(some, more) if one not in but]
        for word, some in alike.items()
    }

    def full(row: Row) -> str:
        words = [name(row), *(short(one, row[one]) for one in apart[name(row)])]
        return " ".join(filter(None, words))

    return full


def _columns(rows: Sequence[Row]) -> Iterable[str]:
    return [name for name in CONDITIONS if rows and name in rows[0]]
