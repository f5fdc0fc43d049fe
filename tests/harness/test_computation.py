"""Digest of the code that computes a figure."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from core import precisions
from harness.provenance import code

from ..conftest import ROOT
from ..frameworks.models import BERT, model_config_of

PYTORCH = ROOT / "scripts" / "frameworks" / "pytorch"


def test_another_adapter_or_module_or_fact_is_another_computation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(PYTORCH, tmp_path / "pytorch")
    for name in ("core", "harness", "networks"):
        shutil.copytree(ROOT / "scripts" / name, tmp_path / name)
    monkeypatch.setattr(code, "SCRIPTS", str(tmp_path))
    model_config = model_config_of(BERT)
    actual = [code.computation_digest(str(tmp_path / "pytorch"), model_config)]
    for name in (
        *("pytorch/steps.py", "pytorch/inner/new.py"),
        *("harness/measuring/window.py", "networks/residual.py"),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        with (tmp_path / name).open("a") as file:
            file.write("# another\n")
        actual.append(code.computation_digest(str(tmp_path / "pytorch"), model_config))
    model_config["hyperparameters"]["layers"] = 11
    actual.append(code.computation_digest(str(tmp_path / "pytorch"), model_config))
    assert len(set(actual)) == 6


def test_what_a_rank_knows_of_a_precision_is_part_of_the_computation_and_its_bounds_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model_config, known = model_config_of(BERT), precisions.known()
    before = code.computation_digest(str(PYTORCH), model_config)
    changed = {"bounds": {}, "dtypes": ("float32",)}
    for field, value in changed.items():
        other = {**known, "amp": known["amp"]._replace(**{field: value})}
        monkeypatch.setattr(precisions, "known", lambda other=other: other)
        is_same = code.computation_digest(str(PYTORCH), model_config) == before
        assert is_same == (field == "bounds"), field


def test_verification_and_timing_use_the_same_model_config() -> None:
    """Fail if verification and timing use different configs, except for intended
    hyper-parameters."""
    from reference.compute import reduced, verification_model_config

    model_config = model_config_of(BERT)
    timed = code.computation_digest(str(PYTORCH), model_config)
    for dropout in (False, True):
        for compared in (model_config, reduced(model_config)):
            actual = code.computation_digest(
                str(PYTORCH), verification_model_config(compared, dropout)
            )
            assert actual == timed
    other = reduced(
        {**model_config, "hyperparameters": {**model_config["hyperparameters"], "positions": 64}}
    )
    assert code.computation_digest(str(PYTORCH), other) != timed
