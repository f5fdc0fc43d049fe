"""What a record tells against the figure in it, besides its step times (see `cases.doubts_of`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..run import Flag
from . import disturbance

#: The mark of a figure whose model is one that a user brought, for one framework.
OWN = "own"
#: That of a training which had learned its batch by heart when its window ended.
VANISHED = "vanished"
#: Part of the first loss below which there is none: what float32 resolves. A cross-entropy in
#: float32 is then zero but for rounding, and tells no more how small the gradients are: they go on
#: to shrink, until products of them fall below its smallest normal number, 1.2e-38.
RESOLVED = 2.0**-23


def flags_of(record: Mapping[str, Any]) -> tuple[Flag, ...]:
    """All such doubts about an ok record."""
    own = [Flag(OWN, "")] if "own_model" in record else []
    return (
        *_never_settled(record),
        *_vanished(record),
        *_disturbed(record),
        *_shared(record),
        *own,
    )


def _never_settled(record: Mapping[str, Any]) -> Iterator[Flag]:
    limit = record["settings"].get("warmup_limit")
    if limit and any(rank.get("settled_after") is None for rank in record["ranks"]):
        yield Flag("unsteady", f"the step time had not settled after {limit} steps of warm-up")


def _vanished(record: Mapping[str, Any]) -> Iterator[Flag]:
    """What infers has outputs, no loss. Records that do not tell their values have none."""
    if record["kind"] == "inference":
        return
    for rank in record["ranks"]:
        first, last = rank.get("first_value"), rank.get("last_value")
        if first is not None and last is not None and abs(last) <= RESOLVED * abs(first):
            yield Flag(VANISHED, f"the loss fell from {first:.3g} to {last:.3g}")
            return


def _disturbed(record: Mapping[str, Any]) -> Iterator[Flag]:
    if why := disturbance.disturbed(record):
        yield Flag(disturbance.MARK, why)


def _shared(record: Mapping[str, Any]) -> Iterator[Flag]:
    """Older records do not tell how many physical cores there were."""
    per_device, devices = record["settings"]["cores_per_device"], record["case"]["devices_per_node"]
    there = record["environment"]["hardware"].get("physical_cores")
    if record["settings"]["accelerator"] == "cpu" and per_device and isinstance(there, int):
        needed = per_device * devices
        if needed > there:
            yield Flag("shared", f"{needed} threads had {there} physical cores between them")
