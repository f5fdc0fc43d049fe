"""Settings of a tuned variant: where they apply, and validation of their file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from framebench.cases import matrix
from framebench.config import tuned
from framebench.config.validation import ConfigError
from framebench.plan.case_settings import misfit, variables
from framebench.runs import commands, verify

from ..settings import CATALOG, SUITE, plan

FILE = """
all:
  - {variables: {EVERYWHERE: 1}, effect: x, source: "https://example.org/a"}
frameworks:
  pytorch:
    - {variables: {OWN: 2, EVERYWHERE: 3}, accelerators: [cpu], effect: x, source: "http://e.org"}
    - {variables: {GPU: 4}, accelerators: [cuda], effect: x, source: "http://e.org"}
    - {variables: {COMPILED: 5}, compiler: inductor, effect: x, source: "http://e.org"}
"""
SIDES = {"a": None, "b": {"tuned": True}}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "tuned.yaml"
    path.write_text(FILE)
    monkeypatch.setattr(tuned, "FOLDER", tmp_path)  # absolute: the project's root does not matter
    return path


def given(tmp_path: Path, accelerator: str, **variant: object) -> list[dict[str, str]]:
    """Return the variables of both sides, in a suite of PyTorch and JAX."""
    axes = {**SUITE["axes"], "framework": ["pytorch", "jax"]}
    sides = {"a": None, "b": {"tuned": True, **variant}}
    made = plan(tmp_path, {**SUITE, "axes": axes, "variants": sides})
    suite = made.settings.suite
    return [dict(variables(case, suite, accelerator)) for case in made.folders]


@pytest.mark.usefixtures("file")
def test_each_framework_has_its_own_and_those_of_all_on_the_accelerator_they_are_for(
    tmp_path: Path,
) -> None:
    own = {"OWN": "2", "EVERYWHERE": "3"}
    assert given(tmp_path, "cpu") == [{}, own, {}, {"EVERYWHERE": "1"}]
    gpu = {"EVERYWHERE": "1", "GPU": "4"}
    assert given(tmp_path, "cuda") == [{}, gpu, {}, {"EVERYWHERE": "1"}]


def test_the_vendor_of_a_machine_decides_the_command_of_a_run(tmp_path: Path, file: Path) -> None:
    file.write_text(FILE.replace("accelerators: [cpu]", "processors: [AuthenticAMD]"))
    made = plan(tmp_path, {**SUITE, "variants": SIDES})
    run = next(run for run in made.runs if run.case.variant == "b")
    for vendor in ("AuthenticAMD", "GenuineIntel", ""):
        here = replace(made, capacity=replace(made.capacity, vendor=vendor))
        assert ("OWN=2" in commands.arguments(here, run)) == (vendor == "AuthenticAMD")


@pytest.mark.usefixtures("file")
def test_a_tuned_run_is_another_than_the_usual_one_and_needs_a_proof_of_its_own(
    tmp_path: Path,
) -> None:
    made = plan(tmp_path, {**SUITE, "variants": SIDES})
    assert len(set(made.folders.values())) == 2
    asked = verify.full_size(made, CATALOG)
    assert {verification.variables for verification in asked} == {
        (),
        (("EVERYWHERE", "3"), ("OWN", "2")),
    }


def test_a_wrong_file_is_refused_by_key(tmp_path: Path, file: Path) -> None:
    file.write_text(FILE.replace("effect: x", "cases: {model: [resnet]}, effect: x"))
    with pytest.raises(ConfigError) as error:
        plan(tmp_path, {**SUITE, "variants": SIDES})
    assert all(word in str(error.value) for word in [str(file), "cases.model[0]", "resnet50"])


PUBLISHED = """
published: Somebody's rates
frameworks:
  pytorch:
    - {variables: {OWN: 1}, cases: {precision: [amp, amp_fp16]}, effect: x, source: http://e.org}
"""


def test_published_settings_are_for_what_was_published(tmp_path: Path, file: Path) -> None:
    file.with_name("tuned_nvidia.yaml").write_text(PUBLISHED)
    axes = {
        "framework": ["pytorch", "jax"], "model": ["resnet50_v1.5", "bert_base"],
        "precision": ["fp32", "amp"], "batch_per_device": [2],
    }  # fmt: skip
    suite = plan(
        tmp_path, {**SUITE, "axes": axes, "variants": {"b": {"tuned": "nvidia"}}}
    ).settings.suite
    actual = {
        case: misfit(case, suite, "cuda") or dict(variables(case, suite, "cuda"))
        for case in matrix.cases(suite, CATALOG)
    }
    lacking = "Somebody's rates sets no variables for this {} in {}"
    assert {(c.framework, c.model, c.precision): entry for c, entry in actual.items()} == {
        ("pytorch", "resnet50_v1.5", "fp32"): lacking.format("resnet50_v1.5", "pytorch"),
        ("pytorch", "resnet50_v1.5", "amp"): {"OWN": "1"},
        ("pytorch", "bert_base", "fp32"): lacking.format("bert_base", "pytorch"),
        ("pytorch", "bert_base", "amp"): {"OWN": "1"},
        **{
            ("jax", model, precision): lacking.format(model, "jax")
            for model in axes["model"]
            for precision in axes["precision"]
        },
    }


def test_published_settings_are_left_out_on_a_processor(tmp_path: Path, file: Path) -> None:
    file.with_name("tuned_nvidia.yaml").write_text(PUBLISHED)
    made = plan(tmp_path, {**SUITE, "variants": {"a": None, "b": {"tuned": "nvidia"}}})
    assert {case.variant for case in made.folders} == {"a"}
    assert {(left_out.case.variant, left_out.reason) for left_out in made.left_out} == {
        ("b", "the settings of Somebody's rates are for GPUs")
    }
