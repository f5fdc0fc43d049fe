"""Judging of nodes: which are named, and how seldom healthy ones are."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from framebench import cli
from framebench.features.node_health import command as node_health
from framebench.features.node_health import judging
from framebench.features.node_health.judging import JudgedNode, NodeMeasurement, NodeRules
from framebench.machine.identities import Identity
from framebench.records.run import Run
from framebench.statistics.verdicts import FALSE_ALARMS
from framebench.tables.results import group

from ...statistics.distributions import SAMPLERS
from ...table_rows import rows_of
from .sets import MARGIN, NODES, RECORDED, called, drawn, runs_of

HEALTHY = [100.0, 101.0, 99.0, 100.5, 99.5]
SLOW = [value / 2 + number / 100 for number, value in enumerate(HEALTHY)]


ANY = NodeRules.model_validate({"rules": {"all": {"metrics": ".*"}}})


def apart(values: Sequence[float], by: int) -> list[float]:
    """Return the values shifted slightly, so that no two nodes have ties."""
    return [value + by / 1000 for value in values]


def four(**others: Sequence[float | None]) -> dict[str, dict[str, Sequence[float | None]]]:
    """Return one figure of four nodes, healthy except for the ``others``."""
    usual = {node: apart(HEALTHY, number) for number, node in enumerate(NODES)}
    return {"memory/triad": {**usual, **others}}


def measured(runs: Sequence[Run]) -> list[NodeMeasurement]:
    return judging.measured(group(runs, None))


def judge(
    runs: Sequence[Run], given: NodeRules = ANY, good: Sequence[Run] = ()
) -> dict[str, JudgedNode]:
    """Return the judged nodes by name; ``good``: runs of the baseline."""
    baseline = judging.baseline_of(measured(good))
    return {node.name: node for node in judging.judge(measured(runs), given, baseline)}


def shipped(made: dict[str, dict[str, list[float]]]) -> list[JudgedNode]:
    nodes = judging.judge(measured(runs_of(made)), judging.read_rules(None))
    return [node for node in nodes if node.verdict in judging.NAMED]


def verdicts(nodes: dict[str, JudgedNode]) -> dict[str, str]:
    return {name: node.verdict for name, node in sorted(nodes.items())}


@pytest.mark.parametrize("seed", range(20))
def test_a_node_whose_core_is_shared_is_named_and_no_other(seed: int) -> None:
    made, slow = drawn(seed)
    named = shipped(made)
    assert [node.name for node in named] == [slow]
    telling = named[0].telling
    assert telling.ratio is not None
    assert telling.ratio < 0.9
    assert telling.figure.name.split("/1n1g")[0] in RECORDED["figures"]


def test_of_recorded_nodes_that_are_alike_none_is_named() -> None:
    """Fail if more nodes are named than the rules allow: at most 5 % of draws, here 3 of 20."""
    named = [node for seed in range(20) for node in shipped(drawn(seed, shared=False)[0])]
    assert len(named) <= 3, named


def test_one_slow_node_is_named_with_the_figure_that_told() -> None:
    made = four(n3=SLOW) | {"disk/read": {node: apart(HEALTHY, n) for n, node in enumerate(NODES)}}
    nodes = judge(runs_of(made))
    assert verdicts(nodes) == {
        "n1": "no difference shown", "n2": "no difference shown", "n3": "slower",
        "n4": "no difference shown",
    }  # fmt: skip
    telling = nodes["n3"].telling
    assert telling.figure.name == "memory/triad/1n1g/cpu"
    assert telling.ratio == pytest.approx(0.5, abs=0.01)
    assert next(iter(nodes)) == "n3", "what is bad does not stand first"
    assert [*node_health.lines([*nodes.values()])] == [
        "node n3: slower: memory/triad/1n1g/cpu: 50 against 100 GB/s of the others, rule all",
        "1 of 4 nodes named",
    ]


def test_a_link_with_fewer_lanes_names_its_node_by_the_rules_that_ship() -> None:
    lanes = {node: [16.0] * 5 for node in NODES} | {"n2": [8.0] * 5}
    (named,) = shipped({"transfer/pcie_lanes": lanes})
    assert named.name == "n2"
    assert named.telling.rule == "links"


def test_a_node_within_the_margin_is_not_named_and_one_beyond_is() -> None:
    a_little = [0.97 * value for value in HEALTHY]
    assert verdicts(judge(runs_of(four(n2=a_little))))["n2"] == "no difference shown"
    strict = NodeRules.model_validate({"rules": {"all": {"metrics": ".*", "worse_by": "1%"}}})
    assert verdicts(judge(runs_of(four(n2=a_little)), strict))["n2"] == "slower"


def test_a_figure_without_a_rule_does_not_count() -> None:
    disks = NodeRules.model_validate({"rules": {"disks": {"metrics": "disk/.*"}}})
    nodes = judge(runs_of(four(n3=SLOW)), disks)
    assert verdicts(nodes)["n3"] == "cannot tell"
    assert nodes["n3"].telling.reason == "no rule matches any of its figures"


def test_a_node_that_has_no_figure_where_others_have_one_has_failed() -> None:
    nodes = judge(runs_of(four(n4=[None] * 5)))
    assert verdicts(nodes)["n4"] == "failed"
    assert nodes["n4"].telling.reason == "failed: broke"
    everywhere = {"memory/triad": {node: [None] * 5 for node in NODES}}
    assert {*verdicts(judge(runs_of(everywhere))).values()} == {"cannot tell"}, (
        "what no node can is a fault of none"
    )


def test_too_few_nodes_or_repeats_cannot_tell() -> None:
    two = {"memory/triad": {"n1": HEALTHY, "n2": SLOW}}
    assert {node.telling.reason for node in judge(runs_of(two)).values()} == {
        "needs 3 nodes of one kind of hardware, or a baseline"
    }
    once = {"memory/triad": {node: [100.0 + n] for n, node in enumerate(NODES)} | {"n3": [50.0]}}
    nodes = judge(runs_of(once))
    assert {*verdicts(nodes).values()} == {"cannot tell"}
    assert nodes["n3"].telling.reason == "too few repeats, or too much noise"


def test_nodes_of_other_hardware_are_held_against_their_own_kind() -> None:
    fast = {node: [2 * value for value in apart(HEALTHY, n)] for n, node in enumerate(NODES)}
    runs = runs_of(four(), hardware="Old", machine=Identity("Old", memory="64 GiB"))
    renamed = {"memory/triad": {f"m{node}": values for node, values in fast.items()}}
    runs += runs_of(renamed, hardware="New", machine=Identity("New", memory="64 GiB"))
    nodes = judge(runs)
    assert {*verdicts(nodes).values()} == {"no difference shown"}
    assert len({node.hardware for node in nodes.values()}) == 2


def test_a_fault_of_all_nodes_shows_against_a_baseline() -> None:
    worse = {node: [0.8 * value for value in apart(HEALTHY, n)] for n, node in enumerate(NODES)}
    today = runs_of({"memory/triad": worse})
    assert {*verdicts(judge(today)).values()} == {"no difference shown"}
    nodes = judge(today, good=runs_of(four()))
    assert {*verdicts(nodes).values()} == {"slower"}
    assert {node.telling.side for node in nodes.values()} == {"baseline"}


def test_a_node_alone_is_held_against_the_baseline() -> None:
    good = runs_of({"memory/triad": {"n1": apart(HEALTHY, 7)}})
    assert verdicts(judge(runs_of({"memory/triad": {"n1": SLOW}}), good=good)) == {"n1": "slower"}
    once = judge(runs_of({"memory/triad": {"n1": [50.0]}}), good=good)
    assert verdicts(once) == {"n1": "cannot tell"}


@pytest.mark.parametrize(
    ("nodes", "status"),
    [
        (four(n3=SLOW), node_health.SLOW_NODE),
        (four(n3=SLOW, n1=[None] * 5), node_health.SLOW_NODE),
        (four(n1=[None] * 5), node_health.FAILED_NODE),
        (four(), 0),
        ({"memory/triad": {"n1": HEALTHY}}, node_health.NOTHING),
        ({}, node_health.NOTHING),
    ],
)
def test_the_exit_status_says_what_is_worst(
    nodes: dict[str, dict[str, list[float | None]]], status: int
) -> None:
    assert node_health.check([*judge(runs_of(nodes)).values()])[0] == status


SETS = 500
#: Largest number of false alarms in SETS sets: three standard errors above the promise.
MOST = SETS * FALSE_ALARMS + 3 * math.sqrt(SETS * FALSE_ALARMS * (1 - FALSE_ALARMS))
LIMIT = 1 - MARGIN


def false_alarms(
    sampler: str, factors: list[float], bad: set[int], figures: int = 2, margin: float = MARGIN
) -> int:
    random = np.random.default_rng(0)
    sets = (called(random, SAMPLERS[sampler], factors, figures, 5, margin) for _ in range(SETS))
    return sum(bool(entry - bad) for entry in sets)


@pytest.mark.parametrize(
    ("sampler", "factors", "bad"),
    [
        # One of four nodes lies exactly at the limit, the worst that counts as healthy.
        ("normal", [1, 1, 1, LIMIT], set()),
        ("skewed", [1, 1, 1, LIMIT], set()),
        ("bimodal", [1, 1, 1, 1], set()),
        # Permanent differences between nodes: the limit is relative to their median.
        ("normal", [1.03, 1, 0.97, LIMIT], set()),
        # Two bad nodes, which are left out when the others are judged.
        ("normal", [1, 1, 1, 1, LIMIT, 0.7, 0.7], {5, 6}),
    ],
)  # fmt: skip
def test_a_healthy_node_is_called_slower_as_seldom_as_is_promised(
    sampler: str, factors: list[float], bad: set[int]
) -> None:
    assert false_alarms(sampler, factors, bad) <= MOST


@pytest.mark.parametrize("nodes", [3, 8])
def test_the_p_values_are_adjusted_for_all_figures_of_all_nodes(nodes: int) -> None:
    """Without a margin, nothing else prevents false alarms."""
    assert false_alarms("normal", [1] * nodes, set(), figures=4, margin=1e-9) <= MOST


def test_bad_nodes_do_not_hide_each_other() -> None:
    random = np.random.default_rng(0)
    actual = [
        called(random, SAMPLERS["normal"], [1, 1, 1, 1, 1, 0.8, 0.8], 2, 5) for _ in range(50)
    ]
    assert actual == [{5, 6}] * 50


def test_nodes_of_superbench_are_judged_by_our_rules(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [
        {"node": node, "kernel-launch/return_code": 3 * (node == "d"),
         "kernel-launch/event_time:0": 0.006 if node != "d" else None}
        for node in "abcd"
    ]  # fmt: skip
    results = tmp_path / "results-summary.jsonl"
    lines[3].pop("kernel-launch/event_time:0")
    results.write_text("".join(json.dumps(line) + "\n" for line in lines))
    words = ["import", "--format", "superbench", "--from", str(results), "--results"]
    assert cli.main([*words, str(tmp_path / "sb")]) == 0
    file = tmp_path / "rules.yaml"
    file.write_text("rules: {launch: {metrics: 'kernel-launch/event_time:0'}}")
    nodes = ["nodes", "--results", str(tmp_path / "sb"), "--rules", str(file)]
    assert cli.main(nodes) == 4
    rows = rows_of(tmp_path / "sb", "nodes")
    assert [(row["node"], row["node_verdict"]) for row in rows] == [
        ("d", "failed"), ("a", "cannot tell"), ("b", "cannot tell"), ("c", "cannot tell"),
    ]  # fmt: skip
    file.write_text("superbench: {rules: {}}")
    assert cli.main(nodes) == 1
    assert "found unknown key 'superbench'; allowed: false_alarms, rules" in capsys.readouterr().err
