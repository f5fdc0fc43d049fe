"""Convolutional networks in each framework, compared whole, by blocks, and with torchvision."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import networks
import pytest
from networks import schedule
from networks.layers import IMAGES

from ..conftest import ROOT
from .blocks import BLOCKS, smallest
from .cnns import CNNS, TORCHVISION
from .comparing import beyond, compared
from .fork_server import ForkServer, served
from .programs.small import SLOW

FRAMEWORKS = sorted(
    path.parents[1].name for path in ROOT.glob("scripts/frameworks/*/models/cnn.py")
)

#: Bound for the error of one array: 1.1e-3 for a small DenseNet in OneFlow.
GRADIENT = 2.5e-3

run = served(*FRAMEWORKS)


def test_connections_compute_what_the_reference_does(
    run: ForkServer, connected_reference: Path
) -> None:
    assert not beyond(compared(run, [connected_reference]), {"gradients": GRADIENT})


@pytest.mark.parametrize(
    ("model", "fused", "norms"), [("resnet50", 49, 4), ("densenet121", 121, 0), ("vgg11", 0, 0)]
)
def test_fused_layers_take_the_place_of_normalisation_addition_and_relu(
    model: str, fused: int, norms: int
) -> None:
    network = networks.describe(CNNS[model])
    before = [layer.op for layer in network.layers]
    actual = schedule.fused(network)
    after = [layer.op for layer in actual.layers]
    assert (after.count(schedule.FUSED), after.count("batch_norm")) == (fused, norms)
    assert after.count("relu") == before.count("relu") - fused
    assert after.count("add") == 0
    names = {IMAGES, *(layer.name for layer in actual.layers)}
    assert {*actual.outputs} | {name for layer in actual.layers for name in layer.inputs} <= names


#: Slow frameworks compare outputs and gradients of the blocks; their steps and inference are
#: compared in the made-up networks.
in_blocks = served(*FRAMEWORKS, before=["comparing.leave_out_steps"])


def test_blocks_compute_what_the_reference_does(
    in_blocks: ForkServer, block_references: Path
) -> None:
    modes = ("train",) if in_blocks.framework in SLOW else ("train", "inference")
    folders = [block_references / name for name in BLOCKS]
    assert not beyond(compared(in_blocks, folders, modes=modes))


SCRIPT = Path(__file__).with_name("torchvision_compared.py")
#: Tolerance: both sides are float64, but add in different order.
RELATIVE = 1e-9


def test_networks_compute_what_those_of_torchvision_do(pytorch_python: str) -> None:
    assert len(TORCHVISION) == 35
    names = smallest(TORCHVISION)
    command = [pytorch_python, str(SCRIPT), *names, "--weights", *TORCHVISION]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    actual = json.loads(printed)
    assert actual["images"]["ours"] == actual["images"]["theirs"]
    for name in TORCHVISION:
        one = actual[name]
        assert one["rates"] == pytest.approx(one["their_rates"]), name
    for name in names:
        one = actual[name]
        far = {key: one[key] for key in ("inference", "train", "statistics")}
        assert max(far.values()) < RELATIVE, f"{name}: {far}"
        assert one["heads"] == {"googlenet": 3, "inception_v3": 2}.get(name, 1), name
