"""Equal figures from equal records, in every cell of every table.
The sets: a real run of the suite ``quick``, a made-up set with rows for every table, and the
published sets (see tests/data/figures/README.md)."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from ....commands import read_rows
from ...figures import COMMANDS, made, unpacked

FRACTION = re.compile(r"-?\d+(\.\d+)?(e[+-]?\d+)?")
#: Tolerance for another library or processor, which may sum in another order.
RELATIVE_ERROR = 1e-12
RENEW = "if it is meant: .venv/bin/python -m tests.framebench.figures"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpacked("results", tmp_path_factory.mktemp("given"))


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpacked("tables", tmp_path_factory.mktemp("kept"))


def agree(text: str, other: str) -> bool:
    if text == other:
        return True
    if not (FRACTION.fullmatch(text) and FRACTION.fullmatch(other)) or text.isdigit():
        return False
    return math.isclose(float(text), float(other), rel_tol=RELATIVE_ERROR)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_cell_of_every_table_is_what_it_was(
    name: str, results: Path, kept: Path, tmp_path: Path
) -> None:
    tables = made(name, results, tmp_path)
    expected = {path.name: read_rows(path) for path in (kept / name).iterdir()}
    actual = {path.name: read_rows(path) for path in tables.glob("*.csv")}
    assert sorted(actual) == sorted(expected), RENEW
    for table, were in expected.items():
        are = actual[table]
        assert len(are) == len(were), table
        for index, (now, then) in enumerate(zip(are, were, strict=True)):
            assert [*now] == [*then], f"{table}: other columns; {RENEW}"
            for column, value in then.items():
                assert agree(value, now[column]), f"{table}: row {index}: {column}; {RENEW}"
