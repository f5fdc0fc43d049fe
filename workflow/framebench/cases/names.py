"""Text of a case in tables and on the terminal."""

from __future__ import annotations

from typing import Any


def topology(nodes: Any, devices_per_node: Any) -> str:
    """Return nodes x devices per node in DLPerf's form, such as 2n8g; "" if unknown."""
    nodes, devices = _count(nodes), _count(devices_per_node)
    return f"{nodes}n{devices}g" if nodes and devices else ""


def topology_of(case: Any) -> str:
    """Return the topology of a case, a run or a row."""
    return topology(case.nodes, case.devices_per_node)


def batch_of(case: Any, prefix: str = "b") -> str:
    """Return ``prefix`` and the batch per device of a case, a run or a row; "" if unknown."""
    batch = _count(case.batch_per_device)
    return f"{prefix}{batch}" if batch else ""


def _count(value: Any) -> int:
    """Return a count; 0 for the missing values of data frames."""
    try:
        return int(value)
    except (TypeError, ValueError):
        return 0


def columns(case: Any) -> str:
    """Return framework, model, mode, precision and compiler in fixed-width columns."""
    return (
        f"{case.framework:<11} {case.model:<14} {case.mode:<9} {case.precision:<4} "
        f"{case.compiler:<9}"
    )


def columns_with_size(case: Any) -> str:
    """Return the fixed-width columns of a case with its devices and batch per device."""
    return f"{columns(case)} {topology_of(case)} {batch_of(case):<5}"
