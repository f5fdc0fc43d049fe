"""The record's ``watch``: the watcher's samples, cut to the timed region."""

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
    seconds = end - start
    inside = [sample for sample in samples if start <= sample["seconds"] <= end]
    samples = _around(samples, window)

    def per_second(name: str) -> Optional[float]:
        grown = growth(samples, name, window)
        return None if grown is None else grown / seconds

    swapped = growth(samples, "swapped_pages", window)
    return {
        "window_seconds": seconds,
        "interval_seconds": interval,
        "samples": len(inside),
        "cores": sources.used,
        "counted_cores": sources.counted,
        "machine_cores": os.cpu_count(),
        "foreign_load": _foreign(samples, "", window),
        "machine_foreign_load": _foreign(samples, "machine_", window),
        "steal": per_second("stolen_seconds"),
        "waiting": per_second("waiting_seconds"),
        "frequency_mhz": _range(inside, "mhz_min", "mhz_median", "mhz_max"),
        "temperature_celsius_max": max(_values(inside, "temperature_celsius"), default=None),
        "throttle_events": _difference(_values(samples, "throttle_events")),
        "throttled_periods": _difference(_values(samples, "throttled_periods")),
        "memory_bytes": sources.memory_bytes,
        "memory_available_bytes_min": min(_values(inside, "memory_available_bytes"), default=None),
        "swapped_bytes": None if swapped is None else swapped * _PAGE,
        "energy_joules": _energy(samples, window),
        "gpus": [
            dict(cores, **_gpu(f"gpu-{index}_", samples, inside, window))
            for index, cores in enumerate(sources.gpus)
        ],
        "watching": per_second("watching_seconds"),
        "absent": dict(sources.absent),
        "raw": _raw(samples, start),
    }


def _around(samples: Sequence[Sample], window: Window) -> List[Sample]:
    """Return the samples within the window, the last before and the first after it."""
    before = [sample for sample in samples if sample["seconds"] < window[0]]
    after = [sample for sample in samples if sample["seconds"] > window[1]]
    inside = samples[len(before) : len(samples) - len(after)]
    return [*before[-1:], *inside, *after[:1]]


def _values(samples: Sequence[Sample], name: str) -> List[Any]:
    return [sample[name] for sample in samples if sample.get(name) is not None]


def _range(
    samples: Sequence[Sample], low: str, middle: str, high: str
) -> Optional[Dict[str, float]]:
    """Return the least, median and highest value of all samples, by their names."""
    middles = _values(samples, middle)
    if not middles:
        return None
    lows, highs = _values(samples, low), _values(samples, high)
    return {"min": min(lows), "median": statistics.median(middles), "max": max(highs)}


def _foreign(samples: Sequence[Sample], prefix: str, window: Window) -> Optional[Dict[str, float]]:
    """Return the cores that others kept busy: on average, and at most from one sample to the next.

    ``prefix``: ``machine_``, or "" for the counted cores."""

    busy, own = f"{prefix}busy_seconds", f"{prefix}own_seconds"

    def foreign(sample: Sample) -> Optional[float]:
        present = sample.get(busy) is not None and sample.get(own) is not None
        return sample[busy] - sample[own] if present else None

    counted = [{"seconds": sample["seconds"], "": foreign(sample)} for sample in samples]
    grown = growth(counted, "", window)
    if grown is None:
        return None
    loads = [
        (later[""] - earlier[""]) / (later["seconds"] - earlier["seconds"])
        for earlier, later in zip(counted[1:-1], counted[2:-1])
        if later[""] is not None and earlier[""] is not None
    ]
    # Kernel clock ticks may be added to one account sooner than to the other.
    mean = max(0.0, grown / (window[1] - window[0]))
    return {"mean": mean, "max": max([mean, *loads])}


def _energy(samples: Sequence[Sample], window: Window) -> Dict[str, float]:
    """Return the joules of the window by counter: ``package-0``, ``dram-0``, ``gpu-0``; {} without
    any."""
    names = [name for name in (samples[0] if samples else ()) if name.endswith(_JOULES)]
    grown = {name[: -len(_JOULES)]: growth(samples, name, window) for name in names}
    return {name: joules for name, joules in grown.items() if joules is not None}


def _gpu(
    prefix: str, samples: Sequence[Sample], inside: Sequence[Sample], window: Window
) -> Dict[str, Any]:
    def values(name: str) -> List[Any]:
        return _values(inside, prefix + name)

    def clocks(name: str) -> Optional[Dict[str, float]]:
        return _range(inside, *[prefix + name] * 3)

    def mean(name: str) -> Optional[float]:
        readings = values(name)
        return statistics.mean(readings) if readings else None

    # Processes may come and go between samples, so those before and after the window count too.
    others = _values(samples, prefix + "other_processes")
    reasons = values("throttle_reasons")
    named = [set(nvml.reasons(bits)) for bits in reasons]
    shares = {name: sum(name in some for some in named) / len(named) for name in _union(named)}
    return {
        "utilization_percent_mean": mean("utilization_percent"),
        "sm_mhz": clocks("sm_mhz"),
        "memory_mhz": clocks("memory_mhz"),
        "watts_mean": mean("watts"),
        "temperature_celsius_max": max(values("temperature_celsius"), default=None),
        "throttle_reasons": shares if reasons else None,
        "other_processes": sorted(_union(others)) if others else None,
    }


def _union(sets: Sequence[Any]) -> List[Any]:
    return sorted(set().union(*sets))


def _difference(counts: Sequence[float]) -> Optional[float]:
    return counts[-1] - counts[0] if counts else None


def _raw(samples: Sequence[Sample], start: float) -> Dict[str, List[Any]]:
    """Return the samples by column, from the last before the window to the first after it.

    ``seconds`` count from the window's start. Empty columns are dropped."""
    columns: Dict[str, List[Any]] = {
        "seconds": [round(sample["seconds"] - start, 4) for sample in samples]
    }
    for name in samples[0] if samples else ():
        if name != "seconds" and _values(samples, name):
            columns[name] = [_short(sample.get(name)) for sample in samples]
    return columns


def _short(value: Any) -> Any:
    """Round to a tenth of a millisecond, a millijoule, a kilohertz: finer than any source."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else round(value, 4)
    return value
