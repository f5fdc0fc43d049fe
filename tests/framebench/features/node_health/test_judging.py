"""Judging of nodes: which are named, and what is said of the others."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from framebench.features.node_health import command as node_health
from framebench.features.node_health import figures, judging, rules
from framebench.features.node_health.figures import NodeMeasurement
from framebench.features.node_health.judging import JudgedNode
from framebench.features.node_health.rules import NodeRules
from framebench.machine.identities import Identity
from framebench.records.run import Run
from framebench.tables import grouping

from .sets import NODES, RECORDED, drawn, runs_of

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
    return figures.measured(grouping.group(runs, None))


def judge(
    runs: Sequence[Run], given: NodeRules = ANY, good: Sequence[Run] = ()
) -> dict[str, JudgedNode]:
    """Return the judged nodes by name; ``good``: runs of the baseline."""
    baseline = judging.baseline_of(measured(good), given)
    return {node.name: node for node in judging.judge(measured(runs), given, baseline)}


def shipped(made: dict[str, dict[str, list[float]]]) -> list[JudgedNode]:
    """Return the nodes that the shipped rules name."""
    nodes = judging.judge(measured(runs_of(made)), rules.read(None))
    return [node for node in nodes if node.verdict in judging.NAMED]


def verdicts(nodes: dict[str, JudgedNode]) -> dict[str, str]:
    return {name: node.verdict for name, node in sorted(nodes.items())}


@pytest.mark.parametrize("seed", range(20))
def test_a_node_whose_core_is_shared_is_named_and_no_other(seed: int) -> None:
    """Fail if the shipped rules miss a node with a shared core, or name another one."""
    made, slow = drawn(seed)
    named = shipped(made)
    assert [node.name for node in named] == [slow]
    telling = named[0].telling
    assert telling.ratio is not None
    assert telling.ratio < 0.9
    assert telling.figure.name.split("/1n1g")[0] in RECORDED["figures"]


def test_of_recorded_nodes_that_are_alike_none_is_named() -> None:
    """Fail if more nodes are named than the rules allow: at most 5 % of draws, so 3 of 20."""
    named = [node for seed in range(20) for node in shipped(drawn(seed, shared=False)[0])]
    assert len(named) <= 3, named


def test_the_same_runs_in_any_order_give_the_same_nodes() -> None:
    runs = runs_of(drawn(3)[0])
    first = judge(runs)
    for seed in range(3):
        mixed = random.Random(seed).sample(runs, len(runs))
        assert list(judge(mixed).items()) == list(first.items())


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


def test_a_link_with_fewer_lanes_names_its_node_by_the_rules_that_ship() -> None:
    """Fail if the shipped rules miss a link with fewer lanes, though it never varies."""
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
    assert nodes["n3"].reason == "no rule is of any of its figures"


def test_a_node_that_has_no_figure_where_others_have_one_has_failed() -> None:
    nodes = judge(runs_of(four(n4=[None] * 5)))
    assert verdicts(nodes)["n4"] == "failed"
    assert nodes["n4"].reason == "failed: broke"
    everywhere = {"memory/triad": {node: [None] * 5 for node in NODES}}
    assert {*verdicts(judge(runs_of(everywhere))).values()} == {"cannot tell"}, (
        "what no node can is a fault of none"
    )


def test_too_few_nodes_or_repeats_cannot_tell() -> None:
    two = {"memory/triad": {"n1": HEALTHY, "n2": SLOW}}
    assert {node.reason for node in judge(runs_of(two)).values()} == {
        "needs 3 nodes of one kind of hardware, or a baseline"
    }
    once = {"memory/triad": {node: [100.0 + n] for n, node in enumerate(NODES)} | {"n3": [50.0]}}
    nodes = judge(runs_of(once))
    assert {*verdicts(nodes).values()} == {"cannot tell"}
    assert nodes["n3"].reason == "too few repeats, or too much noise"


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


def test_bad_nodes_make_no_baseline() -> None:
    (values,) = judging.baseline_of(measured(runs_of(four(n3=SLOW))), ANY).values()
    assert len(values) == 15
    assert min(values) > 90


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


def test_what_a_terminal_says_names_the_node_and_its_figure() -> None:
    lines = [*node_health.lines([*judge(runs_of(four(n3=SLOW))).values()])]
    assert lines[0] == (
        "node n3: slower: memory/triad/1n1g/cpu: 50 against 100 GB/s of the others, rule all"
    )
    assert lines[-1] == "1 of 4 nodes named"
    assert len(lines) == 2
