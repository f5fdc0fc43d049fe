"""A run over two nodes with the double of each starter, from its command to its record."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from framebench.config import starters

from ...bench import Bench

DOUBLES = Path(__file__).with_name("starter_doubles.py")


@pytest.fixture
def doubles(tmp_path: Path) -> dict[str, str]:
    """Return the variables of a job whose starters are doubles."""
    for name in ("mpiexec", "pbsdsh", "flux"):
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f'#!/bin/sh\nexec {sys.executable} {DOUBLES} {name} "$@"\n')
        program.chmod(0o755)
    # The second host follows all processes of the first.
    (tmp_path / "nodes").write_text("n0\nn0\nn1\nn1\n")
    return {
        "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PBS_ENVIRONMENT": "PBS_BATCH",
        "PBS_NODEFILE": str(tmp_path / "nodes"),
    }


@pytest.mark.parametrize("starter", ["mpiexec", "pbsdsh", "flux"])
def test_a_run_on_two_nodes_by(starter: str, doubles: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "a job"
    folder.mkdir()
    bench = Bench(folder)
    two = {"nodes": 2, "start_nodes": starters.STARTERS[starter]}
    done = bench.run(variables=doubles, cwd=folder, **two)
    record = done.record
    log = folder / "logs" / "run.nodes.log"
    assert record, done.stderr
    assert (record["status"], record["reason"]) == ("ok", ""), log.read_text()
    assert [rank["processes"] for rank in record["ranks"]] == [2, 2]
    second = "n2" if starter == "pbsdsh" else "n1"  # the index of its first line
    assert [rank["host"] for rank in record["ranks"]] == ["n0", second]
    left = {path.name for path in folder.iterdir()}
    assert left <= {"out", "locks", "logs", "tmp"}, "the environment still lies there"
    bench.assert_nothing_left()


def test_a_starter_that_fails_is_named(doubles: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "nodes").write_text("n0\nn0\n")
    bench = Bench(tmp_path)
    two = {"nodes": 2, "start_nodes": starters.STARTERS["pbsdsh"]}
    record = bench.run(variables=doubles, cwd=tmp_path, **two).record
    assert record["status"] == "failed"
    assert "pbsdsh: the job has 1 node(s) of 2" in record["reason"]
