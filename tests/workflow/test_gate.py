"""Gate and bisection as users call them: pairs of both sides, and versions of a package."""

from __future__ import annotations

import csv
import hashlib
import re
import sys
from pathlib import Path

import yaml

from ..packages import write_wheel
from .conftest import SUITE, Project

SIDES = {
    "fast": {"variables": {"FRAMEBENCH_TOY": "exact,sleep=0.01"}},
    "slow": {"variables": {"FRAMEBENCH_TOY": "exact,sleep=0.013"}},
    "dead": {"variables": {"FRAMEBENCH_TOY": "raise_rank=0"}},
}


def gate(
    project: Project, *given: str, arguments: tuple[str, ...] = ("--until", "benchmark")
) -> tuple[int, str]:
    project.snakemake = str(project.folder / "workflow" / "framebench" / "__main__.py")
    ended = project.run("gate", "--base", "fast", *given, "--", *arguments)
    return ended.returncode, ended.stdout


def test_a_slower_candidate_is_a_regression_and_a_dead_one_is_broken(project: Project) -> None:
    axes = {**SUITE["axes"], "mode": "train"}
    suite = {"steps": {"warmup": 1, "timed": 3}, "repeats": 2, "axes": axes, "variants": SIDES}
    project.write_suite(suite)
    few = ("--candidate", "slow", "--pairs", "2", "--results", "results/slow")
    assert gate(project, *few)[0] == 3
    note = (project.folder / "results" / "slow" / "gate.md").read_text()
    assert "at least 8 pairs (`--pairs`)" in note, note
    status, said = gate(project, *few, "--pairs", "40")
    assert status == 1, said
    assert "1 regression" in said
    assert "to 40 pairs of each case, at most" in said, "how long it may take is not said"
    with (project.folder / "results" / "slow" / "tables" / "gate.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["pairs"], row["verdict"]) == ("8", "regression")
    status, said = gate(project, "--candidate", "dead", "--pairs", "1", "--results", "results/dead")
    assert status == 4, said
    assert "the candidate is failed: " in said
    assert "toy is broken" in said
    other = ("--candidate", "slow", "--results", "results/other")
    status, said = gate(project, *other, arguments=("--no-such-option",))
    assert status == 4, "what Snakemake refuses is no regression"
    assert "measuring ended with" in said


#: Requirements of each version: 1.1 needs a missing package, so it cannot be installed; 1.3 is
#: slower.
NEEDS = {"1.0": "helper==1.0", "1.1": "helper==9.0", "1.2": "helper==2.0", "1.3": "helper==2.0"}


def prepare(project: Project) -> dict[str, str]:
    """Make the toy a package of four versions, each with its own speed."""
    wheels = project.folder.parent / "wheels"
    for version, needed in NEEDS.items():
        write_wheel(wheels, "toy", version, [needed])
    for version in ("1.0", "2.0"):
        write_wheel(wheels, "helper", version)
    python = f"python={sys.version_info.major}.{sys.version_info.minor}"
    pins = {"pip": ["helper==2.0", "toy==1.3"]}
    file = project.folder / "envs" / "toy.yaml"
    file.write_text(yaml.safe_dump({"name": "toy", "channels": [], "dependencies": [python, pins]}))
    # Its own environment is not built.
    (file.parent / "toy.hashes.txt").write_text(
        f"# For toy.yaml sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}\n"
    )
    folder = project.folder / "scripts" / "frameworks" / "toy"
    changes = {
        "plain.py": (
            'return "1.0"',
            'return __import__("importlib.metadata").metadata.version("toy")',
        ),
        "adapter.py": (
            'sleep = self.does.get("sleep", 0.0)',
            'sleep = 0.02 if self.version() == "1.3" else 0.01',
        ),
    }
    for name, (before, after) in changes.items():
        text = (folder / name).read_text()
        assert before in text, "the toy has changed"
        (folder / name).write_text(text.replace(before, after))
    project.configure(interpreters={})
    axes = {**SUITE["axes"], "mode": "train"}
    project.write_suite({"steps": {"warmup": 1, "timed": 40}, "repeats": 2, "axes": axes})
    return {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels)}


def test_the_version_that_made_it_slower_is_found(project: Project) -> None:
    offline = prepare(project)
    project.snakemake = str(project.folder / "workflow" / "framebench" / "__main__.py")
    arguments = ["bisect", "--package", "toy", "--good", "1.0", "--bad", "1.3"]
    arguments += ["--results", "results/found", "--margin", "15%"]
    runs_alone = ["--", "--until", "benchmark"]
    few = project.run(*arguments, "--pairs", "2", *runs_alone, toy="exact", **offline)
    assert few.returncode == 3, few.stdout
    assert "with --pairs 8 goes on" in few.stdout
    before = runs(project)
    actual = project.run(*arguments, *runs_alone, toy="exact", **offline, check=True)
    changed = re.search(r"first changed in 1\.3: changed: (0\.\d+) \[", actual.stdout)
    assert changed, actual.stdout
    assert 0.4 < float(changed[1]) < 0.6, actual.stdout
    assert "1.1: skipped: cannot be installed: toy==1.1" in actual.stdout
    assert "1.2: not changed: " in actual.stdout
    records = runs(project)
    assert len(records) == 2 * 8 + 2 * 8, "those of the first call were measured again"
    assert before
    assert before.items() <= records.items(), "what was measured is measured again"


def runs(project: Project) -> dict[Path, str]:
    folder = project.folder / "results" / "found"
    return {path: path.read_text() for path in folder.glob("*/runs/**/*.json")}
