"""Columns of features are declared as those of the core; the page of columns has all."""

from __future__ import annotations

import pytest
from framebench import cli, feature_registry
from framebench.comparison import compare
from framebench.tables import columns, measured, registry

from ...conftest import ROOT


def test_every_shared_column_is_in_a_table() -> None:
    written = [table for feature in feature_registry.known() for table in feature.written_tables()]
    tables = (*registry.known().values(), compare.TABLE, *written)
    used = {column.name for table in tables for column in table.columns}
    used |= {column.name for table in tables if table.overview for column in table.overview.columns}
    used |= {column.name for column in measured.FIGURES}
    assert columns.COLUMNS.keys() <= used


def test_the_page_is_the_one_that_is_made(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["columns"]) == 0
    page = (ROOT / "docs" / "columns.md").read_text(encoding="utf-8")
    assert page == capsys.readouterr().out, "python workflow/framebench columns > docs/columns.md"
