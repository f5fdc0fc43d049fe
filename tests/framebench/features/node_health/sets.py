"""Sets of nodes: with made-up noise, and with figures recorded on one host."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from framebench.features.node_health.statistics import NodeFigure, judge
from framebench.records.run import MetricValue, Run
from framebench.statistics.verdicts import SLOWER

from ...made_up_runs import changed, measured
from ...statistics.distributions import Sampler

#: Repeats of each figure on one host, on an idle core and on a core shared with a busy loop.
RECORDED = json.loads(Path(__file__).with_name("recorded.json").read_text())
NODES = ("n1", "n2", "n3", "n4")
MARGIN = 0.05


def runs_of(
    figures: Mapping[str, Mapping[str, Sequence[float | None]]], **other: object
) -> list[Run]:
    """Return runs of a benchmark ``kind/metric`` by node; None for a failed one."""
    actual = []
    for name, by_node in figures.items():
        kind, _, metric = name.partition("/")
        better = RECORDED["figures"].get(name, {}).get("better", "higher")
        for node, values in by_node.items():
            for repeat, value in enumerate(values, 1):
                run = measured(kind, [MetricValue(metric, value, "GB/s", better)])
                status = {} if value is not None else {"status": "failed", "reason": "broke"}
                actual.append(changed(run, node=node, repeat=repeat, **status, **other))
    return actual


def drawn(seed: int, shared: bool = True) -> tuple[dict[str, dict[str, list[float]]], str]:
    """Return five recorded repeats of each figure for four nodes, and the slow node, if ``shared``.
    No repeat is used twice; the slow node's core was shared."""
    random = np.random.default_rng(seed)
    slow = NODES[int(random.integers(len(NODES)))]
    figures = {}
    for name, recorded in RECORDED["figures"].items():
        idle = random.permutation(recorded["idle"])[:20].reshape(4, 5)
        figures[name] = {node: idle[number].tolist() for number, node in enumerate(NODES)}
        if shared:
            figures[name][slow] = random.permutation(recorded["shared"])[:5].tolist()
    return figures, slow


def called(
    random: np.random.Generator,
    sampler: Sampler,
    factors: Sequence[float],
    figures: int,
    repeats: int,
    margin: float = MARGIN,
) -> set[int]:
    """Return the nodes that are called slower; ``factors``: true factor of each node."""
    drawn_values = sampler(random, (figures, len(factors), repeats))
    made = [
        NodeFigure(
            str(number),
            {
                str(node): (drawn_value[node] * factor).tolist()
                for node, factor in enumerate(factors)
            },
            margin,
        )
        for number, drawn_value in enumerate(drawn_values)
    ]
    return {int(claim.node) for claim in judge(made) if claim.verdict == SLOWER}
