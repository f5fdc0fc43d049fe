"""The energy of a run's window, and what of the machine it is of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from . import by_node


def joules(record: Mapping[str, Any]) -> float | None:
    """Of all sources that were read (processors, memory, GPUs) together, over the whole window;
    None without any."""
    known = [sum(read.values()) for _, read in _read(record) if read]
    # Of some nodes alone it would not be that of the run.
    return sum(known) if known and len(known) == record["case"]["nodes"] else None


def joules_per_sample(record: Mapping[str, Any]) -> float | None:
    """The same over all samples of the window; None without samples, too."""
    whole = joules(record)
    return None if whole is None or not record["samples"] else whole / record["samples"]


def sources(record: Mapping[str, Any]) -> str:
    """The kinds of what was read, of all nodes; "" where nothing was. A processor's package counts
    all of its cores, those that had nothing to do among them."""
    kinds = dict.fromkeys(
        f"{kind} (with idle cores)" if kind == "package" and _has_idle_cores(watch) else kind
        for watch, joules in _read(record)
        for kind in (name.partition("-")[0] for name in joules)
    )
    return ", ".join(kinds)


def _read(record: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], dict[str, float]]]:
    """What watched each node, and joules by source, as far as they were read."""
    for _, watch in by_node.found(record, "watch"):
        joules = watch["energy_joules"].items()
        yield watch, {name: float(value) for name, value in joules if value is not None}


def _has_idle_cores(watch: Mapping[str, Any]) -> bool:
    """Whether the run left logical cores to others: ``counted_cores`` are its own with what else
    their physical cores have."""
    return len(watch["counted_cores"]) < (watch["machine_cores"] or 0)
