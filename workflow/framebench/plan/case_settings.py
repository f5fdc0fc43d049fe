"""The settings that a case is measured with: software, variables, steps and data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.case import Case

from ..cases import conditions
from ..cases.fitting import Capacity
from ..config.settings import Settings
from ..config.suite import Suite
from ..environments.software import Software


def software(case: Case, suite: Suite) -> str:
    """Return the name of a case's software: FRAMEWORK, FRAMEWORK@VARIANT for a variant with its own
    environment or interpreter, or "" for the driver's own Python."""
    variant = suite.variants.get(case.variant)
    own = variant and case.framework in {**variant.environments, **variant.interpreters}
    return f"{case.framework}@{case.variant}" if own else case.framework


def variables(case: Case, suite: Suite, accelerator: str) -> Mapping[str, str]:
    """Return the environment variables that a case's variant sets for the ranks: the tuned settings
    of its framework, if it is tuned, and its own variables."""
    variant = suite.variants.get(case.variant)
    if not variant:
        return {}
    tuned = variant.tuned.variables(case, accelerator) if variant.tuned else {}
    return {**tuned, **variant.variables}


def data_of(case: Case, settings: Settings) -> dict[str, Any]:
    """Return the data folder of a case; {} if it reads none."""
    return {"data": settings.data and str(settings.data)} if case.reads_images else {}


def request(
    name: str,
    devices: int,
    settings: Settings,
    capacity: Capacity,
    software: Mapping[str, Software],
) -> dict[str, Any]:
    """Return all settings besides the case that decide a measurement on this number of ``devices``
    in the software ``name``."""
    measuring = _measuring(devices, settings, capacity)
    return {**measuring, "seed": settings.seed, "environment": software[name].identity}


def is_beside(devices: int, settings: Settings) -> bool:
    """Return whether a measurement of this many devices may run side by side with others."""
    return settings.side_by_side and devices == 1


def settings_of_case(
    case: Case, settings: Settings, capacity: Capacity, known: Mapping[str, Software]
) -> dict[str, Any]:
    """Return all settings besides the case itself that decide its measurement."""
    suite = settings.suite
    own = variables(case, suite, capacity.accelerator)
    return {
        **request(software(case, suite), case.devices, settings, capacity, known),
        **steps_of(case, suite),
        **({"variables": own} if own else {}),
        **data_of(case, settings),
    }


def asked_conditions(case: Case, settings: Settings, capacity: Capacity) -> conditions.Conditions:
    """Return the conditions that a plan requests for a case."""
    measuring = _measuring(case.devices, settings, capacity)
    steps = steps_of(case, settings.suite)
    return conditions.conditions_from_settings({**measuring, **steps}, case.input_source)


def _measuring(devices: int, settings: Settings, capacity: Capacity) -> dict[str, Any]:
    """Return the settings of a request that also appear in records, without numbers of steps."""
    return {
        "accelerator": capacity.accelerator,
        "cores_per_device": capacity.cores_per_device,
        **({"side_by_side": True} if is_beside(devices, settings) else {}),
    }


def steps_of(case: Case, suite: Suite) -> dict[str, Any]:
    """Return the numbers of steps of a case, as in a record's settings; {} if it counts none."""
    if not (case.is_step or suite.measurements[case.mode].counts_steps):
        return {}
    warmup, timed = suite.steps.warmup, suite.steps.timed
    return {
        "warmup_steps": warmup.at_least,
        **({"warmup_limit": warmup.at_most} if warmup.at_most else {}),
        "timed_steps": timed.at_least,
        **({"timed_seconds": timed.seconds} if timed.seconds and case.is_step else {}),
    }
