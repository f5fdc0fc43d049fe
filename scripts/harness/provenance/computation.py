"""Digest of the code that computes a figure. A verification holds only for figures of the same
code."""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any, Dict, Iterator, Mapping

from core import precisions

SCRIPTS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))

#: Folders and single modules of the harness that a rank imports for verified kinds and for
#: verification, that loaders import, or that set a rank's variables.
FOLDERS = ("adapter", "loader", "measuring/verification", "samples")
MODULES = (
    "batch_input",
    "common_capabilities",
    "device_memory",
    "kind",
    "kinds/__init__",
    "kinds/generate",
    "kinds/inference",
    "kinds/verification",
    "kinds/train",
    "layerwise",
    "machine/__init__",
    "machine/allocator",
    "machine/cores",
    "machine/interfaces",
    "machine/sources",
    "measuring/__init__",
    "measuring/checks",
    "measuring/extras",
    "measuring/failure",
    "measuring/file_sources",
    "measuring/gradient_all_reduce",
    "measuring/input_pipeline",
    "measuring/libraries",
    "measuring/loading",
    "measuring/model",
    "measuring/step_timing",
    "measuring/steps",
    "measuring/synchronous_steps",
    "measuring/synthetic",
    "measuring/warm_up",
    "measuring/window",
    "messages/__init__",
    "messages/barrier",
    "messages/report",
    "optimizers",
    "processes/__init__",
    "processes/launch",
    "processes/parent_death",
    "processes/shared_memory",
    "rank",
    "sharded",
    "step_breakdown",
    "variables",
)


def digest(framework: str, model_config: Mapping[str, Any]) -> str:
    """Return the SHA-256 (hex) of all that computes a figure.

    It covers the adapter's folder, the model config, a rank's view of all precisions, because those
    of one framework run the same code, ``scripts/core``, FOLDERS and MODULES, and
    ``scripts/networks`` for models described as networks.
    ``model_config``: of timing or of verification, which gives the same."""
    about = [_compared(model_config), precisions.of_ranks()]
    sha256 = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    folders = [os.path.join(SCRIPTS, "core")]
    folders += [os.path.join(SCRIPTS, "harness", name) for name in FOLDERS]
    if str(model_config.get("definition")).endswith("cnn"):
        folders.append(os.path.join(SCRIPTS, "networks"))
    modules = ((name, os.path.join(SCRIPTS, "harness", f"{name}.py")) for name in MODULES)
    for name, path in [
        *(file for each in (framework, *folders) for file in _files(each)),
        *modules,
    ]:
        with open(path, "rb") as file:
            content = file.read()
        sha256.update(f"{name}\0{len(content)}\0".encode() + content)
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


def _files(root: str) -> Iterator[Any]:
    """Yield name and path of all code and declarations in the folder, sorted."""
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(names):
            if name.endswith((".py", ".json")):
                path = os.path.join(folder, name)
                yield os.path.relpath(path, root), path
