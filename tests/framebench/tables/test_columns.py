"""Each column that the declaration of a table names is a column of that table."""

from __future__ import annotations

from framebench.comparison import compare
from framebench.tables import registry


def test_what_a_declaration_names_is_there() -> None:
    for table in (*registry.known().values(), compare.TABLE):
        assert table.answering or table.crosstab, table.name
        columns = table.overview.columns if table.overview else table.columns
        names = {column.name for column in columns}
        assert len(names) == len(columns), table.name
        needed = {column.of for column in columns} | {table.needs, table.order.removeprefix("-")}
        assert needed | {*table.answers} <= {"", *names}, table.name
