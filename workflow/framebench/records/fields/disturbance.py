"""Disturbance of a run by other load, judged from its monitor's data.

Standard library only, because it is also used between two attempts of a run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from . import nodes

FLAG = "disturbed"

#: Largest foreign load, as a fraction of the run's cores. A system's own work is below it; a pinned
#: rank that loses this fraction of its core is slower by about as much.
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

#: Least available fraction of memory; with less, the kernel reclaims pages during the run.
MEMORY = 0.02

#: Largest swap traffic in bytes per second; an idle program that wakes up causes less.
SWAP_RATE = 2**20

#: Abnormal reasons for which a GPU lowers its clocks. The software power cap (sw_power_cap) is
#: normal at full load, and fixed clocks (applications_clocks_setting) are a setting. Both are
#: recorded and are no disturbance.
THROTTLED = (
    "hw_slowdown",
    "sw_thermal_slowdown",
    "hw_thermal_slowdown",
    "hw_power_brake_slowdown",
)


def disturbed(record: Mapping[str, Any]) -> str:
    """Return why an ok record's figure is not that of a machine at rest; "" if nothing is known.

    For concurrent runs only the run's own cores must be at rest, and on GPUs no cores. Load
    elsewhere is part of the conditions of such a run, and stays in the record.
    """
    reasons = []
    for node, watch in nodes.parts(record, "watch"):
        why = "; ".join((*_load(watch, _quiet(record)), *_host(watch), *_gpus(watch)))
        if why:
            reasons.append(f"node {node}: {why}" if node else why)
    more = f"; {len(reasons) - 1} further nodes, see the record" if len(reasons) > 1 else ""
    return "".join(reasons[:1]) + more


def _quiet(record: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the kinds of foreign load that disturb a run."""
    settings = record.get("settings", {})
    if not settings.get("side_by_side"):
        return ("foreign_load", "machine_foreign_load")
    return ("foreign_load",) if settings["cores_per_device"] else ()


def _load(watch: Mapping[str, Any], quiet: Collection[str]) -> Iterator[str]:
    seconds = _seconds(watch)
    if not seconds:
        return  # the load is unknown
    rounding = ROUNDING_SECONDS / seconds
    used, machine = len(watch["cores"]), watch["machine_cores"]
    kinds = (
        ("foreign_load", "the run's cores", used, FOREIGN_LOAD),
        ("machine_foreign_load", "the machine's cores", machine, MACHINE_FOREIGN_LOAD),
    )
    for name, whose, cores, limit in kinds:
        load = watch[name] if name in quiet else None
        if load and cores and load["mean"] > (limit + rounding) * cores:
            yield (
                f"others kept {load['mean']:.2f} of {whose} ({cores}) busy "
                f"(at most {limit:.0%} of them: {limit * cores:.2f})"
            )
    cores = len(watch["counted_cores"])
    if watch["steal"] is not None and cores and watch["steal"] > (STEAL + rounding) * cores:
        yield f"the hypervisor took {watch['steal'] / cores:.1%} of the run's cores"


def _seconds(watch: Mapping[str, Any]) -> float:
    """Return the seconds of the counters: the timed region, or the longer sampling interval."""
    return float(max(watch["window_seconds"], watch["interval_seconds"]))


def _host(watch: Mapping[str, Any]) -> Iterator[str]:
    if watch["throttle_events"]:
        yield f"the processor was throttled for its heat ({watch['throttle_events']:.0f} events)"
    periods = watch.get("throttled_periods")  # older records lack it
    if periods:
        yield f"a control group's CPU quota stopped the run in {periods:.0f} periods"
    total, available = watch["memory_bytes"], watch["memory_available_bytes_min"]
    if total and available is not None and available < MEMORY * total:
        yield f"only {available / 2**20:.0f} MiB of memory were available"
    swapped = watch["swapped_bytes"]
    if swapped and swapped > SWAP_RATE * _seconds(watch):
        yield f"{swapped / 2**20:.0f} MiB were swapped"


def _gpus(watch: Mapping[str, Any]) -> Iterator[str]:
    for index, gpu in enumerate(watch["gpus"]):
        reasons = gpu["throttle_reasons"] or {}
        found = [
            f"{name} in {reasons[name]:.0%} of samples" for name in THROTTLED if reasons.get(name)
        ]
        if found:
            yield f"GPU {index} was throttled: {', '.join(found)}"
        if gpu["other_processes"]:
            yield (
                f"GPU {index} had other processes: "
                f"{', '.join(str(process) for process in gpu['other_processes'])}"
            )
        if gpu.get("uncorrected_errors"):  # of records of before
            yield f"GPU {index} had {gpu['uncorrected_errors']:.0f} uncorrected memory errors"
