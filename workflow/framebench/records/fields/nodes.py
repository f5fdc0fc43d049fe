"""Energy of a run, and whether other processes held the memory that it lacked, from all of its
nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

#: If other processes hold at least the first fraction of the memory that a run may hold, and the
#: run at most the second fraction, the others caused the lack of memory.
_OTHERS, _OWN = 0.25, 0.75


def parts(record: Mapping[str, Any], part: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield name and ``part`` (``watch`` or ``memory``) of each node that has it.

    The name is "" for a run on a single node.
    """
    for node in record.get("nodes") or [{**record, "node": ""}]:
        if node.get(part) is not None:
            yield node["node"], node[part]


def joules(record: Mapping[str, Any]) -> float | None:
    """Return the energy of the timed region: processors, memory and GPUs, as far as read.

    Returns None unless every node has a reading.
    """
    known = [sum(read.values()) for read in _read(record) if read]
    # The energy of only some nodes is not the run's.
    return sum(known) if known and len(known) == record["case"]["nodes"] else None


def joules_per_sample(record: Mapping[str, Any]) -> float | None:
    """Return the energy per sample of the timed region; None without energy or samples."""
    whole = joules(record)
    return None if whole is None or not record["samples"] else whole / record["samples"]


def energy_sources(record: Mapping[str, Any]) -> str:
    """Return the kinds of energy sources on all nodes; "" without any."""
    sources = (name.partition("-")[0] for joules in _read(record) for name in joules)
    return ", ".join(dict.fromkeys(sources))


def _read(record: Mapping[str, Any]) -> Iterator[dict[str, float]]:
    """Yield each node's joules by source, as far as read."""
    for _, watch in parts(record, "watch"):
        joules = watch["energy_joules"].items()
        yield {name: float(value) for name, value in joules if value is not None}


def crowded_out(record: Mapping[str, Any]) -> bool:
    """Return whether others held much of a node's memory while the run held clearly less than its
    limit (without one, than the whole memory); False for older records, which lack this
    information."""
    return any(
        memory.get("others_bytes", 0) > _OTHERS * _most(memory)
        and memory["peak_bytes"] < _OWN * _most(memory)
        for _, memory in parts(record, "memory")
    )


def _most(memory: Mapping[str, int]) -> int:
    """Return the bytes that a run might hold."""
    return memory["limit_bytes"] if "limit_bytes" in memory else memory["total_bytes"]
