"""Settings as a user would write them, and the plan that follows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from framebench.config.catalog import load_catalog
from framebench.config.settings import Settings, load_settings
from framebench.config.validation import ConfigError
from framebench.machine.local import Machine
from framebench.plan.plan import Plan
from framebench.plan.planning import make_plan

ROOT = Path(__file__).parents[2]
CATALOG = load_catalog(ROOT)
CONFIG = yaml.safe_load((ROOT / "config" / "config.yaml").read_text())
SUITE = {
    "steps": {"warmup": 1, "timed": 2},
    "repeats": 2,
    "axes": {"framework": ["pytorch"], "model": ["resnet50_v1.5"], "batch_per_device": [2]},
}
TWO_CORES = Machine(2, 0)
#: Axes of SUITE except its batch, for suites with another batch.
AXES_WITHOUT_BATCH = {
    key: value for key, value in SUITE["axes"].items() if key != "batch_per_device"
}


def settings(
    tmp_path: Path, suite: object = SUITE, methods: tuple[str, ...] = (), **config: object
) -> Settings:
    """Return settings for a suite, given as data or as text. ``methods``: methods of ``--sdm``."""
    path = tmp_path / "my.yaml"
    path.write_text(suite if isinstance(suite, str) else yaml.safe_dump(suite))
    return load_settings({**CONFIG, "suite": str(path), **config}, CATALOG, methods)


def plan(
    tmp_path: Path, suite: object = SUITE, methods: tuple[str, ...] = (),
    machine: Machine = TWO_CORES, **config: object,
) -> Plan:  # fmt: skip
    """Return the plan of a suite, without records. ``methods``: methods of ``--sdm``."""
    return make_plan(settings(tmp_path, suite, methods, **config), CATALOG, machine, None)


def plan_of_axes(tmp_path: Path, given: dict[str, Any] | None = None, **axes: object) -> Plan:
    """Return the plan of SUITE with these axes on eight cores; the usual batch is 4 per device.
    ``given``: keys of the configuration."""
    batch = {} if "batch_total" in axes else {"batch_per_device": [4]}
    suite = {**SUITE, "axes": {**AXES_WITHOUT_BATCH, **batch, **axes}}
    return plan(tmp_path, suite, machine=Machine(8, 0), **(given or {}))


def plan_of_suite(name: str, results: Path, machine: Machine = TWO_CORES, **config: object) -> Plan:
    """Return the plan of a suite that ships, without records."""
    given = {**CONFIG, "suite": name, "results": str(results), **config}
    return make_plan(load_settings(given, CATALOG), CATALOG, machine, None)


def changed(**axes: object) -> dict[str, object]:
    return {**SUITE, "axes": {**SUITE["axes"], **axes}}


def assert_clear(error: pytest.ExceptionInfo[ConfigError], expected: list[str]) -> None:
    message = str(error.value)
    missing = [word for word in expected if word not in message]
    assert not missing, f"{missing} missing from: {message}"
    assert "Traceback" not in message
