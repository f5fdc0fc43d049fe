"""Tests that hold while the inside changes: they import nothing of ours."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
#: Whole workflows, SLURM, every way a run can end, and hand-computed cells of tables, with what
#: they are written in. Of the contract of adapters what is expected: its programs drive an adapter
#: in a process of the framework, through the interface that adapters implement.
NET = sorted(
    [
        *TESTS.glob("workflow/*.py"),
        *TESTS.glob("slurm/*.py"),
        *(TESTS / "harness" / name for name in ("test_runs.py", "test_checks.py", "conftest.py")),
        TESTS / "framebench" / "made_up_records.py",
        TESTS / "frameworks" / "test_contract.py",
        *(TESTS / name for name in ("bench.py", "commands.py", "csv_rows.py")),
    ]
)
OURS = {"framebench", "harness"}


@pytest.mark.parametrize("path", NET, ids=lambda path: str(path.relative_to(TESTS)))
def test_they_speak_through_commands_records_and_csv(path: Path) -> None:
    imported = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            imported.add(str(node.module).partition(".")[0])
    assert not imported & OURS
