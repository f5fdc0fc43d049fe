"""A framework's pins move by one command, which tests and measures what moved."""

from __future__ import annotations

import json
import shutil
import sys

import yaml

from ...packages import write_wheel
from ..conftest import ONE_RUN, PROGRAMS, Project


def test_pins_move_are_tested_and_measured_against_the_old_ones(project: Project) -> None:
    wheels = project.folder.parent / "wheels"
    for version in ("1.0", "2.0"):
        write_wheel(wheels, "toy", version)
    python = f"python={sys.version_info.major}.{sys.version_info.minor}"
    pins = {"pip": ["toy==1.0"]}
    file = project.folder / "envs" / "toy.yaml"
    file.write_text(yaml.safe_dump({"name": "toy", "dependencies": [python, pins]}))
    adapter = project.folder / "scripts" / "frameworks" / "toy" / "plain.py"
    installed = 'return __import__("importlib.metadata").metadata.version("toy")'
    adapter.write_text(adapter.read_text().replace('return "1.0"', installed))
    tests = project.folder / "tests" / "frameworks"
    tests.mkdir(parents=True)
    shutil.copy(PROGRAMS / "contract_of_toy.py", tests / "test_contract.py")
    project.configure(interpreters={})
    project.write_suite(ONE_RUN)
    project.snakemake = str(project.folder / "workflow" / "framebench" / "__main__.py")
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels)}
    assert project.run("hashes", "toy", **offline).returncode == 0
    few = ["--pairs", "1", "--config", "suite=toy"]
    ended = project.run("update", "toy", *few, toy="exact,sleep=0.01", **offline)
    assert "toy 1.0 -> 2.0" in ended.stdout
    assert "1 passed, 1 deselected" in ended.stdout, ended.stdout
    assert "the gate of toy ended with 3" in ended.stdout, "one pair decides nothing"
    assert "contract" not in ended.stdout.splitlines()[-1]
    assert ended.returncode == 1
    gate = project.folder / "results" / "update" / "toy"
    records = [json.loads(path.read_text()) for path in gate.glob("runs/toy/**/*.json")]
    assert {record["status"] for record in records} == {"ok"}
    assert {record["framework_version"] for record in records} == {"1.0", "2.0"}
    assert "cannot tell" in (gate / "gate.md").read_text()
