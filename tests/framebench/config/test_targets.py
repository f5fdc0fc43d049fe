"""Options that a target would ignore are refused, and an empty measurement says why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from framebench.config.settings import load_settings
from framebench.config.validation import ConfigError
from framebench.machine.local import Machine
from framebench.plan import targets
from framebench.plan.planning import Plan, make_plan

from ..settings import CATALOG, CONFIG, SUITE, changed, plan, settings

MEASURES = "a target that measures"


@pytest.mark.parametrize(
    ("key", "target", "allowed"),
    [
        ("records", MEASURES, "report or lint or export or nodes"),
        ("records", "compare", "report or lint or export or nodes"),
        ("base", MEASURES, "compare"),
        ("candidate", "report", "compare"),
        ("from", "export", "import"),
        ("to", "import", "export"),
        ("format", MEASURES, "export or import or make_data"),
    ],
)
def test_a_key_of_another_target_is_refused(
    key: str, target: str, allowed: str, tmp_path: Path
) -> None:
    given = settings(tmp_path, **{key: str(tmp_path)})
    with pytest.raises(ConfigError) as error:
        targets.check_keys(given, target)
    expected = f"{key}: found '{tmp_path}' for {target}; allowed with the target {allowed}:"
    assert expected in str(error.value)


def test_a_measurement_is_not_redacted(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=f"redact: found 'True' for {MEASURES}; allowed .* archive"
    ):
        targets.check_keys(settings(tmp_path, redact=True), MEASURES)


def test_the_keys_of_a_target_are_accepted(tmp_path: Path) -> None:
    of_report = settings(tmp_path, records=str(tmp_path))
    targets.check_keys(of_report, "report")
    targets.check_keys(of_report, "lint")
    targets.check_keys(settings(tmp_path, base=str(tmp_path), candidate=str(tmp_path)), "compare")
    targets.check_measurement(plan(tmp_path), MEASURES)


@pytest.mark.parametrize(
    ("values", "method"),
    [
        ({"images": {"pytorch": "docker://pytorch"}}, "apptainer"),
        ({"modules": {"pytorch": ["pytorch/2.7"]}}, "env-modules"),
    ],
)
def test_what_is_brought_is_not_ignored(
    values: dict[str, Any], method: str, tmp_path: Path
) -> None:
    def made(*methods: str) -> Plan:
        suite = settings(tmp_path).suite.path
        given = load_settings({**CONFIG, "suite": str(suite), **values}, CATALOG, methods)
        return make_plan(given, CATALOG, Machine(2, 0), None)

    refused = f"{next(iter(values))}: found entries without --sdm {method}; allowed"
    for methods in ((), ("conda",)):
        with pytest.raises(ConfigError, match=refused):
            targets.check_measurement(made(*methods), MEASURES)
    targets.check_measurement(made(method), MEASURES)


def test_a_suite_of_which_nothing_fits_says_why(tmp_path: Path) -> None:
    left = plan(tmp_path, changed(devices_per_node=[4, 8], nodes=[1, 2]))
    with pytest.raises(ConfigError) as error:
        targets.check_runs(left)
    message = str(error.value)
    assert "my.yaml: found no case that can be run here, 4 are left out" in message
    assert "needs 2 nodes, here is 1 (2 cases)" in message
    assert "needs 4 devices per node, here are 1 (x 2 cores) (1 cases)" in message
    targets.check_runs(plan(tmp_path, SUITE))


@pytest.mark.parametrize("text", ["a b", "it's", "a;b", "a&b", "(a)", "a#b", "*", "~x"])
def test_what_jobs_are_told_as_it_stands_is_accepted(text: str) -> None:
    targets.check_quoting("results", text)


@pytest.mark.parametrize("text", ["$(touch x)", "$HOME", "`x`", 'a"b', 'it\'s "a"', "a\\b"])
def test_what_jobs_would_be_told_otherwise_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"results: found .* allowed on a cluster: without"):
        targets.check_quoting("results", text)


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
    told = f"{name}: found {value}, which changes what fp32 computes; allowed: {allowed}"
    with pytest.raises(ConfigError) as error:
        targets.check_arithmetic(plan(tmp_path), {name: value})
    assert str(error.value) == f"environment: {told}"
    arms = {"variants": {"usual": {}, "other": {"variables": {name: value}}}}
    of_arm = plan(tmp_path, {**SUITE, **arms})
    with pytest.raises(ConfigError) as error:
        targets.check_arithmetic(of_arm, {})
    assert str(error.value) == f"{of_arm.settings.suite.path}: {told}"


def test_a_variable_that_leaves_a_precision_as_it_is_is_accepted(tmp_path: Path) -> None:
    strict = {"ONEDNN_DEFAULT_FPMATH_MODE": "STRICT", "NVIDIA_TF32_OVERRIDE": ""}
    targets.check_arithmetic(plan(tmp_path), strict)
    amp = plan(tmp_path, changed(precision=["amp"]))
    targets.check_arithmetic(amp, {"ONEDNN_DEFAULT_FPMATH_MODE": "BF16"})
