"""Flags that follow from one record, apart from its step times (see `tables.grouping`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from core.case import NONE

from ..run import Flag
from . import disturbance

#: Flag of a figure of a user's own model.
OWN = "own"
#: Flag of a training whose loss had vanished at the end of the timed region.
VANISHED = "vanished"
#: Flags of a compiler that worked within the timed region, and of one that left out parts.
RECOMPILED, BROKEN = "recompiled", "graph_breaks"
#: Flag of a user's model that compiles itself, where no compiler was asked for.
SELF_COMPILED = "self_compiled"
#: Fraction of the first loss below which a loss counts as zero: the resolution of float32.
#: Gradients shrink further, until their products fall below 1.2e-38, the smallest normal float32.
RESOLVED = 2.0**-23


def flags_of(record: Mapping[str, Any]) -> tuple[Flag, ...]:
    """Return the flags of a record; a failed one has at most OWN."""
    own = (Flag(OWN, ""),) if "own_model" in record else ()
    if record["status"] != "ok":
        return own
    return (
        *_never_settled(record),
        *_vanished(record),
        *_disturbed(record),
        *_shared(record),
        *_recompiled(record),
        *_broken(record),
        *_self_compiled(record),
        *own,
    )


def _never_settled(record: Mapping[str, Any]) -> Iterator[Flag]:
    limit = record["settings"].get("warmup_limit")
    if limit and any(rank.get("settled_after") is None for rank in record["ranks"]):
        yield Flag("unsteady", f"the step time had not settled after {limit} steps of warm-up")


def _vanished(record: Mapping[str, Any]) -> Iterator[Flag]:
    """Yield a flag where the loss vanished. Inference has no loss; older records have no values."""
    if record["kind"] == "inference":
        return
    for rank in record["ranks"]:
        first, last = rank.get("first_value"), rank.get("last_value")
        if first is not None and last is not None and abs(last) <= RESOLVED * abs(first):
            fell = f"the loss fell from {first:.3g} to {last:.3g}"
            yield Flag(VANISHED, fell if first else "the loss was 0 from the first step")
            return


def _recompiled(record: Mapping[str, Any]) -> Iterator[Flag]:
    """Yield a flag if a compiler compiled anew in the timed region."""
    for rank in record["ranks"]:
        if compiled := rank.get("compiled", {}).get("recompiled_in_window"):
            times = "once" if compiled["count"] == 1 else f"{compiled['count']} times"
            yield Flag(RECOMPILED, f"recompiled {times} while timed: {compiled['reasons'][0]}")
            return


def _broken(record: Mapping[str, Any]) -> Iterator[Flag]:
    """Yield a flag if parts of a model ran without the compiler."""
    for rank in record["ranks"]:
        compiled = rank.get("compiled", {})
        if breaks := compiled.get("breaks"):
            yield Flag(BROKEN, f"{compiled['graph_breaks']} of them: {'; '.join(breaks)}")
        elif (frames := compiled.get("frames", 0)) > compiled.get("frames_compiled", 0):
            left = f"{frames - compiled['frames_compiled']} of {frames} functions"
            yield Flag(BROKEN, f"compiled too often and left to eager mode: {left}")
        else:
            continue
        return


def _self_compiled(record: Mapping[str, Any]) -> Iterator[Flag]:
    graphs = max(rank.get("compiled", {}).get("unique_graphs", 0) for rank in record["ranks"])
    if record["case"]["compiler"] == NONE and graphs:
        yield Flag(SELF_COMPILED, f"the model compiles itself: {graphs} graph(s)")


def _disturbed(record: Mapping[str, Any]) -> Iterator[Flag]:
    if why := disturbance.disturbed(record):
        yield Flag(disturbance.FLAG, why)


def _shared(record: Mapping[str, Any]) -> Iterator[Flag]:
    """Yield a flag if threads outnumbered physical cores; older records lack their count."""
    per_device, devices = record["settings"]["cores_per_device"], record["case"]["devices_per_node"]
    there = record["environment"]["hardware"].get("physical_cores")
    if record["settings"]["accelerator"] == "cpu" and per_device and isinstance(there, int):
        needed = per_device * devices
        if needed > there:
            yield Flag("shared", f"{needed} threads had {there} physical cores between them")
