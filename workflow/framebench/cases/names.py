"""A case in words, as tables and the terminal have them."""

from __future__ import annotations

from typing import Any


def topology(nodes: Any, devices_per_node: Any) -> str:
    """DLPerf's name for it: nodes x devices per node, e.g. 2n8g; "" where that is not known."""
    return f"{nodes}n{devices_per_node}g" if nodes and devices_per_node else ""


def topology_of(case: Any) -> str:
    """That of a case, a run or a row."""
    return topology(case.nodes, case.devices_per_node)


def columns(case: Any) -> str:
    """What a case runs, in columns of fixed width for a terminal."""
    return (
        f"{case.framework:<11} {case.model:<14} {case.mode:<9} {case.precision:<4} "
        f"{case.compiler:<9}"
    )


def columns_with_size(case: Any) -> str:
    """The same with devices and batch per device."""
    return f"{columns(case)} {topology_of(case)} b{case.batch_per_device:<4}"
