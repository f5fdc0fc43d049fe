"""Programs that may run a user's code answer within bounds, and leave nothing behind."""

from __future__ import annotations

import fcntl
import sys
from pathlib import Path
from typing import Any

import pytest
from framebench.config.catalog import load_catalog
from framebench.config.settings import load_settings
from framebench.config.validation import ConfigError
from framebench.files import children

from ..conftest import ROOT
from .settings import CONFIG


def ask(code: str, longest: float | None = None) -> str:
    return children.ask([sys.executable, "-c", code], "given", longest)


def test_the_answer_is_what_a_program_writes() -> None:
    assert ask("import sys; print(sys.stdin.read())") == "given\n"


@pytest.mark.parametrize(
    ("code", "longest", "said"),
    [
        ("while True: pass", 0.2, "was stopped after 0 s without an answer"),
        ("while True: print('y' * 99999)", 600, "wrote more than"),
        ("x = b' ' * 2**33", 600, "MemoryError"),
        ("import os; os.abort()", 600, "signal 6"),
        ("1 / 0", 600, "ZeroDivisionError: division by zero"),
    ],
)
def test_a_program_that_does_not_answer_is_refused(code: str, longest: float, said: str) -> None:
    with pytest.raises(children.NoAnswer) as refused:
        ask(code, longest)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_what_a_program_left_in_the_background_ends_with_it(tmp_path: Path) -> None:
    """Fail if a background process survives: it holds a lock of flock(2) while it lives."""
    lock = tmp_path / "lock"
    program = ROOT / "tests/framebench/programs/leave_behind.py"
    assert children.ask([sys.executable, str(program), str(lock)], "") == "1\n"
    with lock.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)


ODD_KINDS = {
    "several lines": "raise ValueError('first\\nsecond')",
    "no declaration": "from harness.kind import Kind\nclass Odd(Kind):\n    parameters = 5",
}


@pytest.mark.parametrize("name", ODD_KINDS)
def test_a_kind_whose_module_cannot_be_imported_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "odd.py").write_text(ODD_KINDS[name])
    suite = tmp_path / "mine.yaml"
    suite.write_text("measurements: {odd: {}}\n")
    config: dict[str, Any] = {**CONFIG, "suite": str(suite), "kinds": str(tmp_path)}
    with pytest.raises(ConfigError) as refused:
        load_settings(config, load_catalog(ROOT))
    assert "measurements.odd: found odd of " in str(refused.value)
    assert "\n" not in str(refused.value)
