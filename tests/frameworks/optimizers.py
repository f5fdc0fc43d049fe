"""References of one small model with each optimizer, in which every branch of its formula is taken.

Clipping binds in one of the first two steps only, some parameters have no weight decay, and norms
of LAMB's trust ratio are zero."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from reference import compute
from reference.weights import draw

from .models import BERT, SEQUENCE, definition_of, small

#: Hyper-parameters by optimizer.
HYPER: dict[str, dict[str, Any]] = {
    "sgd": {"momentum": 0.8, "learning_rate": 0.02, "clip_global_norm": None},
    "adamw": {},
    "layerwise_adamw": {"optimizer": "adamw", "layer_decay": 0.6},
    "lamb": {"no_trust_ratio": [], "learning_rate": 0.01, "epsilon": 0.05},
}
#: Parameter that is zero in LAMB's first step, and a parameter without decay that this step leaves
#: unchanged because its whole gradient passes through the zero one.
ZERO, UNCHANGED = "next_sentence.weight", "pooler.bias"
#: Parameters whose ratios of norms are above 10 and below 0.01, where some implementations limit
#: them. A constant that is added to all logits does not change a softmax.
LARGE, ADDED = "decoder_bias", 15.0
SMALL, FACTOR = "embeddings.position.weight", 0.002
#: Name of the reference for each optimizer.
BRANCHES = {optimizer: f"{optimizer}, every branch" for optimizer in HYPER}


def config_with(optimizer: str) -> dict[str, Any]:
    hyper = {"optimizer": optimizer, **HYPER[optimizer]}
    left_out = {"no_weight_decay": ["bias", "norm"], "dropout": 0.0}
    model_config = small(BERT, layers=0, **left_out, **hyper)
    model_config["verification"]["hyperparameters"].update(hyper)
    model_config.update(name=BRANCHES[optimizer], definition=definition_of(BERT))
    return model_config


def _drawn(parameters: Any, seed: int) -> dict[str, Any]:
    """Return weights with which LAMB's ratios take every branch."""
    weights = draw(parameters, seed)
    weights[ZERO] = np.zeros_like(weights[ZERO])
    weights[LARGE] = weights[LARGE] + np.float32(ADDED)
    weights[SMALL] = weights[SMALL] * np.float32(FACTOR)
    return weights


def write_branch_references(folder: Path) -> None:
    for optimizer, name in BRANCHES.items():
        model_config = config_with(optimizer)
        with mock.patch.object(compute, "draw", _drawn if optimizer == "lamb" else draw):
            compute.write(model_config, SEQUENCE, 0, folder / name)
