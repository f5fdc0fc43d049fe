"""A case in words, as tables and the terminal have them."""

from __future__ import annotations

from typing import Any


def topology(nodes: Any, devices_per_node: Any) -> str:
    """DLPerf's name for it: nodes x devices per node, e.g. 2n8g; "" where that is not known."""
    nodes, devices = _count(nodes), _count(devices_per_node)
    return f"{nodes}n{devices}g" if nodes and devices else ""


def topology_of(case: Any) -> str:
    """That of a case, a run or a row."""
    return topology(case.nodes, case.devices_per_node)


def batch_of(case: Any, prefix: str = "b") -> str:
    """The batch per device of a case, a run or a row behind ``prefix``; "" where it is not
    known."""
    batch = _count(case.batch_per_device)
    return f"{prefix}{batch}" if batch else ""


def _count(value: Any) -> int:
    """A count; 0 where it is missing, for which frames have values of their own."""
    try:
        return int(value)
    except (TypeError, ValueError):
        return 0


def columns(case: Any) -> str:
    """What a case runs, in columns of fixed width for a terminal."""
    return (
        f"{case.framework:<11} {case.model:<14} {case.mode:<9} {case.precision:<4} "
        f"{case.compiler:<9}"
    )


def columns_with_size(case: Any) -> str:
    """The same with devices and batch per device."""
    return f"{columns(case)} {topology_of(case)} {batch_of(case):<5}"
