"""Weight decay without normalisations and biases, as in fine-tuning.
An update of each framework equals the reference's rule on the framework's own gradients."""

from __future__ import annotations

from typing import Any

import pytest

from ..conftest import ROOT
from .comparing import beyond
from .fork_server import ForkServer, served
from .models import model_config_of, small

FRAMEWORKS = sorted(path.parent.name for path in ROOT.glob("scripts/frameworks/*/framework.json"))
#: Settings that show: an epsilon of the gradients' size, a large decay, and a usual rate.
COMMON = {"dropout": 0.0, "weight_decay": 0.2, "learning_rate": 0.1}
OPTIMIZERS: dict[str, dict[str, Any]] = {
    "adamw": {"epsilon": 0.01, "clip_global_norm": 0.1},
    "sgd": {"momentum": 0.9, "clip_global_norm": None},
}

run = served(*FRAMEWORKS)
oneflow = served("oneflow")


def model_config(**hyperparameters: float) -> dict[str, Any]:
    return small("span_encoder", layers=1, **COMMON, **hyperparameters)


def test_what_is_left_out_does_not_decay(run: ForkServer) -> None:
    (actual,) = run("updates.leave_out_decay", model_config=model_config(), optimizers=OPTIMIZERS)
    wrong = {f"{optimizer}: {name} decay" for optimizer in OPTIMIZERS for name in ("all", "biases")}
    assert {computation for computation, *_ in beyond(actual["errors"])} == wrong


LAYERWISE = {"mindspore", "paddle", "pytorch", "jax", "tensorflow"}
by_layer = served(*sorted(LAYERWISE))


def test_nor_where_layers_have_rates_of_their_own(by_layer: ForkServer) -> None:
    adamw = {"adamw": OPTIMIZERS["adamw"]}
    (actual,) = by_layer(
        "updates.leave_out_decay", model_config=model_config(layer_decay=0.5), optimizers=adamw
    )
    wrong = {f"adamw: {name} decay" for name in ("all", "biases")}
    assert {computation for computation, *_ in beyond(actual["errors"])} == wrong


def test_a_graph_that_clips_each_part_by_itself_is_unsupported(oneflow: ForkServer) -> None:
    hyper = {"no_weight_decay": ["norm"], "clip_global_norm": 1.0}
    (actual,) = oneflow("updates.refuse", model_config=model_config(), compiler="graph", **hyper)
    assert actual["reason"] == "nn.Graph clips parameters with and without weight decay separately"


@pytest.mark.parametrize("model", ["bert_base_squad", "electra_base_squad"])
def test_models_that_are_fine_tuned_leave_out_what_their_authors_do(model: str) -> None:
    assert model_config_of(model)["hyperparameters"]["no_weight_decay"] == ["bias", "norm"]
