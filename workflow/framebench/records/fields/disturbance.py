"""Whether something else than the run had a hand in its figure, judged from what its watcher saw.

Standard library only: it is asked between two attempts of a run, too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from . import by_node

FLAG = "disturbed"

#: Cores that others kept busy, as a part of those that the run used. Below it lies what a system
#: does for itself; a pinned rank that loses this part of its core is slower by about as much.
FOREIGN_LOAD = 0.05

#: The same of the whole machine, which shares its memory, caches and power budget with the run.
MACHINE_FOREIGN_LOAD = 0.10

#: Part of the run's cores that the hypervisor gave to others. It slows the run by as much, and 2 %
#: is the change of a step time that matters (see :data:`steady.RELEVANT`).
STEAL = 0.02

#: Seconds by which the kernel's ticks of 10 ms, at both ends of a window, may misstate the load of
#: a core.
ROUNDING_SECONDS = 0.02

#: A machine with less than this part of its memory available reclaims pages while the run works.
MEMORY = 0.02

#: Bytes per second moved to and from swap space. An idle program that wakes up moves less.
SWAP_RATE = 2**20

#: Of a run on many nodes so many are told of; the record has all.
NODES_NAMED = 2

#: Reasons for which a GPU lowers its clocks that are no part of its normal work. At the power cap
#: of its software (sw_power_cap) a GPU under full load is by design, and clocks that somebody set
#: (applications_clocks_setting) are a setting: both are recorded, and no disturbance.
THROTTLED = (
    "hw_slowdown",
    "sw_thermal_slowdown",
    "hw_thermal_slowdown",
    "hw_power_brake_slowdown",
)


def disturbed(record: Mapping[str, Any]) -> str:
    """Why the figure of an ok record is not that of the machines at rest, in words; "" where
    nothing speaks against it, or nothing is known.

    Of a run with others of ours beside it, it is the devices that must be at rest. Load elsewhere
    is what such a run is measured with, as its conditions say, and no more than a neighbour makes;
    on GPUs that is all load. It stays in the record.
    """
    told = []
    for node, watch in by_node.found(record, "watch"):
        why = "; ".join((*_load(watch, _quiet(record)), *_host(watch), *_gpus(watch)))
        if why:
            told.append(f"node {node}: {why}" if node else why)
    more = len(told) - NODES_NAMED
    further = [f"{more} further nodes, see the record"] if more > 0 else []
    return "; ".join([*told[:NODES_NAMED], *further])


def _quiet(record: Mapping[str, Any]) -> tuple[str, ...]:
    """Where others may not work while a run is timed."""
    settings = record.get("settings", {})
    if not settings.get("side_by_side"):
        return ("foreign_load", "machine_foreign_load")
    return ("foreign_load",) if settings["cores_per_device"] else ()


def _load(watch: Mapping[str, Any], quiet: Collection[str]) -> Iterator[str]:
    seconds = _seconds(watch)
    if not seconds:
        return  # no load of it is known
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
    """Of a window shorter than the interval, the counters of the whole interval are known."""
    return float(max(watch["window_seconds"], watch["interval_seconds"]))


def _host(watch: Mapping[str, Any]) -> Iterator[str]:
    if watch["throttle_events"]:
        yield f"the processor was throttled for its heat ({watch['throttle_events']:.0f} events)"
    total, available = watch["memory_bytes"], watch["memory_available_bytes_min"]
    if total and available is not None and available < MEMORY * total:
        yield f"only {available / 2**20:.0f} MiB of memory were available"
    swapped = watch["swapped_bytes"]
    if swapped and swapped > SWAP_RATE * _seconds(watch):
        yield f"{swapped / 2**20:.0f} MiB were swapped"


def _gpus(watch: Mapping[str, Any]) -> Iterator[str]:
    for index, gpu in enumerate(watch["gpus"]):
        told = gpu["throttle_reasons"] or {}
        found = [f"{name} in {told[name]:.0%} of samples" for name in THROTTLED if told.get(name)]
        if found:
            yield f"GPU {index} was throttled: {', '.join(found)}"
        if gpu["other_processes"]:
            yield (
                f"GPU {index} had other processes: "
                f"{', '.join(str(process) for process in gpu['other_processes'])}"
            )
        if gpu["uncorrected_errors"]:
            yield f"GPU {index} had {gpu['uncorrected_errors']:.0f} uncorrected memory errors"
