"""Models under ``scripts/models``, original and scaled down for tests."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from harness.declaration import read_model
from reference import compute

from ..conftest import ROOT

RESNET, BERT = "resnet50_v1.5", "bert_base"  # models that every framework has
LSTM = "superbench_lstm"
# Made-up network with every described block (scripts/networks).
BLOCKS = "all_blocks"
# BERT without encoder layers, which compiles in moments: for code that all models share.
EMBEDDING = "embedding"
OWN = {BLOCKS: Path(__file__).with_name(f"{BLOCKS}.json")}
SEQUENCE = 16  # tokens
LSTM_SEQUENCE = 3  # few steps, because some compilers unroll them


def model_config_of(model: str) -> dict[str, Any]:
    return read_model(str(OWN.get(model, ROOT / f"scripts/models/{model}.json")))


def definition_of(model: str) -> str:
    return str(model_config_of(model).get("definition", model.replace(".", "_")))


NAMES = sorted(path.name[: -len(".json")] for path in ROOT.glob("scripts/models/*.json"))
#: Definitions with separate tests that need fewer processes; BLOCKS stands for all CNNs.
SHARED = ("cnn", "decoder", "electra", LSTM)
DEFINITIONS = {name: definition_of(name) for name in NAMES}


def has_reference(definition: str) -> bool:
    return (ROOT / "scripts" / "reference" / f"{definition}.py").is_file()


def compared(definitions: Mapping[str, str]) -> list[str]:
    """Return the models that contract tests compare with the reference: ResNet-50, and one for each
    definition that has a reference but no tests of its own."""
    first = {definition: name for name, definition in reversed(definitions.items())}
    actual = {name for entry, name in first.items() if entry not in SHARED and has_reference(entry)}
    return sorted({RESNET, *actual})


MODELS = compared(DEFINITIONS)


def reference_module(model: str) -> Any:
    return importlib.import_module(f"reference.{definition_of(model)}")


def trained_parameters(model_config: dict[str, Any]) -> int:
    drawn = reference_module(model_config["name"]).parameters(model_config)
    return sum(int(np.prod(entry.shape)) for entry in drawn.values() if entry.trained)


def small(model: str, **hyperparameters: object) -> dict[str, Any]:
    """Return the model's small config, if it defines one, with changed ``hyperparameters``."""
    model_config = model_config_of(model)
    if "small" in model_config.get("verification", {}):
        model_config = compute.reduced(model_config)
        del model_config["reduced_from"]
    model_config["hyperparameters"].update(hyperparameters)
    model_config["trainable_parameters"] = trained_parameters(model_config)
    return model_config


def sequence_of(model_config: dict[str, Any]) -> int | None:
    if not model_config["sequence_lengths"]:
        return None
    return LSTM_SEQUENCE if model_config["name"] == LSTM else SEQUENCE


def write_references(folder: Path) -> dict[str, Path]:
    """Write the reference of every small model, and return the folders."""
    configs = {model: small(model) for model in [*MODELS, BLOCKS, LSTM]}
    configs[EMBEDDING] = small(BERT, layers=0)
    for name, model_config in configs.items():
        compute.write(model_config, sequence_of(model_config), 0, folder / name)
    return references_in(folder)


def references_in(folder: Path) -> dict[str, Path]:
    return {model: folder / model for model in [*MODELS, BLOCKS, EMBEDDING, LSTM]}
