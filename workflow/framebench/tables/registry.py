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
from .columns import declarations
from .table import Inputs, Table

#: Tables in the same folder that need more than records.
ELSEWHERE = ("compare",)


@cache
def known() -> Mapping[str, Table]:
    """Return declared tables by name, in the order of tables.yaml. Tables from elsewhere follow."""
    modules = (module.name for module in iter_modules(declared.__path__, ".declared."))
    every = [table for name in modules for table in import_module(name, __package__).TABLES]
    found = {table.name: table for table in every}
    return {name: found[name] for name in dict.fromkeys((*declarations(), *found))}


def tables_of(inputs: Inputs) -> list[Table]:
    """Return the declared tables and those of the other benchmarks present.

    A benchmark with the name of another table gets the suffix _kind."""
    written = (name for feature in features.known() for name in feature.tables)
    taken = {*known(), *ELSEWHERE, *written}
    return [
        *known().values(),
        *(
            replace(other, name=f"{other.name}_kind") if other.name in taken else other
            for other in measured.tables(inputs.others)
        ),
    ]
