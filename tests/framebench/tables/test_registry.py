"""Declared tables and their columns, a new table module, and numbers as text."""

from __future__ import annotations

from pathlib import Path

import pytest
from framebench import cli
from framebench.config.validation import ConfigError
from framebench.tables.formatting import rounded
from framebench.tables.table import declared_table


def test_an_unknown_table_is_refused_by_name(tmp_path: Path) -> None:
    said = r"'sumary' \(did you mean summary\?\); allowed: .*overview"
    with pytest.raises(ConfigError, match=said):
        cli.write_tables(["summary", "sumary"], tmp_path / "runs", tmp_path)


def test_a_crosstab_needs_its_overview() -> None:
    with pytest.raises(ValueError, match="crosstab"):
        declared_table("overview", lambda inputs: ())


@pytest.mark.parametrize(
    ("value", "spec", "shown"), [(54.0, "#.4g", "54.00"), (123456.0, ".3g", "123456"),
                                 (1.5e9, ".3g", "1.5e+09"), (2.0, ".1f", "2.0")],
)  # fmt: skip
def test_there_is_no_exponent_below_ten_millions(value: float, spec: str, shown: str) -> None:
    assert rounded(value, spec) == shown
