"""Settings of a tuned variant: where they apply, and validation of their file."""

from __future__ import annotations

from pathlib import Path

import pytest
from framebench.config import suite as suites
from framebench.config.validation import ConfigError
from framebench.plan.case_settings import variables
from framebench.runs import checks

from ..settings import CATALOG, SUITE, plan

FILE = """
all:
  - {variables: {EVERYWHERE: 1}, effect: x, source: "https://example.org/a"}
frameworks:
  pytorch:
    - {variables: {OWN: 2, EVERYWHERE: 3}, accelerators: [cpu], effect: x, source: "http://e.org"}
    - {variables: {GPU: 4}, accelerators: [cuda], effect: x, source: "http://e.org"}
    - {variables: {COMPILED: 5}, cases: {compiler: inductor}, effect: x, source: "http://e.org"}
"""
SIDES = {"a": None, "b": {"tuned": True}}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "tuned.yaml"
    path.write_text(FILE)
    monkeypatch.setattr(suites, "TUNED", tmp_path)  # absolute: the project's root does not matter
    return path


def given(tmp_path: Path, accelerator: str, **variant: object) -> list[dict[str, str]]:
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


@pytest.mark.usefixtures("file")
def test_the_variables_of_the_variant_come_last(tmp_path: Path) -> None:
    actual = given(tmp_path, "cpu", variables={"EVERYWHERE": "mine"})
    assert [entry.get("EVERYWHERE") for entry in actual] == [None, "mine", None, "mine"]


@pytest.mark.usefixtures("file")
def test_a_tuned_run_has_a_folder_and_a_verification_of_its_own(tmp_path: Path) -> None:
    made = plan(tmp_path, {**SUITE, "variants": SIDES})
    assert len(set(made.folders.values())) == 2
    asked = checks.full_size(made, CATALOG)
    assert {verification.variables for verification in asked} == {
        (),
        (("EVERYWHERE", "3"), ("OWN", "2")),
    }


def test_a_wrong_file_is_refused_by_key(tmp_path: Path, file: Path) -> None:
    file.write_text(FILE.replace("cases: {compiler: inductor}", "cases: {model: [resnet]}"))
    with pytest.raises(ConfigError) as error:
        plan(tmp_path, {**SUITE, "variants": SIDES})
    assert all(word in str(error.value) for word in [str(file), "cases.model[0]", "resnet50"])
