"""A suite that measures each node by name: plan, SLURM request, and refusals."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from framebench.config.cluster import Cluster
from framebench.config.validation import ConfigError
from framebench.machine.local import Machine
from framebench.plan.plan import Plan
from framebench.plan.planning import make_plan
from framebench.runs import commands, slurm
from framebench.runs.slurm import SlurmError

from ..settings import CATALOG, settings

MEMORY = {"repeats": 2, "measurements": {"memory": {}}, "nodes_named": "all"}
NAMED = {"n1": "", "n2": "", "n10": "SLURM says down*, burnt"}
GIVEN: dict[str, Any] = {"nodes": 4, "cores_per_node": 8, "memory_gib": 16}


def plan(tmp_path: Path, named: Mapping[str, str] = NAMED, **config: Any) -> Plan:
    loaded = settings(tmp_path, MEMORY, **config)
    return make_plan(loaded, CATALOG, Machine(2, 0, named=named), None)


def test_every_case_is_run_on_every_node_and_one_out_of_service_is_left_out(tmp_path: Path) -> None:
    made = plan(tmp_path)
    runs = [(run.case.node, run.repeat) for run in made.runs]
    assert sorted(runs) == [("n1", 1), ("n1", 2), ("n2", 1), ("n2", 2)]
    assert {repeat for _, repeat in runs[:2]} == {1}, "repeats are not interleaved"
    assert len({*made.folders.values()}) == 2, "two nodes share a folder"
    assert [left_out.reason for left_out in made.left_out] == [
        "node n10 cannot be measured: SLURM says down*, burnt"
    ]
    arguments = commands.arguments(made, made.runs[0])
    assert arguments[arguments.index("--node") + 1] == made.runs[0].case.node


def test_the_configuration_names_others_than_the_suite(tmp_path: Path) -> None:
    assert {case.node for case in plan(tmp_path, nodes_named="n2").folders} == {"n2"}
    with pytest.raises(
        ConfigError, match=r"nodes_named: found 'n3'; allowed: all, or nodes of .* \(n1, n2, n10\)"
    ):
        plan(tmp_path, nodes_named="n2,n3")


SINFO = """\
n1|main*|idle|none
n1|debug|idle|none
n2|main*|mixed-|none
n3|main*|down*|Not responding
n4|main*|drained|disk full | replaced
n5|debug|idle~|none
"""


@pytest.mark.parametrize(
    ("described", "expected"),
    [
        (
            {},
            {"n1": "", "n2": "", "n3": "SLURM says down*, Not responding",
             "n4": "SLURM says drained, disk full | replaced"},
        ),
        ({"partition": "debug"}, {"n1": "", "n5": ""}),
    ],
)  # fmt: skip
def test_the_nodes_of_a_partition_and_what_speaks_against_each(
    described: dict[str, Any], expected: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slurm, "output_of", lambda *_: SINFO)
    assert slurm.nodes(Cluster(**GIVEN, **described)) == expected


def test_without_an_answer_of_slurm_there_is_no_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(*_: str) -> str:
        raise SlurmError("sinfo: no such host")

    monkeypatch.setattr(slurm, "output_of", silent)
    with pytest.raises(
        ConfigError, match="SLURM does not say which there are: sinfo: no such host"
    ):
        slurm.nodes(Cluster(**GIVEN))
    monkeypatch.setattr(slurm, "output_of", lambda *_: SINFO)
    with pytest.raises(ConfigError, match="SLURM has no node in partition gpu"):
        slurm.nodes(Cluster(**GIVEN, partition="gpu"))
