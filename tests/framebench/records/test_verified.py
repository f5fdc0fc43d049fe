"""Figures flagged as unverified, and the reasons."""

from __future__ import annotations

import json
import random
import re
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from framebench import cli
from framebench.machine.identities import Identity
from framebench.plan.plan import Plan
from framebench.records import verifications, verified
from framebench.runs import checks
from framebench.runs.job_table import JobTable

from ..made_up_records import record_of
from ..made_up_runs import changed as changed_run
from ..made_up_verifications import (
    CASE,
    MODELS,
    changed,
    compared,
    flag_of,
    run_in,
    verification_in,
)
from ..saved_records import save
from ..settings import CATALOG, SUITE, plan, plan_of_suite

OFF = ("incorrect", "outputs differ from the reference by 0.1 (allowed 0.0001)")


def test_a_figure_without_a_verification_is_unverified(tmp_path: Path) -> None:
    run = run_in(tmp_path, CASE)
    assert flag_of(tmp_path, run) == ("unverified", "")
    verification_in(tmp_path, CASE)
    assert flag_of(tmp_path, run) is None
    imported = changed_run(run, source="dlperf-v1.0", model="unknown")
    assert flag_of(tmp_path, imported) is None


GENERATED = CASE | {"model": "gpt2_small", "mode": "generate"}


@pytest.mark.parametrize("wrong", range(4))
def test_every_quantity_of_a_verification_counts(wrong: int, tmp_path: Path) -> None:
    names = ("loss", "outputs", "dropout", "trainable parameters")
    run = run_in(tmp_path, CASE)
    verification_in(tmp_path, CASE)
    (file,) = (tmp_path / "verification").iterdir()
    record = json.loads(file.read_text())
    fine = [{"quantity": name, "error": 0.0, "where": ""} for name in names]
    far = [{**entry, "error": 1e9 * (n == wrong)} for n, entry in enumerate(fine)]
    (rank,) = record["ranks"]
    record["ranks"] = [{**rank, "verification": fine}, {**rank, "rank": 1, "verification": far}]
    file.write_text(json.dumps(record))
    flag = flag_of(tmp_path, run)
    assert flag is not None
    assert flag[0] == "incorrect"
    assert names[wrong].partition(" ")[0] in flag[1]


def test_generated_text_needs_a_verification_of_its_own(tmp_path: Path) -> None:
    run = run_in(tmp_path, GENERATED)
    verification_in(tmp_path, GENERATED | {"mode": "inference"})
    assert flag_of(tmp_path, run) == ("unverified", "")
    verification_in(tmp_path, GENERATED, error=0.1, started="2031-01-01")
    assert flag_of(tmp_path, run) == OFF
    verification_in(tmp_path, GENERATED, started="2032-01-01")
    assert flag_of(tmp_path, run) is None


def planned(suite: str, results: Path) -> tuple[Plan, dict[str, checks.Verification]]:
    """Return PyTorch's plan of a suite, and its full-size verifications by name."""
    plan = plan_of_suite(suite, results, frameworks="pytorch")
    return plan, checks.verification_names(plan, CATALOG, checks.full_size(plan, CATALOG))


@pytest.mark.parametrize("scale", ["small", "layers=4"])
def test_a_smaller_model_verifies_a_figure_unless_either_fails(tmp_path: Path, scale: str) -> None:
    run = run_in(tmp_path, CASE)
    verification_in(tmp_path, CASE, scale=scale)
    assert flag_of(tmp_path, run) is None
    verification_in(tmp_path, CASE, error=0.1, started="2031-01-01")
    assert flag_of(tmp_path, run) == OFF
    verification_in(tmp_path, CASE, scale=scale, started="2032-01-01")
    assert flag_of(tmp_path, run) == OFF, (
        "a passed small verification outweighed the failed full-size one"
    )
    verification_in(tmp_path, CASE, started="2033-01-01")
    assert flag_of(tmp_path, run) is None
    verification_in(tmp_path, CASE, error=0.1, scale=scale, started="2034-01-01")
    assert flag_of(tmp_path, run) == OFF, (
        "a passed full-size verification outweighed the failed small one"
    )


def test_a_small_model_verifies_a_figure_whose_model_cannot_be_compared(tmp_path: Path) -> None:
    run = run_in(tmp_path, CASE)
    verification_in(tmp_path, CASE, refused="too little memory")
    assert flag_of(tmp_path, run) == ("unverified", "it cannot be compared: too little memory")
    verification_in(tmp_path, CASE, scale="small")
    assert flag_of(tmp_path, run) is None


def test_small_models_are_verified_where_full_size_ones_were_not(tmp_path: Path) -> None:
    plan, full = planned("dlperf", tmp_path)
    small = checks.small(plan, CATALOG, full)
    assert list(small.values()) == [
        verification._replace(scale="small") for verification in full.values()
    ]
    with_dropout = {name for name, verification in full.items() if verification.dropout}
    assert set(small) & set(full) == with_dropout, "dropout is always verified with small models"
    counts = Counter(job.kind for job in JobTable(plan, CATALOG).to_do)
    assert (counts["verification"], counts["reference"]) == (len(full), 2)
    save(tmp_path, f"verification/{next(iter(full))}.json", "{}")
    left = checks.small(plan, CATALOG, full)
    assert list(left.values()) == list(small.values())[1:]
    arguments = checks.verification_arguments(plan, next(iter(left.values())), "reference")
    assert "scale=small" in arguments


def test_a_verification_that_failed_to_run_is_repeated(tmp_path: Path) -> None:
    plan, full = planned("dlperf", tmp_path)
    wanted, table = checks.full_size(plan, CATALOG), JobTable(plan, CATALOG)
    statuses = dict(zip(full, ("ok", "unsupported", "oom", "timeout", "failed"), strict=False))
    for name, status in statuses.items():
        record = {**record_of(random.Random(1), CASE, 1), **compared(CASE), "ranks": []}
        record |= {"status": status, "reason": f"{status} it was"}
        save(tmp_path, f"verification/{name}.json", record)
    expected = [
        f"{name}-retry1" if statuses.get(name) in ("oom", "timeout", "failed") else name
        for name in full
    ]
    assert [*checks.verification_names(plan, CATALOG, wanted)] == expected
    assert not table.grow(plan), "a call repeats a verification at most once"


def test_a_verification_that_could_not_be_made_shows_no_difference(tmp_path: Path) -> None:
    run = run_in(tmp_path, CASE)
    verification_in(tmp_path, CASE, ended=("oom", "others took the memory"))
    why = "the verification could not be made: oom: others took the memory"
    assert flag_of(tmp_path, run) == ("unverified", why)
    verification_in(tmp_path, CASE, error=0.1, started="2020-01-01")
    assert flag_of(tmp_path, run) == OFF, "a difference that was seen stays"


def test_a_time_budget_is_planned_without_excluded_figures(tmp_path: Path) -> None:
    run = run_in(tmp_path, CASE)
    for error, started in ((1e-6, "2030-01-01"), (0.1, "2031-01-01")):
        verification_in(tmp_path, CASE, error=error, started=started)
        results, _ = verifications.load(tmp_path / "verification")
        flags = verified.VerificationFlags(results, MODELS)
        (planned_by,) = verified.without_excluded([run], flags)
        assert planned_by.figure == (run.figure if error < 0.1 else None)


def test_work_in_another_precision_has_a_flag_of_its_own(tmp_path: Path) -> None:
    amp = CASE | {"precision": "amp"}
    run = run_in(tmp_path, amp)
    verification_in(tmp_path, CASE)
    verification_in(tmp_path, amp, error=0.33, quantity="other dtypes")
    share = "33 % of the work ran in another precision (allowed 1 %)"
    assert flag_of(tmp_path, run) == ("partly_fp32", share)
    verification_in(tmp_path, amp, error=0.5, started="2031-01-01")
    assert (flag_of(tmp_path, run) or ("",))[0] == "incorrect"


def test_a_model_too_large_for_the_reference_is_compared_with_fewer_layers(tmp_path: Path) -> None:
    plan, compared = planned("transformers", tmp_path)
    scales = {verification.case.model: verification.scale for verification in compared.values()}
    assert scales["gpt2_small"] == "full"
    assert scales["gpt2_medium"] == "layers=4"
    name, one = next(item for item in compared.items() if item[1].case.model == "gpt2_medium")
    assert "scale=layers=4" in checks.verification_arguments(plan, one, "reference")
    small = checks.small(plan, CATALOG, compared)
    assert name not in small
    assert {verification.scale for verification in small.values()} == {"small"}
    # Inference is compared in a model config with dropout, which inference must switch off.
    configs = {
        (verification.case.mode, verification.dropout): Path(
            arguments[arguments.index("--model") + 1]
        ).stem
        for verification in small.values()
        if verification.case.model == "gpt2_small"
        for arguments in [checks.verification_arguments(plan, verification, "reference")]
    }
    assert configs == {
        ("train", False): "model_config",
        ("train", True): "model_config-dropout",
        ("inference", False): "model_config-dropout",
    }


OWN = {"MKL_CBWR": "COMPATIBLE"}


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"code": {"version": "1", "computation": "d" * 64}}, "the verification is of other code"),
        ({"packages": {"numpy": "1.0", "pytorch": "1"}}, "is of another environment"),
        ({"given": OWN}, "the verification is of other variables"),
        ({"variables": {"NVIDIA_TF32_OVERRIDE": "1"}}, "the verification is of other variables"),
        ({"hardware": {"cpu": "Another CPU"}}, "the verification is of other hardware"),
    ],
)
def test_a_verification_of_something_else_verifies_nothing(
    tmp_path: Path, other: dict[str, Any], why: str
) -> None:
    verification_in(tmp_path, CASE, **other)
    flag, actual = flag_of(tmp_path, run_in(tmp_path, CASE)) or ("", "")
    assert flag == "unverified"
    assert actual.endswith(why)
    # the reverse: the run changed instead of the verification
    assert flag_of(tmp_path, run_in(tmp_path, CASE, **other)) is None


@pytest.mark.parametrize("key", ["mode", "precision", "compiler", "sequence_length"])
def test_each_mode_precision_compiler_and_length_needs_its_own(tmp_path: Path, key: str) -> None:
    other = {"mode": "train", "precision": "amp", "compiler": "inductor", "sequence_length": 64}
    verification_in(tmp_path, CASE)
    run = run_in(tmp_path, {**CASE, key: other[key]})
    assert flag_of(tmp_path, run) == ("unverified", "")


def test_an_old_record_that_does_not_name_its_code_is_unverified(tmp_path: Path) -> None:
    verification_in(tmp_path, CASE, code={"version": "1"})
    run = run_in(tmp_path, CASE, code={"version": "1"})
    assert flag_of(tmp_path, run) == (
        "unverified",
        "the record does not say which code computed it",
    )
    verification_in(tmp_path, CASE, error=0.1, code={"version": "1"}, started="2031-01-01")
    assert flag_of(tmp_path, run) == OFF, "a failure is not lost for want of a digest"


def test_training_is_verified_with_dropout_and_on_several_devices(tmp_path: Path) -> None:
    training = {**CASE, "mode": "train"}
    one, four, both = (
        run_in(tmp_path, {**training, "devices_per_node": n, "accumulation": m})
        for n, m in ((1, 1), (4, 1), (8, 4))
    )
    verification_in(tmp_path, training)
    assert flag_of(tmp_path, one) == ("unverified", "it was not compared with dropout")
    verification_in(tmp_path, training, dropout=True)
    assert flag_of(tmp_path, one) is None
    for run, timed, text in (
        (four, {"devices_per_node": 2}, "on several devices"),
        (both, {"devices_per_node": 2, "accumulation": 2}, "on several devices with accumulation"),
    ):
        case = {**training, **timed}
        assert flag_of(tmp_path, run) == ("unverified", f"it was not compared {text}")
        verification_in(tmp_path, case)
        assert flag_of(tmp_path, run) == ("unverified", f"it was not compared with dropout {text}")
        verification_in(tmp_path, case, dropout=True)
        assert flag_of(tmp_path, run) is None
        verification_in(tmp_path, case, dropout=True, error=9.0, started="2031-01-01")
        off = "dropout differs from the reference by 9 (allowed 6)"
        assert flag_of(tmp_path, run) == ("incorrect", off)
        assert flag_of(tmp_path, one) is None, "a verification on two devices counts for one"
    inference = run_in(tmp_path, {**CASE, "devices_per_node": 4})
    verification_in(tmp_path, CASE)
    assert flag_of(tmp_path, inference) is None, "inference exchanges nothing"


def test_what_cannot_be_compared_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    verification_in(tmp_path, CASE, refused="no amp on a CPU")
    run = run_in(tmp_path, CASE)
    assert flag_of(tmp_path, run) == ("unverified", "it cannot be compared: no amp on a CPU")
    toy = run_in(tmp_path, {**CASE, "model": "toy", "sequence_length": None})
    assert flag_of(tmp_path, toy) == (
        "unverified",
        "there is no reference of toy to compare it with",
    )
    assert cli.main(["report", "--records", f"{tmp_path}/runs", "--results", str(tmp_path)]) == 0
    assert verified.VERIFY_COMMAND not in capsys.readouterr().out, "the command cannot help"


def test_report_tells_how_many_figures_are_unverified(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_in(tmp_path, CASE)
    run_in(tmp_path, {**CASE, "mode": "train"})
    verification_in(tmp_path, CASE)
    assert cli.main(["report", "--records", f"{tmp_path}/runs", "--results", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert re.search("1 of 2 figures are unverified: snakemake --cores all verification", said)
    summary = (tmp_path / "tables" / "summary.md").read_text()
    assert summary.count("unverified") == 2, "one figure, and the word explained"
    verification_in(tmp_path, {**CASE, "mode": "train"})
    verification_in(tmp_path, {**CASE, "mode": "train"}, dropout=True)
    assert cli.main(["report", "--records", f"{tmp_path}/runs", "--results", str(tmp_path)]) == 0
    assert "unverified" not in capsys.readouterr().out
    assert "unverified" not in (tmp_path / "tables" / "summary.csv").read_text()


def test_every_variant_with_its_own_variables_or_software_is_verified(tmp_path: Path) -> None:
    variants = {
        "default": {},
        "again": {},
        "own": {"variables": OWN},
        "mine": {"interpreters": {"pytorch": sys.executable}},
    }
    made = plan(tmp_path, {**SUITE, "variants": variants}, results=str(tmp_path))
    wanted = checks.full_size(made, CATALOG)
    assert [(each.case.variant, each.software, dict(each.variables)) for each in wanted] == [
        ("", "pytorch", {}), ("mine", "pytorch@mine", {}), ("own", "pytorch", OWN),
    ]  # fmt: skip
    names = list(checks.verification_names(made, CATALOG, wanted))
    assert len(names) == 3
    arguments = checks.verification_arguments(made, wanted[2], "reference")
    assert arguments[-2:] == ["--variable", "MKL_CBWR=COMPATIBLE"]
    assert arguments[arguments.index("--variant") + 1] == "own"
    # A verification of another machine is kept: that machine's figures need it.
    elsewhere = changed(record_of(random.Random(1), CASE, 1), system={"host": "elsewhere"})
    save(tmp_path, f"verification/{names[0]}.json", {**elsewhere, **compared(CASE)})
    here = replace(made, here=Identity(host="here"))
    assert [*checks.verification_names(here, CATALOG, wanted)] == [f"{names[0]}-retry1", *names[1:]]
    assert [*checks.verification_names(made, CATALOG, wanted)] == names
