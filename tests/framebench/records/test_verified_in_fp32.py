"""Figures in another precision than fp32 are verified in fp32, too: plans and flags."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from framebench.plan import costs
from framebench.plan.plan import Plan
from framebench.runs import checks
from framebench.runs.job_table import JobTable

from ..made_up_verifications import CASE, flag_of, run_in, verification_in
from ..settings import CATALOG, changed, plan

OWN = {"MKL_CBWR": "COMPATIBLE"}
AMP = {**CASE, "precision": "amp"}


def of_suite(tmp_path: Path, **axes: Any) -> tuple[Plan, list[checks.Verification]]:
    suite = changed(model=["bert_base"], sequence_length=[128], **axes)
    made = plan(tmp_path, suite, results=str(tmp_path))
    return made, checks.full_size(made, CATALOG)


AXES: dict[str, Any] = {
    "mode": ["train", "inference"],
    "devices_per_node": [1, 2],
    "accumulation": [1, 4],
}


@pytest.mark.parametrize("precision", ["amp", "fp8"])
def test_what_another_precision_is_verified_in_is_verified_in_fp32_too(
    tmp_path: Path, precision: str
) -> None:
    _, wanted = of_suite(tmp_path, precision=[precision], **AXES)
    in_fp32 = [verification for verification in wanted if verification.case.precision == "fp32"]
    own = [verification for verification in wanted if verification.case.precision == precision]
    assert [
        verification._replace(case=verification.case._replace(precision="fp32"))
        for verification in own
    ] == in_fp32
    assert len(wanted) == len({*wanted}) == 2 * len(own)
    actual = {
        (
            verification.case.mode,
            verification.case.devices,
            verification.case.accumulation,
            verification.dropout,
        )
        for verification in in_fp32
    }
    assert actual == {
        *(("train", devices, micro_steps, dropout)
          for devices in (1, 2) for micro_steps in (1, 2) for dropout in (False, True)),
        ("inference", 1, 1, False),
    }  # fmt: skip


def test_nothing_is_verified_for_a_precision_that_a_framework_has_not(tmp_path: Path) -> None:
    _, wanted = of_suite(tmp_path, framework=["megengine"], precision=["amp"])
    assert not wanted


def test_variables_that_fp32_refuses_are_left_out_of_its_verification(tmp_path: Path) -> None:
    variables = {"TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "1", **OWN}
    suite = {
        **changed(precision=["tf32"]),
        "variants": {"default": {}, "own": {"variables": variables}},
    }
    made = plan(tmp_path, suite)
    actual = {
        (verification.case.variant, verification.case.precision): dict(verification.variables)
        for verification in checks.full_size(made, CATALOG)
    }
    assert actual == {
        ("", "tf32"): {}, ("", "fp32"): {}, ("own", "tf32"): variables, ("own", "fp32"): OWN,
    }  # fmt: skip


def test_small_verifications_of_a_framework_share_a_process(tmp_path: Path) -> None:
    suite = {
        **changed(framework=["pytorch"], precision=["fp32", "amp"], devices_per_node=[1, 2]),
        "variants": {"default": {}, "own": {"variables": OWN}},
    }
    made = plan(tmp_path, suite)
    full = checks.verification_names(made, CATALOG, checks.full_size(made, CATALOG))
    small = checks.small(made, CATALOG, full)
    table = JobTable(made, CATALOG)
    jobs = table.made_by(table.checks)
    together = [job for job in jobs if job.parts]
    assert [job.software for job in together] == ["pytorch"]
    alone = [small[job.path] for job in jobs if job.kind == "verification"]
    assert all(verification.case.devices == 2 or verification.variables for verification in alone)
    for job in together:
        compared = [small[part.path] for part in job.parts if part.kind == "verification"]
        assert {check.case.precision for check in compared} == {"fp32", "amp"}
        assert len({(check.software, check.variables) for check in compared}) == 1
    assert not table.grow(made), "each is made once"


def test_a_time_budget_pays_once_for_the_verification_in_fp32_of_another_precision(
    tmp_path: Path,
) -> None:
    def checks(**suite: Any) -> dict[str, float]:
        axes = changed(model=["resnet50_v1.5"], precision=["amp"])
        made = plan(tmp_path, {**axes, **suite, "time_budget": 600})
        known = costs.measured_cases(made, {}, 0.0)
        return {case.case.precision: case.checks for case in known}

    alone, later = checks(), checks(then=[{"precision": ["fp32"]}])
    together = checks(include=[{"precision": ["fp32"]}])
    assert together["amp"] == together["fp32"], "each case pays for its own"
    total = sum(together.values())
    assert alone["amp"] == pytest.approx(total)
    assert sum(later.values()) == pytest.approx(total)
    assert later["amp"] > together["amp"], "its verification in fp32 does not wait for fp32's runs"


@pytest.mark.parametrize("precision", ["amp", "fp8"])
def test_figures_in_another_precision_need_a_verification_in_fp32(
    tmp_path: Path, precision: str
) -> None:
    own = {**CASE, "precision": precision}
    run = run_in(tmp_path, own)
    verification_in(tmp_path, own)
    assert flag_of(tmp_path, run) == ("unverified", "it was not compared in fp32")
    verification_in(tmp_path, CASE)
    assert flag_of(tmp_path, run) is None
    # an error within the bounds of other precisions
    verification_in(tmp_path, CASE, error=2e-3, started="2031-01-01")
    off = "outputs differ from the reference by 0.002 (allowed 0.0001)"
    assert flag_of(tmp_path, run) == ("incorrect", f"in fp32, {off}")
    assert flag_of(tmp_path, run_in(tmp_path, CASE)) == ("incorrect", off)
    verification_in(tmp_path, CASE, started="2032-01-01")
    verification_in(tmp_path, own, error=2.0, started="2032-01-01")
    flag, why = flag_of(tmp_path, run) or ("", "")
    assert (flag, why[:42]) == ("incorrect", "outputs differ from the reference by 2 (al")
    assert flag_of(tmp_path, run_in(tmp_path, CASE)) is None


def test_a_figure_whose_framework_has_no_fp32_says_so(tmp_path: Path) -> None:
    run = run_in(tmp_path, AMP)
    verification_in(tmp_path, AMP)
    verification_in(tmp_path, CASE, refused="compiles half precision alone")
    why = "it cannot be compared in fp32: compiles half precision alone"
    assert flag_of(tmp_path, run) == ("unverified", why)


def test_what_fp32_refuses_is_no_other_variable(tmp_path: Path) -> None:
    allowed = {"given": {"TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "1", **OWN}}
    tf32 = {**CASE, "precision": "tf32"}
    run = run_in(tmp_path, tf32, **allowed)
    verification_in(tmp_path, tf32, **allowed)
    verification_in(tmp_path, CASE)
    assert flag_of(tmp_path, run) == (
        "unverified",
        "the verification in fp32 is of other variables",
    )
    verification_in(tmp_path, CASE, given=OWN)
    assert flag_of(tmp_path, run) is None


def test_a_training_with_soft_labels_is_verified_with_some(tmp_path: Path) -> None:
    converge = {"model": ["digits_resnet"], "devices_per_node": [2], "epochs": 1}
    suite = {
        **changed(mode=["inference"]),
        "measurements": {"converge": {**converge, "label_smoothing": [0.0, 0.1]}},
    }
    made = plan(tmp_path, suite)
    (soft,) = (one for one in checks.full_size(made, CATALOG) if one.soft_labels)
    assert (soft.case.model, soft.case.mode, soft.case.devices) == ("digits_resnet", "train", 2)
    assert "--soft-labels" in checks.reference_arguments(made, soft)
    assert "labels=soft" in checks.verification_arguments(made, soft, "/reference")


@pytest.mark.parametrize(("chosen", "labels"), [({"label_smoothing": 0.1}, "soft"), ({}, "hard")])
def test_a_training_to_a_target_is_excluded_where_its_step_differs_from_the_reference(
    tmp_path: Path, chosen: dict[str, Any], labels: str
) -> None:
    training = {**CASE, "model": "digits_resnet", "mode": "train", "sequence_length": None}
    run = run_in(tmp_path, training)
    parameters = tuple({"epochs": 1, **chosen}.items())
    run = replace(run, case=run.case._replace(mode="converge", parameters=parameters))
    verification_in(tmp_path, training, labels="hard" if labels == "soft" else "soft", error=1.0)
    assert flag_of(tmp_path, run) == ("unverified", "")
    verification_in(tmp_path, training, labels=labels)
    assert flag_of(tmp_path, run) is None
    verification_in(
        tmp_path, training, labels=labels, error=1.0, started="2031-01-01T00:00:00.000Z"
    )
    assert (flag_of(tmp_path, run) or ("",))[0] == "incorrect"
