"""Convolutional networks in each framework, built from the same description.
Their layers are compared with the reference in ``test_blocks.py``, their connections in one
made-up network. PyTorch counts the parameters of the full networks."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import networks
import pytest
from networks import fusing
from networks.layers import IMAGES

from ..conftest import ROOT
from .blocks import BLOCKS, block_config
from .cnns import ALIKE, CNNS, CONNECTED, KINDS, connected_config, connections
from .comparing import beyond, compared
from .fork_server import ForkServer, served

FRAMEWORKS = sorted(
    path.parents[1].name for path in ROOT.glob("scripts/frameworks/*/models/cnn.py")
)

#: Fastest framework, which counts every network.
FULL = "pytorch"
#: Networks counted in every framework: one with auxiliary heads.
COUNTED_BY_ALL = ("googlenet",)

#: Networks that are identical when small.
SAME = [
    ["densenet121", "densenet161", "densenet169", "densenet201"],
    ["resnet101", "resnet152", "resnet50", "resnet50_v1.5"],
    ["resnet18", "resnet34"],
    ["shufflenet_v2_x0_5", "shufflenet_v2_x1_0", "shufflenet_v2_x1_5", "shufflenet_v2_x2_0"],
    ["vgg11", "vgg13", "vgg16", "vgg19"],
    ["vgg11_bn", "vgg13_bn", "vgg16_bn", "vgg19_bn"],
    ["wide_resnet101_2", "wide_resnet50_2"],
]
#: Bound of one array of Inception: a channel or two in nearly a hundred batch normalisations give
#: ten times the error of wide networks.
SINGLE_GRADIENT = 5e-3
#: Bound of one array of other networks: a small DenseNet is off by 1.1e-3 in OneFlow.
GRADIENT = 2.5e-3

run = served(*FRAMEWORKS)


def test_what_is_compared_once_differs_in_depth_or_width_alone() -> None:
    """Fail if networks that are identical when small differ in more than their counted
    parameters."""
    alike = defaultdict(set)
    for name, kind in ALIKE.items():
        alike[kind].add(name)
    assert sorted(sorted(names) for names in alike.values() if len(names) > 1) == SAME
    assert {*ALIKE} == {*CNNS}


def test_every_connection_of_every_network_is_compared_in_each_framework() -> None:
    """Fail if a connection of a network is in no block and not in the made-up network."""
    compared = connections(networks.describe(connected_config())).union(
        *(connections(networks.describe(block_config(name))) for name in BLOCKS)
    )
    for name in KINDS:
        lacking = connections(networks.describe(CNNS[name])) - compared
        assert not lacking, f"{name}: add to connections.json {sorted(map(str, lacking))}"


def test_networks_compute_what_the_reference_does(
    run: ForkServer, small_references: Path, all_networks: bool
) -> None:
    """Fail if a network's outputs, gradients, updates or dropout differ from the reference.
    The made-up network has all connections; ``--all-networks`` adds each kind of small network."""
    folders = [small_references / model for model in (CONNECTED, *(KINDS if all_networks else ()))]
    errors = compared(run, folders)
    inception = {name: error for name, error in errors.items() if name.startswith("inception")}
    others = {name: error for name, error in errors.items() if name not in inception}
    assert bool(inception) == all_networks
    assert not beyond(others, {"gradients": GRADIENT})
    assert not beyond(inception, {"gradients": SINGLE_GRADIENT})


@pytest.mark.parametrize(
    ("model", "fused", "norms"), [("resnet50", 49, 4), ("densenet121", 121, 0), ("vgg11", 0, 0)]
)
def test_fused_layers_take_the_place_of_normalisation_addition_and_relu(
    model: str, fused: int, norms: int
) -> None:
    network = networks.describe(CNNS[model])
    before = [layer.op for layer in network.layers]
    actual = fusing.fused(network)
    after = [layer.op for layer in actual.layers]
    assert (after.count(fusing.FUSED), after.count("batch_norm")) == (fused, norms)
    assert after.count("relu") == before.count("relu") - fused
    assert after.count("add") == 0
    names = {IMAGES, *(layer.name for layer in actual.layers)}
    assert {*actual.outputs} | {name for layer in actual.layers for name in layer.inputs} <= names


@pytest.mark.parametrize("run", FRAMEWORKS, indirect=True)
def test_networks_have_the_parameters_of_their_configs(run: ForkServer, all_networks: bool) -> None:
    """Fail if a full network has another number of parameters than its config says.
    ``test_blocks.py`` counts those of small blocks in each framework."""
    names = CNNS if all_networks or run.framework == FULL else COUNTED_BY_ALL
    (actual,) = run("cnn.count", networks=[CNNS[name] for name in names])
    assert actual["counts"] == {name: CNNS[name]["trainable_parameters"] for name in names}
