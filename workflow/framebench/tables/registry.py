"""All tables that are made of records: whatever the modules in ``declared`` call TABLES, and one
for each other kind of measurement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from . import declared, measured
from .table import Inputs, Table

#: Those of a group follow each other, in the order of their modules; other groups come behind.
GROUPS = (
    *("Answers", "Results", "Scaling", "Speed-ups", "Where the time goes", "Memory", "Parity"),
    "Nodes",
)
#: Tables of the same folder that are not made of records alone.
ELSEWHERE = ("compare", "gate", "bisect", "history", "changes", "lint", "published")


@cache
def known() -> Mapping[str, Table]:
    """By name, in the order of the page. Raises ValueError for a name that two have."""
    modules = sorted(module.name for module in iter_modules(declared.__path__))
    tables: list[Table] = []
    for name in modules:
        tables += import_module(f"{declared.__name__}.{name}").TABLES
    if len({table.name for table in tables}) < len(tables):
        raise ValueError(f"two tables have one name: {sorted(table.name for table in tables)}")
    return {table.name: table for table in sorted(tables, key=_place)}


def tables_of(inputs: Inputs) -> list[Table]:
    """Those that are known, and those of the other kinds of measurement that there are. A kind
    that is called like another table gives its own a longer name."""
    others = measured.tables(inputs.others)
    taken = {*known(), *ELSEWHERE}
    return [
        *known().values(),
        *(replace(one, name=f"{one.name}_kind") if one.name in taken else one for one in others),
    ]


def _place(table: Table) -> tuple[int, str]:
    if table.group in GROUPS:
        return GROUPS.index(table.group), ""
    return len(GROUPS), table.group
