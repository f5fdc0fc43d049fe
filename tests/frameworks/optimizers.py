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
    "lamb": {"no_trust_ratio": [], "learning_rate": 0.01, "epsilon": 0.05},
}
#: Parameter that is zero in LAMB's first step, and one that has no change then: all of its gradient
#: comes through the other, and it does not decay.
ZERO, UNCHANGED = "next_sentence.weight", "pooler.bias"
#: Name of the reference of each optimizer.
BRANCHES = {optimizer: f"{optimizer}, every branch" for optimizer in HYPER}


def facts_with(optimizer: str) -> dict[str, Any]:
    """Return the config of BERT without encoder layers with the ``optimizer``."""
    own = HYPER[optimizer]
    left_out = {"no_weight_decay": ["bias", "norm"], "dropout": 0.0}
    facts = small(BERT, layers=0, optimizer=optimizer, **left_out, **own)
    facts["parity"]["hyperparameters"].update(own)
    facts.update(name=BRANCHES[optimizer], definition=definition_of(BERT))
    return facts


def write_branch_references(folder: Path) -> None:
    """Write the reference of each optimizer."""
    for optimizer, name in BRANCHES.items():
        facts = facts_with(optimizer)
        zero = [ZERO] if optimizer == "lamb" else []

        def drawn(parameters: Any, seed: int, zero: list[str] = zero) -> dict[str, Any]:
            weights = draw(parameters, seed)
            return {n: np.zeros_like(a) if n in zero else a for n, a in weights.items()}

        with mock.patch.object(compute, "draw", drawn):
            compute.write(facts, SEQUENCE, 0, folder / name)
