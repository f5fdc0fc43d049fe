"""Gate as called in CI: one command that measures both sides in pairs and ends with a status."""

from __future__ import annotations

import csv

from ..conftest import SUITE, Project

SIDES = {
    "fast": {"variables": {"FRAMEBENCH_TOY": "exact,sleep=0.01"}},
    "slow": {"variables": {"FRAMEBENCH_TOY": "exact,sleep=0.013"}},
    "dead": {"variables": {"FRAMEBENCH_TOY": "raise_rank=0"}},
}


def gate(
    project: Project, *given: str, arguments: tuple[str, ...] = ("--until", "benchmark")
) -> tuple[int, str]:
    """Run the gate; ``arguments``: arguments of Snakemake."""
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
    assert "the same command with at least `--pairs 8`" in note, note
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
