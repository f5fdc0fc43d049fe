"""Summaries of a watcher."""

from __future__ import annotations

import random
from typing import Any

from .made_up_records import CASE, record_of

GPU = {
    "name": "Example GPU",
    "uuid": "GPU-1",
    "utilization_percent_mean": 99.0,
    "sm_mhz": {"min": 1400, "median": 1400, "max": 1400},
    "memory_mhz": None,
    "watts_mean": 300.0,
    "temperature_celsius_max": 70,
    "throttle_reasons": {"sw_power_cap": 1.0, "gpu_idle": 0.1},
    "uncorrected_errors": 0,
    "other_processes": [],
}


def watch(**changes: Any) -> dict[str, Any]:
    """Return the summary of a calm run on 2 of 8 cores for 10 s."""
    calm = {
        "window_seconds": 10.0,
        "interval_seconds": 0.5,
        "samples": 20,
        "cores": [0, 2],
        "counted_cores": [0, 1, 2, 3],
        "machine_cores": 8,
        "foreign_load": {"mean": 0.02, "max": 0.5},
        "machine_foreign_load": {"mean": 0.1, "max": 0.9},
        "steal": 0.01,
        "waiting": 0.3,
        "frequency_mhz": {"min": 800.0, "median": 3000.0, "max": 4000.0},
        "temperature_celsius_max": 90.0,
        "throttle_events": 0,
        "memory_bytes": 2**34,
        "memory_available_bytes_min": 2**33,
        "swapped_bytes": 4096.0,
        "energy_joules": {"package-0": 900.0},
        "gpus": [],
        "watching": 0.001,
        "absent": {},
        "raw": {"seconds": [-0.5, 0.0, 10.5]},
    }
    return {**calm, **changes}


def made(**other: Any) -> dict[str, Any]:
    return record_of(random.Random(0), {**CASE, "batch_per_device": 2}, 1, **other)


def as_suite_asks(**other: Any) -> dict[str, Any]:
    """Return a record with the steps of SUITE and the cores of Machine(2, 0)."""
    options = {"cores_per_device": 2, "warmup_steps": 1, "timed_steps": 2}
    record = made(**other)
    return {**record, "settings": {**record["settings"], **options}}
