"""The settings that a case is measured with: software, variables, steps and data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.case import Case

from ..cases import conditions
from ..cases.fitting import Capacity
from ..config import tuned
from ..config.settings import Settings
from ..config.suite import Suite
from ..environments.software import Software


def software(case: Case, suite: Suite) -> str:
    """Return the name of a case's software: FRAMEWORK, or FRAMEWORK@VARIANT.

    The latter is for variants with their own environment or interpreter. "" is the driver's own
    Python.
    """
    variant = suite.variants.get(case.variant)
    own = variant and case.framework in {**variant.environments, **variant.interpreters}
    return f"{case.framework}@{case.variant}" if own else case.framework


def variables(case: Case, suite: Suite, accelerator: str, vendor: str = "") -> Mapping[str, str]:
    """Return the environment variables that a case's variant sets for the ranks.

    These are the tuned settings of its framework, if it is tuned, and its own variables.
    """
    variant = suite.variants.get(case.variant)
    if not variant:
        return {}
    settings = variant.tuned.settings(case.framework) if variant.tuned else ()
    own = [setting for setting in settings if tuned.applies(setting.cases, case)]
    return {**tuned.variables(own, accelerator, case.compiler, vendor), **variant.variables}


def misfit(case: Case, suite: Suite, accelerator: str) -> str:
    """Return why a case cannot have the published settings of its variant; "" if it can."""
    variant = suite.variants.get(case.variant)
    if not variant or not variant.tuned:
        return ""
    return variant.tuned.misfit(case, accelerator)


def data_of(case: Case, settings: Settings) -> dict[str, Any]:
    """Return the data folder of a case; {} if it reads none."""
    if not case.reads_images:
        return {}
    return {"data": settings.data and str(settings.data)}


def request(
    name: str,
    devices: int,
    settings: Settings,
    capacity: Capacity,
    software: Mapping[str, Software],
) -> dict[str, Any]:
    """Return all settings besides the case that decide a measurement on so many ``devices`` in the
    software ``name``."""
    environment = software[name].identity
    if settings.cluster and settings.cluster.node_kind:
        # Names with this identity differ between kinds of nodes.
        environment = {"node_kind": settings.cluster.node_kind, "software": environment}
    measuring = _measuring(devices, settings, capacity)
    return {**measuring, "seed": settings.seed, "environment": environment}


def is_beside(devices: int, settings: Settings) -> bool:
    """Return whether a measurement of so many devices goes side by side with others."""
    return settings.side_by_side and devices == 1


def settings_of_case(
    case: Case, settings: Settings, capacity: Capacity, known: Mapping[str, Software]
) -> dict[str, Any]:
    """Return all settings besides the case itself that decide its measurement."""
    suite = settings.suite
    own = variables(case, suite, capacity.accelerator, capacity.vendor)
    return {
        **request(software(case, suite), case.devices, settings, capacity, known),
        **steps_of(case, suite),
        **({"variables": own} if own else {}),
        **data_of(case, settings),
    }


def asked_conditions(case: Case, settings: Settings, capacity: Capacity) -> conditions.Conditions:
    """Return the conditions that a plan requests for a case."""
    return conditions.conditions_from_settings(
        {
            **_measuring(case.devices, settings, capacity),
            **steps_of(case, settings.suite),
        },
        case.input_source,
    )


def _measuring(devices: int, settings: Settings, capacity: Capacity) -> dict[str, Any]:
    """Return the settings of a request that also appear in records, without the numbers of
    steps."""
    return {
        "accelerator": capacity.accelerator,
        "cores_per_device": capacity.cores_per_device,
        **({"side_by_side": True} if is_beside(devices, settings) else {}),
    }


def steps_of(case: Case, suite: Suite) -> dict[str, Any]:
    """Return the numbers of steps of a case, as in a record's settings.

    Returns {} for a benchmark that counts none.
    """
    if not (case.is_step or suite.measurements[case.mode].counts_steps):
        return {}
    return {
        "warmup_steps": suite.warmup_steps,
        **({"warmup_limit": suite.warmup_limit} if suite.warmup_limit else {}),
        "timed_steps": suite.timed_steps,
        **({"timed_seconds": suite.timed_seconds} if suite.timed_seconds and case.is_step else {}),
    }
