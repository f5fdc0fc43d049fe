"""Blocks of the described networks, each alone, in each framework, against the reference.
Outputs, loss, gradients and updates agree, and a planted mistake is found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networks
import pytest

from ..conftest import ROOT
from .blocks import (
    BLOCKS,
    block_config,
    compared_whole,
    covering,
    kinds,
    properties,
    properties_of_all,
)
from .cnns import CNNS
from .comparing import Mistake, beyond, compared
from .fork_server import ForkServer, served
from .programs.small import SLOW

FRAMEWORKS = sorted(
    path.parents[1].name for path in ROOT.glob("scripts/frameworks/*/models/cnn.py")
)

#: Mistakes in each framework's own code: the block that shows it, text and replacement.
OF_CODE = {
    "jax": ("shuffle", "jnp.swapaxes(split, -1, -2).reshape", "split.reshape"),
    "megengine": ("inception A", 'mode="average",', 'mode="average_count_exclude_padding",'),
    "mindspore": ("inception A", "count_include_pad=True", "count_include_pad=False"),
    "mxnet": ("inception A", "count_include_pad=True", "count_include_pad=False"),
    "oneflow": (
        "shuffle",
        "(-1, groups, all_channels // groups, height, width)",
        "(-1, all_channels // groups, groups, height, width)",
    ),
    "paddle": ("inception A", "exclusive=False", "exclusive=True"),
    "pytorch": (
        "GoogLeNet's auxiliary head",
        'weight = model_config["hyperparameters"]["auxiliary_weight"]',
        "weight = 1.0",
    ),
    # pads only below and on the right if the edge is even
    "tensorflow": ("bottleneck, halving", "same = stride == 1 and attributes", "same = attributes"),
    "tensorflow1": ("grouped bottleneck", "tf.split(weight, groups, -1))",
                    "tf.split(weight, groups, -1)[::-1])"),
}  # fmt: skip

#: Mistakes in descriptions by block: subject, and changed attributes of layers. No array changes
#: its shape.
OF_LAYERS: dict[str, tuple[str, dict[str, dict[str, Any]]]] = {
    "ResNet's first layers": (
        "a pool with a ceiling, not padded", {"maxpool": {"padding": 0, "ceil": True}}),
    "SqueezeNet's first layers": (
        "a pool that is padded, without a ceiling", {"features.2": {"padding": 1, "ceil": False}}),
    "basic residual, halving": (
        "the stride on the second convolution",
        {"layer2.0.conv1": {"stride": 1}, "layer2.0.conv2": {"stride": 2}}),
    "bottleneck, halving": (
        "the stride on the 1x1",
        {"layer2.0.conv1": {"stride": 2}, "layer2.0.conv2": {"stride": 1}}),
    "grouped bottleneck, halving": (
        "the stride on the last 1x1",
        {"layer2.0.conv2": {"stride": 1}, "layer2.0.conv3": {"stride": 2}}),
    "inverted residual, halving": (
        "the stride on the expansion",
        {"features.2.conv.0.0": {"stride": 2}, "features.2.conv.1.0": {"stride": 1}}),
    "inverted residual": ("ReLU for ReLU6", {"features.3.conv.1.2": {"op": "relu"}}),
    "inverted residual of 5x5, halving": (
        "the stride on the projection",
        {"layers.8.0.layers.3": {"stride": 1}, "layers.8.0.layers.6": {"stride": 2}}),
    "shuffle": ("shuffled back", {"stage2.1.shuffle": {"groups": 8}}),
    "shuffle, halving": (
        "the stride on the 1x1 in front",
        {"stage2.0.branch2.0": {"stride": 2}, "stage2.0.branch2.3": {"stride": 1}}),
    "transition between dense blocks": (
        "the largest for the mean", {"features.transition1.pool": {"op": "max_pool"}}),
    "dense layer": ("features the other way round", {"features.denseblock1.denselayer2.concatenate":
        {"inputs": ["features.denseblock1.denselayer1.conv2.in", "features.pool0.in"]}}),
    "fire": ("parts the other way round", {"features.3.concatenate": {
        "inputs": ["features.3.expand3x3_activation", "features.3.expand1x1_activation"]}}),
    "GoogLeNet's inception": (
        "the mean for the largest",
        {"inception3a.branch4.0": {"op": "average_pool", "ceil": None}}),
    "inception C": ("branches the other way round", {"Mixed_6b.concatenate": {"inputs": [
        "Mixed_6b.branch7x7_3.relu", "Mixed_6b.branch1x1.relu", "Mixed_6b.branch7x7dbl_5.relu",
        "Mixed_6b.branch_pool.relu"]}}),
    "inception E": (
        "inputs of two branches exchanged",
        {"Mixed_7b.branch3x3_2a.conv": {"inputs": ["Mixed_7b.branch3x3dbl_2.relu"]},
         "Mixed_7b.branch3x3dbl_3a.conv": {"inputs": ["Mixed_7b.branch3x3_1.relu"]}}),
}  # fmt: skip

#: Fastest framework, which compares every block. The others compare those in :func:`covering`.
FULL = "pytorch"

#: Slow frameworks compare outputs and gradients of the blocks; their steps and inference are
#: compared in the two networks that :func:`compared_whole` names.
run = served(*FRAMEWORKS, before=["blocks.leave_out_steps"])


def test_blocks_compute_what_the_reference_does(
    run: ForkServer, block_references: Path, all_networks: bool
) -> None:
    """Fail if a block differs from the reference, or a planted mistake is missed.
    Mistakes are in a framework's own code, or in PyTorch also in the description."""
    block, right, wrong = OF_CODE[run.framework]
    mistakes = [Mistake("code", block_references / block, code=((right, wrong),))]
    if run.framework == FULL:
        mistakes += [
            Mistake(about, block_references / name, layers=layers)
            for name, (about, layers) in OF_LAYERS.items()
        ]
    every = all_networks or run.framework == FULL
    folders = [block_references / name for name in (BLOCKS if every else {block, *covering()})]
    modes = ("train",) if run.framework in SLOW else ("train", "inference")
    errors = compared(run, folders, mistakes=mistakes, modes=modes)
    of_mistakes = tuple(f", {mistake.about}" for mistake in mistakes)
    blocks = {name: error for name, error in errors.items() if not name.endswith(of_mistakes)}
    assert len(errors) == len(blocks) + len(mistakes)
    assert not beyond(blocks), beyond(blocks)
    for name in errors.keys() - blocks.keys():
        assert beyond({name: errors[name]}), f"not found: {name}"


def test_every_layer_of_every_network_is_in_a_block() -> None:
    """Fail if a layer of a network, by operation, kernel, stride, padding and groups, is in no
    block."""
    certified = set[Any]().union(*(kinds(networks.describe(block_config(n))) for n in BLOCKS))
    for name, model_config in CNNS.items():
        lacking = kinds(networks.describe(model_config)) - certified
        assert not lacking, f"{name}: no block has {sorted(map(str, lacking))}"


def test_what_each_framework_compares_has_every_layer_and_connection() -> None:
    compared = compared_whole().union(*(properties(block_config(name)) for name in covering()))
    assert not properties_of_all() - compared


@pytest.mark.parametrize("name", OF_LAYERS)
def test_a_mistake_changes_its_block_and_no_shape(name: str) -> None:
    model_config = block_config(name)
    (about, layers), listed = OF_LAYERS[name], model_config["hyperparameters"]["layers"]
    assert layers.keys() <= {entry["name"] for entry in listed}, about
    before = networks.weights(networks.describe(model_config))
    for entry in listed:
        entry.update(layers.get(entry["name"], {}))
        for key in [key for key, value in entry.items() if value is None]:
            del entry[key]
    assert networks.weights(networks.describe(model_config)) == before, about
