"""Optimizers in model configs, and the consequences before anything runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness.command_line import parse
from harness.declaration import read_model
from harness.kind import Workload
from harness.optimizers import NO_DECAY, NO_TRUST_RATIO
from reference.weights import LAMB

from ...conftest import ROOT

ELECTRA = ROOT / "scripts/models/electra_base.json"
NAMES = ["layers.0.output.weight", "layers.0.output.bias", "layers.0.output_norm.weight"]


def written(folder: Path, model: Path = ELECTRA, **changes: Any) -> str:
    """Write a model config with changed hyper-parameters; None removes one."""
    model_config = read_model(str(model))
    hyper = {**model_config["hyperparameters"], **changes}
    model_config["hyperparameters"] = {
        key: value for key, value in hyper.items() if value is not None
    }
    folder.mkdir(exist_ok=True)
    path = folder / "model.json"
    path.write_text(json.dumps(model_config))
    return str(path)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"layer_decay": 0.8}, "layer_decay is for the optimizer adamw, not for lamb"),
        (
            {"optimizer": "sgd", "momentum": 0.9},
            "clip_global_norm is for the optimizers adamw and lamb, not for sgd",
        ),
        ({"no_trust_ratio": None}, "the optimizer lamb needs the hyper-parameter no_trust_ratio"),
    ],
)
def test_configs_that_make_no_optimizer_are_refused(
    tmp_path: Path, changes: dict[str, Any], expected: str
) -> None:
    with pytest.raises(ValueError, match=expected):
        read_model(written(tmp_path, **changes))
    assert read_model(written(tmp_path))["hyperparameters"]["optimizer"] == "lamb"


def test_the_reference_is_lamb_by_hand() -> None:
    """Fail if a first LAMB step of the reference differs from hand computation.
    Both corrected moments equal the gradient and its square. With an epsilon of 1, a gradient of 1
    changes by 1/2, and a decay of 1/2 adds 1 to a weight of 2."""
    hyper = {
        **{"learning_rate": 0.1, "beta1": 0.9, "beta2": 0.99, "epsilon": 1.0, "weight_decay": 0.5},
        **{NO_DECAY: ["bias"], NO_TRUST_RATIO: ["bias"]},
    }
    weights = {"weight": np.full(4, 2.0), "bias": np.full(4, 2.0)}
    LAMB(hyper).step(weights, {name: np.ones(4) for name in weights})
    assert weights["bias"] == pytest.approx(np.full(4, 2.0 - 0.1 * 0.5))
    assert weights["weight"] == pytest.approx(np.full(4, 2.0 - 0.1 * 2.0))


def asked(framework: str, model: str, length: int, kind: str = "train") -> Workload:
    arguments = ["--kind", kind, "--framework", f"{ROOT}/scripts/frameworks/{framework}"]
    arguments += ["--model", model, "--accelerator", "cpu", "--batch-per-device", "4"]
    return parse([*arguments, "--sequence-length", str(length)])


def test_a_framework_without_the_optimizer_is_unsupported(tmp_path: Path) -> None:
    bert = ROOT / "scripts/models/bert_base.json"
    named = {NO_DECAY: ["bias"], NO_TRUST_RATIO: ["bias"]}
    model = written(tmp_path, bert, optimizer="lamb", **named)
    layerwise = written(tmp_path / "layerwise", bert, optimizer="adamw", layer_decay=0.8)
    for framework in ("mxnet", "oneflow", "tensorflow1"):
        reason = f"{framework} has no optimizer lamb (it has: sgd, adamw)"
        assert asked(framework, model, 16).unsupported == reason
        assert asked(framework, model, 16, "inference").unsupported is None
        reason = f"{framework} has no optimizer layerwise_adamw (it has: sgd, adamw)"
        assert asked(framework, layerwise, 16).unsupported == reason
    for framework in ("pytorch", "jax", "tensorflow", "paddle"):
        assert asked(framework, model, 16).unsupported is None
    unknown = written(tmp_path, bert, optimizer="lion")
    reason = "pytorch has no optimizer lion (it has: sgd, adamw, lamb, layerwise_adamw)"
    assert asked("pytorch", unknown, 16).unsupported == reason
