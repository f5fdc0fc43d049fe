"""Described convolutional networks, and a made-up one with every connection that they have."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import networks
from core.declarations import read_model_config
from reference import compute

from ..conftest import ROOT
from .models import BLOCKS, RESNET, model_config_of

CNNS = {
    path.stem: model_config
    for path in sorted(ROOT.glob("scripts/models/*.json"))
    if (model_config := read_model_config(str(path))).get("definition") == "cnn"
}

#: Networks under torchvision's names.
TORCHVISION = sorted(
    name for name, model_config in CNNS.items() if "task" not in model_config and name != RESNET
)


#: Name of the made-up network.
CONNECTED = "connections"


def connected_config() -> dict[str, Any]:
    """Return the config of ``connections.json``, with the connections that no block has."""
    model_config = model_config_of(BLOCKS)
    layers = json.loads(Path(__file__).with_name(f"{CONNECTED}.json").read_text())
    model_config["hyperparameters"]["layers"] = layers
    return counted({**model_config, "name": CONNECTED})


def counted(model_config: dict[str, Any]) -> dict[str, Any]:
    network = networks.describe(model_config)
    trained = (weight.shape for weight in networks.weights(network).values() if weight.trained)
    return {
        **model_config,
        "trainable_parameters": sum(map(math.prod, trained)),
        "forward_multiply_adds": {"per_sample": networks.forward_multiply_adds(network, False)},
    }


def connections(network: networks.LayerGraph) -> set[tuple[Any, ...]]:
    """Return connected pairs of operations, with whether the reader is the only one.
    Also returns how many outputs the network has, and of which operations."""
    operations = {layer.name: layer.op for layer in network.layers}
    readers = Counter(name for layer in network.layers for name in layer.inputs)
    pairs = {
        (operations.get(name, name), layer.op, readers[name] == 1)
        for layer in network.layers
        for name in layer.inputs
    }
    outputs = {("output", operations[name]) for name in network.outputs}
    return {*pairs, *outputs, ("outputs", len(network.outputs))}


def write_connected_reference(folder: Path) -> None:
    compute.write(connected_config(), None, 0, folder / CONNECTED)
