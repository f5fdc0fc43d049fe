"""Options that a target would ignore are refused, and an empty measurement says why."""

from __future__ import annotations

from pathlib import Path

import pytest
from framebench.config.settings import load_settings
from framebench.config.validation import ConfigError
from framebench.machine.local import Machine
from framebench.plan import targets
from framebench.plan.plan import Plan
from framebench.plan.planning import make_plan

from ..settings import CATALOG, CONFIG, SUITE, changed, plan, settings

MEASURES = "a target that measures"
IMAGES = {"pytorch": "docker://pytorch"}


def test_records_to_report_are_refused_by_a_measurement(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as error:
        targets.check_measurement(plan(tmp_path, records=str(tmp_path)), MEASURES)
    expected = f"records: found '{tmp_path}' for {MEASURES}; allowed with the target report:"
    assert expected in str(error.value)
    targets.check_measurement(plan(tmp_path), MEASURES)


def test_images_are_not_ignored(tmp_path: Path) -> None:
    def made(*methods: str) -> Plan:
        given = {**CONFIG, "suite": str(settings(tmp_path).suite.path), "images": IMAGES}
        return make_plan(load_settings(given, CATALOG, methods), CATALOG, Machine(2, 0), None)

    for methods in ((), ("conda",)):
        with pytest.raises(ConfigError, match="images: found entries without --sdm apptainer; "):
            targets.check_measurement(made(*methods), MEASURES)
    targets.check_measurement(made("apptainer"), MEASURES)


def test_a_suite_of_which_nothing_fits_says_why(tmp_path: Path) -> None:
    left = plan(tmp_path, changed(devices_per_node=[4, 8], nodes=[1, 2]))
    with pytest.raises(ConfigError) as error:
        targets.check_runs(left)
    message = str(error.value)
    assert "my.yaml: found no case that can be run here, 4 are left out" in message
    assert "needs 2 nodes, but there is only 1 (2 cases)" in message
    assert "needs 4 devices per node, here is 1 (x 2 cores) (1 cases)" in message
    targets.check_runs(plan(tmp_path, SUITE))


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("ONEDNN_DEFAULT_FPMATH_MODE", "BF16", "unset or STRICT"),
        ("NVIDIA_TF32_OVERRIDE", "1", "unset or 0"),
        ("TF_SET_ONEDNN_FPMATH_MODE", "BF16", "unset"),
    ],
)
def test_a_variable_that_makes_something_else_of_a_precision_is_refused(
    name: str, value: str, allowed: str, tmp_path: Path
) -> None:
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
