"""Digest of the code that computes a figure. A verification holds only for figures of the same
code."""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any, Dict, Mapping

from core import precisions

from harness.provenance.code import SCRIPTS, update


def digest(framework: str, model_config: Mapping[str, Any]) -> str:
    """Return the SHA-256 (hex) of all that computes a figure.

    It covers the adapter's folder, the model config, a rank's view of all precisions, because those
    of one framework run the same code, ``scripts/core``, ``scripts/harness``, and
    ``scripts/networks`` for models described as networks.
    ``model_config``: of timing or of verification, which gives the same."""
    about = [_compared(model_config), precisions.of_ranks()]
    sha256 = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    is_described = str(model_config.get("definition")).endswith("cnn")
    rooms = ("core", "harness", "networks") if is_described else ("core", "harness")
    for folder in (framework, *(os.path.join(SCRIPTS, room) for room in rooms)):
        update(sha256, folder)
    return sha256.hexdigest()


def _compared(model_config: Mapping[str, Any]) -> Dict[str, Any]:
    """Return the model config without hyper-parameters that verification changes, to show that none
    is hard-coded.

    A model that was reduced for verification is replaced by the original."""
    model_config = model_config.get("reduced_from", model_config)
    others = {"dropout", "clip_global_norm"}
    others |= set(model_config.get("verification", {}).get("hyperparameters", {}))
    own = model_config.get("hyperparameters", {})
    kept = {name: None if name in others else value for name, value in own.items()}
    compared = {**model_config, "hyperparameters": kept}
    if "own" in model_config:  # its content decides, not where it lies
        compared["own"] = {**model_config["own"], "source": None}
    if "verification" in model_config:  # how it is made small says nothing of what is timed
        ways = ("small", "reduced")
        compared["verification"] = {
            key: value for key, value in model_config["verification"].items() if key not in ways
        }
    return compared
