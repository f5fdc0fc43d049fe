"""Flags that follow from one record, apart from its step times (see `tables.results`)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from core.case import NONE

from . import fields
from .run import Flag

#: Flag of a figure of a user's own model.
OWN = "own"
#: Flag of a run whose machine was not at rest.
DISTURBED = "disturbed"
#: Flag of a training whose loss had vanished at the end of the timed region.
VANISHED = "vanished"
#: Flags for a compiler that ran within the timed region, or left out parts of the model.
RECOMPILED, BROKEN = "recompiled", "graph_breaks"
#: Flag of a user's model that compiles itself, where no compiler was asked for.
SELF_COMPILED = "self_compiled"
#: Fraction of the first loss below which a loss counts as zero: the resolution of float32.
#: Gradients shrink further, until their products fall below 1.2e-38, the smallest normal float32.
RESOLVED = 2.0**-23

#: Largest foreign load, as a fraction of the run's cores. An idle system stays below it; a
#: pinned rank that loses this fraction of its core is slower by about this fraction.
FOREIGN_LOAD = 0.05
#: Largest foreign load, as a fraction of the machine's cores, which share memory, caches and power
#: budget with the run.
MACHINE_FOREIGN_LOAD = 0.10
#: Largest fraction of the run's cores that the hypervisor gives to others. The run slows by as
#: much, and 2 % is the relevant change of a step time (see :data:`steady.RELEVANT`).
STEAL = 0.02
#: Rounding error of a core's load in seconds: kernel ticks of 10 ms at both ends of the timed
#: region.
ROUNDING_SECONDS = 0.02
#: Abnormal reasons for which a GPU lowers its clocks. The software power cap (sw_power_cap) is
#: normal at full load, and fixed clocks (applications_clocks_setting) are a setting. Both are
#: recorded and are no disturbance.
THROTTLED = (
    "hw_slowdown",
    "sw_thermal_slowdown",
    "hw_thermal_slowdown",
    "hw_power_brake_slowdown",
)


def flags_of(record: Mapping[str, Any]) -> tuple[Flag, ...]:
    """Return the flags of a record; a failed one has at most OWN."""
    reasons = {}
    if record["status"] == "ok":
        reasons = {
            "unsteady": _never_settled(record),
            VANISHED: "" if record["kind"] == "inference" else _first(record, _vanished),
            DISTURBED: disturbed(record),
            "shared": _shared(record),
            RECOMPILED: _first(record, _recompiled),
            BROKEN: _first(record, _broken),
            SELF_COMPILED: _self_compiled(record),
        }
    flags = [Flag(name, why) for name, why in reasons.items() if why]
    return (*flags, *([Flag(OWN, "")] if "own_model" in record else []))


def _first(record: Mapping[str, Any], why: Callable[[Mapping[str, Any]], str]) -> str:
    """Return the reason of the first rank that has one; "" for none."""
    return next(filter(None, map(why, record["ranks"])), "")


def _never_settled(record: Mapping[str, Any]) -> str:
    limit = record["settings"].get("warmup_limit")
    if limit and any(rank.get("settled_after") is None for rank in record["ranks"]):
        return f"the step time had not settled after {limit} steps of warm-up"
    return ""


def _vanished(rank: Mapping[str, Any]) -> str:
    """Return how a loss vanished. Older records have no values."""
    first, last = rank.get("first_value"), rank.get("last_value")
    if first is None or last is None or abs(last) > RESOLVED * abs(first):
        return ""
    fell = f"the loss fell from {first:.3g} to {last:.3g}"
    return fell if first else "the loss was 0 from the first step"


def _recompiled(rank: Mapping[str, Any]) -> str:
    """Return why a compiler compiled anew in the timed region."""
    compiled = rank.get("compiled", {}).get("recompiled_in_window")
    if not compiled:
        return ""
    times = "once" if compiled["count"] == 1 else f"{compiled['count']} times"
    return f"recompiled {times} while timed: {compiled['reasons'][0]}"


def _broken(rank: Mapping[str, Any]) -> str:
    """Return which parts of a model ran without the compiler."""
    compiled = rank.get("compiled", {})
    if breaks := compiled.get("breaks"):
        return f"{compiled['graph_breaks']} of them: {'; '.join(breaks)}"
    frames = compiled.get("frames", 0)
    if (left := frames - compiled.get("frames_compiled", 0)) > 0:
        return f"compiled too often and left to eager mode: {left} of {frames} functions"
    return ""


def _self_compiled(record: Mapping[str, Any]) -> str:
    graphs = max(rank.get("compiled", {}).get("unique_graphs", 0) for rank in record["ranks"])
    if record["case"]["compiler"] == NONE and graphs:
        return f"the model compiles itself: {graphs} graph(s)"
    return ""


def _shared(record: Mapping[str, Any]) -> str:
    """Return whether threads outnumbered physical cores; older records lack their count."""
    per_device, devices = record["settings"]["cores_per_device"], record["case"]["devices_per_node"]
    cores = record["environment"]["hardware"].get("physical_cores")
    if record["settings"]["accelerator"] != "cpu" or not per_device or not isinstance(cores, int):
        return ""
    needed = per_device * devices
    return f"{needed} threads had {cores} physical cores between them" if needed > cores else ""


def disturbed(record: Mapping[str, Any]) -> str:
    """Return what disturbed the run of an ok record; "" if nothing is known.

    A run side by side with others is disturbed by load on its own cores only, and on GPUs by no
    load of cores. Load elsewhere is a condition of such a run, and stays in the record.
    """
    settings, quiet = record.get("settings", {}), ["foreign_load", "machine_foreign_load"]
    if settings.get("side_by_side"):
        quiet = ["foreign_load"] if settings["cores_per_device"] else []
    reasons = []
    for node, watch in fields.parts(record, "watch"):
        why = "; ".join((*_load(watch, quiet), *_host(watch), *_gpus(watch)))
        if why:
            reasons.append(f"node {node}: {why}" if node else why)
    more = f"; {len(reasons) - 1} further nodes, see the record" if len(reasons) > 1 else ""
    return "".join(reasons[:1]) + more


def _load(watch: Mapping[str, Any], quiet: Collection[str]) -> Iterator[str]:
    """Yield the load by others. ``quiet``: kinds of foreign load that disturb the run."""
    # The counters run for the timed region, or for the longer sampling interval.
    seconds = max(watch["window_seconds"], watch["interval_seconds"])
    if not seconds:
        return  # the load is unknown
    rounding = ROUNDING_SECONDS / seconds
    own, all_cores = len(watch["cores"]), watch["machine_cores"]
    for name, whose, cores, limit in (
        ("foreign_load", "the run's cores", own, FOREIGN_LOAD),
        ("machine_foreign_load", "the machine's cores", all_cores, MACHINE_FOREIGN_LOAD),
    ):
        load = watch[name] if name in quiet else None
        if load and cores and load["mean"] > (limit + rounding) * cores:
            yield (
                f"others kept {load['mean']:.2f} of {whose} ({cores}) busy "
                f"(at most {limit:.0%} of them: {limit * cores:.2f})"
            )
    cores = len(watch["counted_cores"])
    if watch["steal"] is not None and cores and watch["steal"] > (STEAL + rounding) * cores:
        yield f"the hypervisor took {watch['steal'] / cores:.1%} of the run's cores"


def _host(watch: Mapping[str, Any]) -> Iterator[str]:
    if watch["throttle_events"]:
        yield f"the processor was throttled for its heat ({watch['throttle_events']:.0f} events)"
    if periods := watch.get("throttled_periods"):  # older records lack the field
        yield f"a control group's CPU quota stopped the run in {periods:.0f} periods"


def _gpus(watch: Mapping[str, Any]) -> Iterator[str]:
    for index, gpu in enumerate(watch["gpus"]):
        reasons = gpu["throttle_reasons"] or {}
        found = [
            f"{name} in {reasons[name]:.0%} of samples" for name in THROTTLED if reasons.get(name)
        ]
        if found:
            yield f"GPU {index} was throttled: {', '.join(found)}"
        if others := gpu["other_processes"]:
            yield f"GPU {index} had other processes: {', '.join(map(str, others))}"
