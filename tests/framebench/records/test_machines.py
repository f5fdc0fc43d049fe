"""Records count as done only if they are of this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from framebench.machine import local
from framebench.machine.identities import Identity
from framebench.machine.local import Machine
from framebench.plan import plan_text
from framebench.plan.plan import Plan
from framebench.plan.planning import make_plan
from framebench.records import record_sets

from ..saved_records import save
from ..settings import CATALOG, SUITE, settings
from ..watched import as_suite_asks

HERE = Machine(2, 0, identity=Identity("Example CPU", "", "16 GiB", "here"))


def planned(tmp_path: Path, place: Machine = HERE) -> Plan:
    loaded = settings(tmp_path, {**SUITE, "repeats": 1}, results=str(tmp_path / "out"))
    runs = tmp_path / "out" / "runs"
    return make_plan(loaded, CATALOG, place, record_sets.load(runs) if runs.is_dir() else None)


def left(tmp_path: Path, name: str, host: str, **hardware: Any) -> Path:
    (folder,) = planned(tmp_path).folders.values()
    record = as_suite_asks(started=f"2030-01-01T00:00:0{len(host) % 10}.000Z")
    environment = record["environment"]
    environment["system"]["host"] = host
    environment["hardware"].update(hardware)
    return save(tmp_path, f"out/runs/{folder}/{name}.json", record)


def names(plan: Plan) -> list[tuple[str, str]]:
    return [(Path(run.path).name, run.status) for run in plan.runs]


def test_a_record_of_this_machine_is_done(tmp_path: Path) -> None:
    # With fields that only a record has, and a GPU that not all runs use.
    left(tmp_path, "r1", "here", processor={"family": "6", "logical_cores": 2})
    plan = planned(tmp_path)
    assert names(plan) == [("r1", "ok")]
    assert plan_text.other_machine_lines(plan) == []
    several = HERE.identity._replace(hardware="NVIDIA H200, Example CPU")
    assert names(planned(tmp_path, Machine(2, 0, identity=several))) == [("r1", "ok")]


@pytest.mark.parametrize(
    ("host", "hardware"),
    [
        ("there", {}),
        ("here", {"cpu": "Another CPU"}),
        ("here", {"memory_bytes": 2**33}),
        ("here", {"gpus": [{"name": "NVIDIA H200"}]}),
    ],
)
def test_a_record_of_another_machine_is_left_alone_and_measured_anew(
    tmp_path: Path, host: str, hardware: dict[str, Any]
) -> None:
    path = left(tmp_path, "r1", host, **hardware)
    before = path.read_bytes()
    plan = planned(tmp_path)
    assert names(plan) == [("r1-retry1", "")], "another machine's record counts as done"
    assert plan.cached == 0, "its seconds say nothing of this machine"
    (line,) = plan_text.other_machine_lines(plan)
    assert "1 record(s) are of another machine" in line
    assert str(plan.elsewhere[0].machine) in line
    assert line in plan_text.describe(plan)
    left(tmp_path, "r1-retry1", "here")
    assert names(planned(tmp_path)) == [("r1-retry1", "ok")], "it would be measured for ever"
    both = record_sets.load(tmp_path / "out" / "runs")
    assert len(both.runs) == 2, "a machine has lost its record"
    assert len({run.conditions.machine for run in both.runs}) == 2
    assert path.read_bytes() == before


def test_a_node_of_a_cluster_is_not_compared(tmp_path: Path) -> None:
    left(tmp_path, "r1", "there")
    assert names(planned(tmp_path, Machine(2, 0))) == [("r1", "ok")]


def test_this_machine_is_known_as_its_records_know_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from framebench.machine.identities import identity, is_here
    from harness import provenance

    for variables in ({}, {"SLURM_JOB_ID": "7"}):
        monkeypatch.delenv("SLURM_JOB_ID", raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        recorded = provenance.capture("hand", [0], {}, {})
        label = identity(recorded)
        actual = local.detect().identity
        assert is_here(label, actual), f"{label} is not {actual}"
        assert (label.hardware, label.memory, label.host) == (
            actual.hardware,
            actual.memory,
            actual.host,
        )
        assert bool(actual.host) is not bool(variables)
