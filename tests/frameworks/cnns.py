"""The convolutional networks that are described as data, made small: one of each kind. A made-up
network has every connection of theirs."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import networks
from framebench.config.catalog import model_facts
from reference import compute

from ..conftest import ROOT
from .models import BLOCKS, RESNET, facts_of

CNNS = {
    path.stem: facts
    for path in sorted(ROOT.glob("scripts/models/*.json"))
    if (facts := model_facts(path)).get("definition") == "cnn"
}

#: The networks under torchvision's names.
TORCHVISION = sorted(name for name, facts in CNNS.items() if "task" not in facts and name != RESNET)


def _alike() -> dict[str, str]:
    """Each network, with the first by name that it is the same as when it is made small, where
    depths, and widths of a multiplier, are given up."""
    first: dict[str, str] = {}
    found = {}
    for name, facts in CNNS.items():
        small = compute.reduced(facts)
        described = repr((networks.describe(small), small["inputs"]))
        found[name] = first.setdefault(described, name)
    return found


ALIKE = _alike()
#: One of each kind of network made small: what is computed of it is computed of all others of its
#: kind.
KINDS = tuple(sorted(set(ALIKE.values())))


#: The name of the made-up network.
CONNECTED = "connections"


def connected_facts() -> dict[str, Any]:
    """Facts of the network in ``connections.json``, which has the connections that no block of
    ``blocks.py`` has."""
    facts = facts_of(BLOCKS)
    layers = json.loads(Path(__file__).with_name(f"{CONNECTED}.json").read_text())
    facts["hyperparameters"]["layers"] = layers
    return counted({**facts, "name": CONNECTED})


def counted(facts: dict[str, Any]) -> dict[str, Any]:
    """``facts`` of a described network with its trainable parameters and multiply-adds."""
    network = networks.describe(facts)
    trained = (one.shape for one in networks.weights(network).values() if one.trained)
    return {
        **facts,
        "trainable_parameters": sum(map(math.prod, trained)),
        "forward_multiply_adds": {"per_sample": networks.forward_multiply_adds(network, False)},
    }


def connections(network: networks.Network) -> set[tuple[Any, ...]]:
    """Pairs of operations, one of which reads what the other puts out, each with whether it is the
    only reader; and how often the network has outputs, and of which operations."""
    operations = {layer.name: layer.op for layer in network.layers}
    readers = Counter(name for layer in network.layers for name in layer.inputs)
    pairs = {
        (operations.get(name, name), layer.op, readers[name] == 1)
        for layer in network.layers
        for name in layer.inputs
    }
    outputs = {("output", operations[name]) for name in network.outputs}
    return {*pairs, *outputs, ("outputs", len(network.outputs))}


def write_small_references(folder: Path) -> None:
    compute.write(connected_facts(), None, 0, folder / CONNECTED)
    for model in KINDS:
        compute.write(compute.reduced(CNNS[model]), None, 0, folder / model)
