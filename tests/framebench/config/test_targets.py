"""Options that a target would ignore are refused, and an empty measurement says why."""

from __future__ import annotations

from pathlib import Path

import pytest
from framebench.config.validation import ConfigError
from framebench.plan import targets

from ..settings import SUITE, changed, plan


def test_records_to_report_are_refused_by_a_measurement(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"records: found .* that measures; allowed with the"):
        targets.check_measurement(plan(tmp_path, records=str(tmp_path)))
    targets.check_measurement(plan(tmp_path))


def test_a_suite_of_which_nothing_fits_says_why(tmp_path: Path) -> None:
    left = plan(tmp_path, changed(devices_per_node=[4, 8], nodes=[1, 2]))
    with pytest.raises(ConfigError) as error:
        targets.check_runs(left)
    message = str(error.value)
    assert "my.yaml: found no case that can be run here, 4 are left out" in message
    assert "needs 2 nodes, but there is only 1 (2 cases)" in message
    assert "needs 4 devices per node, here is 1 (x 2 cores) (1 cases)" in message
    targets.check_runs(plan(tmp_path, SUITE))


def test_a_variable_that_makes_something_else_of_a_precision_is_refused(tmp_path: Path) -> None:
    name, value, allowed = "ONEDNN_DEFAULT_FPMATH_MODE", "BF16", "unset or STRICT"
    message = f"{name}: found {value}, which changes what fp32 computes; allowed: {allowed}"
    with pytest.raises(ConfigError) as error:
        targets.check_arithmetic(plan(tmp_path), {name: value})
    assert str(error.value) == f"environment: {message}"
    variants = {"variants": {"default": {}, "other": {"variables": {name: value}}}}
    of_variant = plan(tmp_path, {**SUITE, **variants})
    with pytest.raises(ConfigError) as error:
        targets.check_arithmetic(of_variant, {})
    assert str(error.value) == f"{of_variant.settings.suite.path}: {message}"


def test_a_variable_that_leaves_a_precision_as_it_is_is_accepted(tmp_path: Path) -> None:
    strict = {"ONEDNN_DEFAULT_FPMATH_MODE": "STRICT", "NVIDIA_TF32_OVERRIDE": ""}
    targets.check_arithmetic(plan(tmp_path), strict)
    amp = plan(tmp_path, changed(precision=["amp"]))
    targets.check_arithmetic(amp, {"ONEDNN_DEFAULT_FPMATH_MODE": "BF16"})
