"""Summary of what the watcher saw in the timed region."""

from __future__ import annotations

import os
import statistics
from typing import Any, Dict, List, Optional, Sequence, Tuple

from harness.telemetry import nvml
from harness.telemetry.watcher import Sample, Sources, Watcher

_PAGE = os.sysconf("SC_PAGE_SIZE")
_JOULES = "_joules"

Window = Tuple[float, float]


def summary(watcher: Watcher, ranks: Sequence[Dict[str, Any]]) -> Optional[Dict[str, Any]]:
    """Return the record's ``watch``; None for a run without a timed region."""
    window = window_of(ranks)
    if window is None:
        return None
    return summarize(list(watcher.samples), watcher.interval, watcher.sources, window)


def window_of(ranks: Sequence[Dict[str, Any]]) -> Optional[Window]:
    """Return the time from the first rank's start to the last one's end; None where no rank was
    timed.

    Both are seconds of the clock that all processes of a machine share."""
    timed = [rank for rank in ranks if "window_start" in rank and "window_seconds" in rank]
    if not timed:
        return None
    ends = [rank["window_start"] + rank["window_seconds"] for rank in timed]
    return min(rank["window_start"] for rank in timed), max(ends)


def at(samples: Sequence[Sample], name: str, moment: float) -> Optional[float]:
    """Return a counter at ``moment``, interpolated linearly between neighbouring samples; None
    where there are none."""
    points = [(s["seconds"], s[name]) for s in samples if s.get(name) is not None]
    for (before, low), (after, high) in zip(points, points[1:]):
        if before <= moment <= after and after > before:
            return float(low + (high - low) * (moment - before) / (after - before))
    return None


def growth(samples: Sequence[Sample], name: str, window: Window) -> Optional[float]:
    """Return the growth of a counter in the window."""
    low, high = (at(samples, name, moment) for moment in window)
    return None if low is None or high is None else high - low


def summarize(
    samples: Sequence[Sample], interval: float, sources: Sources, window: Window
) -> Dict[str, Any]:
    """Return a summary of ``window``.

    Sums (load, energy) are exact for any window, if they grew evenly between two samples. Events
    are counted from the last sample before the window to the first after it. Other values
    (frequency, temperature, throttle reasons) come from samples within the window, and are None
    without any."""
    start, end = window
    inside = [sample for sample in samples if start <= sample["seconds"] <= end]
    before = [sample for sample in samples if sample["seconds"] < start]
    after = [sample for sample in samples if sample["seconds"] > end]
    samples = [*before[-1:], *inside, *after[:1]]
    stolen, swapped = (
        growth(samples, name, window) for name in ("stolen_seconds", "swapped_pages")
    )
    energies = {
        name[: -len(_JOULES)]: growth(samples, name, window)
        for name in (samples[0] if samples else ())
        if name.endswith(_JOULES)
    }
    return {
        "window_seconds": end - start,
        "interval_seconds": interval,
        "samples": len(inside),
        "cores": sources.used,
        "counted_cores": sources.counted,
        "machine_cores": os.cpu_count(),
        "foreign_load": _foreign(samples, "", window),
        "machine_foreign_load": _foreign(samples, "machine_", window),
        "steal": None if stolen is None else stolen / (end - start),
        "frequency_mhz": _range(inside, "mhz"),
        "temperature_celsius_max": max(_values(inside, "temperature_celsius"), default=None),
        "throttle_events": _difference(_values(samples, "throttle_events")),
        "throttled_periods": _difference(_values(samples, "throttled_periods")),
        "memory_bytes": sources.memory_bytes,
        "memory_available_bytes_min": min(_values(inside, "memory_available_bytes"), default=None),
        "swapped_bytes": None if swapped is None else swapped * _PAGE,
        # By counter: package-0, dram-0, gpu-0.
        "energy_joules": {name: used for name, used in energies.items() if used is not None},
        "gpus": [
            {**facts, **_gpu(f"gpu-{index}_", samples, inside)}
            for index, facts in enumerate(sources.gpus)
        ],
        "absent": dict(sources.absent),
    }


def _values(samples: Sequence[Sample], name: str) -> List[Any]:
    return [sample[name] for sample in samples if sample.get(name) is not None]


def _range(samples: Sequence[Sample], name: str) -> Optional[Dict[str, float]]:
    """Return the least, median and highest value of all samples."""
    values = _values(samples, name)
    if not values:
        return None
    return {"min": min(values), "median": statistics.median(values), "max": max(values)}


def _foreign(samples: Sequence[Sample], prefix: str, window: Window) -> Optional[Dict[str, float]]:
    """Return the cores that others kept busy, on average. ``prefix``: ``machine_``, or "" for the
    counted cores."""
    busy = growth(samples, f"{prefix}busy_seconds", window)
    own = growth(samples, f"{prefix}own_seconds", window)
    if busy is None or own is None:
        return None
    # Kernel clock ticks may be added to one account sooner than to the other.
    return {"mean": max(0.0, (busy - own) / (window[1] - window[0]))}


def _gpu(prefix: str, samples: Sequence[Sample], inside: Sequence[Sample]) -> Dict[str, Any]:
    def values(name: str) -> List[Any]:
        return _values(inside, prefix + name)

    # Processes may come and go between samples, so those before and after the window count too.
    others = _values(samples, f"{prefix}other_processes")
    named = [set(nvml.reasons(bits)) for bits in values("throttle_reasons")]
    shares = {name: sum(name in some for some in named) / len(named) for name in _union(named)}
    return {
        "sm_mhz": _range(inside, f"{prefix}sm_mhz"),
        "watts_mean": statistics.mean(values("watts")) if values("watts") else None,
        "temperature_celsius_max": max(values("temperature_celsius"), default=None),
        "throttle_reasons": shares if named else None,
        "other_processes": _union(others) if others else None,
    }


def _union(sets: Sequence[Any]) -> List[Any]:
    return sorted(set().union(*sets))


def _difference(counts: Sequence[float]) -> Optional[float]:
    return counts[-1] - counts[0] if counts else None
