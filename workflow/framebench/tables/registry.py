"""Registry of tables made from records.

Modules in ``declared`` contribute their TABLES; each benchmark other than steps adds one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from .. import feature_registry as features
from . import declared, measured
from .table import Inputs, Table

#: Groups in page order; other groups follow. Within a group, modules determine the order.
GROUPS = (
    "Answers", "Results", "Scaling", "Speed-ups", "Where the time goes", "Memory", "Verification",
)  # fmt: skip
#: Tables in the same folder that need more than records.
ELSEWHERE = ("compare",)


@cache
def known() -> Mapping[str, Table]:
    """Return declared tables by name, in page order. Raises ValueError for duplicate names."""
    tables: list[Table] = []
    for name in sorted(module.name for module in iter_modules(declared.__path__, "declared.")):
        tables += import_module(f".{name}", __package__).TABLES
    if len({table.name for table in tables}) < len(tables):
        raise ValueError(f"two tables have one name: {sorted(table.name for table in tables)}")
    return {table.name: table for table in sorted(tables, key=_place)}


def tables_of(inputs: Inputs) -> list[Table]:
    """Return the declared tables and those of the other benchmarks present.

    A benchmark with the name of another table gets the suffix _kind."""
    others = measured.tables(inputs.others)
    written = (name for feature in features.known() for name in feature.tables)
    taken = {*known(), *ELSEWHERE, *written}
    return [
        *known().values(),
        *(
            replace(other, name=f"{other.name}_kind") if other.name in taken else other
            for other in others
        ),
    ]


def _place(table: Table) -> tuple[int, str]:
    if table.group in GROUPS:
        return GROUPS.index(table.group), ""
    return len(GROUPS), table.group
