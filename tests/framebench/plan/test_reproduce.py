"""The page that leads from rows of other benchmarks to suites and tables here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from framebench.config.settings import load_settings
from framebench.machine import local
from framebench.plan import estimates, targets
from framebench.plan.planning import make_plan
from framebench.tables import frames

from ... import fake_gpus
from ...harness.loader import images, token_folder
from ..settings import CATALOG, CONFIG, ROOT
from .test_amounts import squad

A100 = fake_gpus.gpus(8, "NVIDIA A100-SXM4-80GB", 81920, "580.95.05", "8.0")
HOUR = 3600


def rows() -> Iterator[tuple[list[str], list[str]]]:
    """Yield suites and tables of each row of the page's first table."""
    table = (ROOT / "docs" / "reproduce.md").read_text().split("| --- |")[0].split("\n## ")[0]
    for line in table.splitlines():
        if line.startswith("| ") and not line.startswith("| row"):
            _, _, suites, _, tables, _ = line.split("|")
            yield re.findall("`(.+?)`", suites), re.findall("`([a-z_]+)`", tables)


SUITES = sorted({name for suites, _ in rows() for name in suites})


@pytest.mark.parametrize("name", SUITES)
def test_a_suite_ends_within_its_limits(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fail if a suite does not plan on eight A100, or a run of it is expected to be killed, or a
    short form to take longer than an hour."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setenv("PATH", fake_gpus.install(tmp_path / "bin", A100), prepend=":")
    if "phase" in name:
        data = token_folder.tokens(tmp_path / "data")
    else:
        make = squad if name.endswith("squad") else images.folder
        data = make(tmp_path / "data")
    folders = {"data": str(data), "environments": str(tmp_path / "venvs")}
    settings = load_settings({**CONFIG, "suite": name, **folders}, CATALOG)
    plan = make_plan(settings, CATALOG, local.detect(), None)
    targets.check_runs(plan)
    limit = estimates.run_limit(settings)
    assert {run.case: run.seconds for run in plan.runs if run.seconds > limit} == {}
    if name.endswith("_short"):
        assert sum(run.seconds for run in plan.runs) < HOUR


def test_a_row_names_tables_that_are_made() -> None:
    found = [*rows()]
    assert len(found) > 10
    assert {table for _, tables in found for table in tables} <= {*frames.known_tables()}
