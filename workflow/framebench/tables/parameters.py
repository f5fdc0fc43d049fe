"""Benchmark parameters as text: common ones once, the others per case."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .columns import Row

_COMMA = ", "


def common(rows: Sequence[Row], name: str = "parameters") -> dict[str, str]:
    """Return, by mode, the parameters that all ``rows`` of that mode share; "" for none.

    ``name``: column with a list of parameters."""
    lists = _lists(rows, name)
    return {mode: _COMMA.join(one for one in some[0] if _in_all(one, some))
            for mode, some in lists.items()}  # fmt: skip


def telling(rows: Sequence[Row], name: str = "parameters") -> Callable[[Row], str]:
    """Return a function that gives a row's parameters that are not :func:`common`."""
    shared = {mode: {*text.split(_COMMA)} for mode, text in common(rows, name).items()}

    def told(row: Row) -> str:
        own = str(row[name] or "").split(_COMMA)
        return _COMMA.join(one for one in own if one not in shared[_mode(row)])

    return told


def _lists(rows: Sequence[Row], name: str) -> dict[str, list[list[str]]]:
    lists: dict[str, dict[str, list[str]]] = {}
    for row in rows:
        text = str(row[name] or "")
        lists.setdefault(_mode(row), {})[text] = text.split(_COMMA)
    return {mode: [*some.values()] for mode, some in lists.items()}


def _in_all(one: str, lists: Sequence[Sequence[str]]) -> bool:
    return all(one in own for own in lists)


def _mode(row: Row) -> str:
    return str(row.get("mode", ""))
