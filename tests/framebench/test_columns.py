"""Every column of every table is declared once, and the page that explains them is made of that."""

from __future__ import annotations

import pytest
from framebench import cli
from framebench.audit import findings, published
from framebench.comparison import compare
from framebench.tables import (
    case_tables,
    columns,
    efficiency,
    largest_batch,
    measured,
    parity_table,
    scaling,
    split_table,
)

from ..conftest import ROOT

TABLES = (
    case_tables.SUMMARY_COLUMNS,
    case_tables.AMP_SPEEDUP_COLUMNS,
    case_tables.COMPILER_SPEEDUP_COLUMNS,
    case_tables.LATENCY_COLUMNS,
    scaling.WEAK_COLUMNS,
    scaling.STRONG_COLUMNS,
    split_table.COLUMNS,
    efficiency.COLUMNS,
    compare.COLUMNS,
    parity_table.COLUMNS,
    largest_batch.LARGEST_COLUMNS,
    largest_batch.ATTEMPT_COLUMNS,
    measured.AXES,
    measured.FIGURES,
    published.COMPARED_COLUMNS,
    findings.COLUMNS,
)


def test_every_column_of_a_table_is_explained_and_nothing_else() -> None:
    assert {name for table in TABLES for name in table} == columns.COLUMNS.keys()


def test_the_page_is_the_one_that_is_made(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["columns"]) == 0
    page = (ROOT / "docs" / "columns.md").read_text(encoding="utf-8")
    assert page == capsys.readouterr().out, "python workflow/framebench columns > docs/columns.md"


def test_a_column_that_is_not_declared_is_refused() -> None:
    with pytest.raises(KeyError, match="colour"):
        columns.frame(["framework", "colour"], [])


def test_frames_have_the_declared_types_with_and_without_rows() -> None:
    names = ["framework", "nodes", "cores_per_device", "speedup", "side_by_side", "passed"]
    types = ["str", "int64", "Int64", "float64", "bool", "boolean"]
    empty = columns.frame(names, [])
    full = columns.frame(names, [["jax", 2, None, None, False, None]])
    assert [str(one) for one in empty.dtypes] == [str(one) for one in full.dtypes] == types
