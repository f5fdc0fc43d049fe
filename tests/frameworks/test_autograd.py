"""Autograd, the minimal adapter of docs/adding.md, is measured and says what it lacks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from framebench.records import verifications

from ..bench import Bench
from ..conftest import ROOT
from .models import BERT, MODELS, SEQUENCE, model_config_of, sequence_of, small

PEAK: dict[str, object] = {"kind": "peak_flops", "batch_per_device": None, "compiler": None}
AUTOGRAD = ROOT / "tests" / "frameworks" / "autograd"


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def run(bench: Bench, **options: object) -> Any:
    model = bench.folder / "model_config.json"
    model.write_text(json.dumps(small(BERT)))
    given = {"framework": AUTOGRAD, "model": model, "sequence_length": SEQUENCE, **options}
    return bench.run("", **given).record


@pytest.mark.parametrize("mode", ["train", "inference"])
def test_the_core_and_the_operators_are_enough_to_be_timed(bench: Bench, mode: str) -> None:
    record = run(bench, kind=mode)
    assert record["status"] == "ok", record["reason"]
    (rank,) = record["ranks"]
    assert rank["trainable_parameters"] == small(BERT)["trainable_parameters"]
    assert set(rank["matmul_dtypes"]) == {"float32"}
    assert rank["device"] == "cpu"
    assert rank["compiled"] == {}


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"devices_per_node": 2}, "autograd has no collectives: one device only"),
        ({"precision": "amp"}, "autograd has no precision amp (it has: fp32)"),
        (PEAK, "autograd runs no single operations"),
    ],
)
def test_what_needs_more_is_unsupported(
    bench: Bench, options: dict[str, object], reason: str
) -> None:
    record = run(bench, **options)
    assert record["status"] == "unsupported"
    assert reason in record["reason"]


@pytest.mark.parametrize("model", MODELS)
def test_it_is_the_same_computation(bench: Bench, references: dict[str, Path], model: str) -> None:
    bench.run(
        framework=AUTOGRAD,
        model=references[model] / "model_config.json",
        batch_per_device=model_config_of(model)["verification"]["batch_per_device"],
        sequence_length=sequence_of(model_config_of(model)),
        kind="verification",
        parameters={"mode": "train", "reference": references[model]},
    )
    (verification,), problems = verifications.load(bench.output.parent)
    assert not problems
    assert verification.outcome == "passed", (verification.reason, verification.errors)
