"""History as a target of Snakemake."""

from __future__ import annotations

import csv
import shutil

from .conftest import CASES, Project


def test_sets_are_shown_in_their_order_and_nothing_is_measured(measured: Project) -> None:
    before = measured.records()
    for name in ("one", "two"):
        shutil.copytree(measured.folder / "results", measured.folder / "kept" / name)
    words = ("--cores", "1", "history", "--config", "sets=kept", "by=name", "results=out")
    made = measured.run(*words)
    assert made.returncode == 0, made.stdout
    assert "2 sets, by name" in made.stdout
    with (measured.folder / "out" / "tables" / "history.csv").open(newline="") as file:
        labels = [row["label"] for row in csv.DictReader(file)]
    assert sorted(labels) == ["one"] * CASES + ["two"] * CASES
    assert (measured.folder / "out" / "history.html").is_file()
    assert measured.records() == before
    refused = measured.run("--cores", "1", "history")
    assert refused.returncode == 1
    assert "history: needs result sets: --config sets=" in refused.stdout
