"""Suites with a time budget: rounds, pages before the end, and further calls."""

from __future__ import annotations

import json
import re
import shutil
import sys
from typing import Any

from ..commands import read_rows
from .conftest import Project

AXES = {
    "framework": ["toy", "slower", "slowest"],
    "model": "toy",
    "mode": ["train"],
    "batch_per_device": [1],
}
SUITE: dict[str, Any] = {
    "steps": {"warmup": 1, "timed": 3},
    "time_budget": 300,
    "repeats": 7,
    "axes": AXES,
}


#: Adapter of a framework that is the toy, with slower steps.
SLOWER = """
import os

os.environ["FRAMEBENCH_TOY"] = "exact,sleep={}"

from frameworks.toy.adapter import ToyAdapter


class Other(ToyAdapter):
    pass
"""
#: Seconds of a step, by the folder of the framework.
SECONDS = {"slower": 0.025, "slowest": 0.1}


def add_framework(project: Project, name: str) -> None:
    """Add the toy once more, under another name and with slower steps."""
    frameworks = project.folder / "scripts" / "frameworks"
    shutil.copytree(frameworks / "toy", frameworks / name)
    (frameworks / name / "adapter.py").write_text(SLOWER.format(SECONDS[name]))
    declaration = json.loads((frameworks / name / "framework.json").read_text())
    declaration |= {"name": name, "title": name.title()}
    (frameworks / name / "framework.json").write_text(json.dumps(declaration))


def test_repeats_go_where_they_settle_the_order(project: Project) -> None:
    add_framework(project, "slower")
    add_framework(project, "slowest")
    names = ("toy", "slower", "slowest")
    project.configure(interpreters=dict.fromkeys(names, sys.executable))
    project.write_suite(SUITE)

    ran = project.all("time_budget=1", toy="exact,sleep=0.02")
    assert ran.returncode == 1, ran.stdout
    assert "time_budget: found 1 s, which is too short for any run" in ran.stdout
    assert not project.records()

    ran = project.all(toy="exact,sleep=0.02", check=True)
    assert "were not present when" not in ran.stdout, "pages of rounds are no surprise"
    records = sorted(project.parsed(), key=lambda record: record["started"])
    order = [record["case"]["framework"] for record in records]
    assert sorted(order[:3]) == sorted(names), "each once, before any again"
    assert {*order[3:15]} == {"toy", "slower"}, "the order of the first two is open"
    assert order[15:] == ["slowest"] * 6, "it is far behind, and gets its interval last"
    results = project.folder / "results"
    (row,) = read_rows(results / "tables" / "fastest.csv")
    assert (row["framework"], row["verdict"]) == ("toy", "faster"), row
    assert 1 < float(row["lead_ci_low"]) <= float(row["lead"])
    logs = [path.read_text() for path in (results / "logs" / "rounds").glob("*.txt")]
    assert any("; open)" in log for log in logs), "a page after each round"
    # Other tests disturb the figures, so that the order alone is sure.
    assert re.search(r"^Toy: .* training, .*sure\)", ran.stdout, re.M), ran.stdout
    assert "leads settled: 1 of 1" in ran.stdout
