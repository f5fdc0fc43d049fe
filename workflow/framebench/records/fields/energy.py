"""Energy of a run's timed region, and the measured parts of the machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from . import by_node


def joules(record: Mapping[str, Any]) -> float | None:
    """Return the energy of the timed region: processors, memory and GPUs, as far as read.

    Returns None unless every node has a reading.
    """
    known = [sum(read.values()) for _, read in _read(record) if read]
    # The energy of some nodes is not that of the run.
    return sum(known) if known and len(known) == record["case"]["nodes"] else None


def joules_per_sample(record: Mapping[str, Any]) -> float | None:
    """Return the energy per sample of the timed region; None without energy or samples."""
    whole = joules(record)
    return None if whole is None or not record["samples"] else whole / record["samples"]


def sources(record: Mapping[str, Any]) -> str:
    """Return the kinds of energy sources on all nodes; "" without any.

    A processor's package includes its idle cores.
    """
    kinds = dict.fromkeys(
        f"{kind} (with idle cores)" if kind == "package" and _has_idle_cores(watch) else kind
        for watch, joules in _read(record)
        for kind in (name.partition("-")[0] for name in joules)
    )
    return ", ".join(kinds)


def _read(record: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], dict[str, float]]]:
    """Yield each node's monitor data, and its joules by source, as far as read."""
    for _, watch in by_node.parts(record, "watch"):
        joules = watch["energy_joules"].items()
        yield watch, {name: float(value) for name, value in joules if value is not None}


def _has_idle_cores(watch: Mapping[str, Any]) -> bool:
    """Return whether the run left logical cores unused.

    ``counted_cores`` are the run's cores and their sibling threads.
    """
    return len(watch["counted_cores"]) < (watch["machine_cores"] or 0)
