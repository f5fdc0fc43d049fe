"""Every column of every table is declared once; the page of columns is generated from that."""

from __future__ import annotations

from itertools import chain

import pytest
from framebench.comparison import compare
from framebench.tables import measured, registry
from framebench.tables.table import Table

TABLES = (*registry.known().values(), compare.TABLE)


def test_a_name_means_the_same_in_every_table() -> None:
    meant: dict[str, set[str]] = {}
    ours = [table.columns for table in (*registry.known().values(), compare.TABLE)]
    for column in chain(*ours, [measured.METRIC], measured.FIGURES):
        meant.setdefault(column.name, set()).add(column.explanation)
    assert [name for name, meanings in meant.items() if len(meanings) > 1] == []


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_what_a_declaration_names_is_there(table: Table) -> None:
    assert len(set(table.names)) == len(table.names)
    for column in table.columns:
        named = {column.to, column.share, *({column.follows} & set(table.names))} - {""}
        assert named <= set(table.names), column.name
    assert table.needs in {"", *table.names}
