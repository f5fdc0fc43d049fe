"""Convolutional networks in each framework, built from the same description.
Their connections are compared in one made-up network, their layers in ``test_blocks.py``."""

from __future__ import annotations

from pathlib import Path

import networks
import pytest
from networks import schedule
from networks.layers import IMAGES

from ..conftest import ROOT
from .cnns import CNNS
from .comparing import beyond, compared
from .fork_server import ForkServer, served

FRAMEWORKS = sorted(
    path.parents[1].name for path in ROOT.glob("scripts/frameworks/*/models/cnn.py")
)

#: Bound of one array: a small DenseNet is off by 1.1e-3 in OneFlow.
GRADIENT = 2.5e-3

run = served(*FRAMEWORKS)


def test_connections_compute_what_the_reference_does(
    run: ForkServer, connected_reference: Path
) -> None:
    """Fail if outputs, gradients, updates or dropout differ from the reference."""
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
