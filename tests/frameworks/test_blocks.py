"""Blocks of the described networks, each alone, in each framework, against the reference.
Outputs, loss, gradients and updates agree."""

from __future__ import annotations

from pathlib import Path

from ..conftest import ROOT
from .blocks import BLOCKS, block_config, properties, properties_of_all
from .cnns import connected_config
from .comparing import beyond, compared
from .fork_server import ForkServer, served
from .models import BLOCKS as ALL_BLOCKS
from .models import model_config_of
from .programs.small import SLOW

FRAMEWORKS = sorted(
    path.parents[1].name for path in ROOT.glob("scripts/frameworks/*/models/cnn.py")
)


#: Slow frameworks compare outputs and gradients of the blocks; their steps and inference are
#: compared in the made-up networks.
run = served(*FRAMEWORKS, before=["blocks.leave_out_steps"])


def test_blocks_compute_what_the_reference_does(run: ForkServer, block_references: Path) -> None:
    modes = ("train",) if run.framework in SLOW else ("train", "inference")
    assert not beyond(compared(run, [block_references / name for name in BLOCKS], modes=modes))


def test_every_framework_compares_every_kind_of_layer_and_connection() -> None:
    """Fail if a layer or connection of a network is in no block and in no made-up network."""
    configs = [model_config_of(ALL_BLOCKS), connected_config(), *map(block_config, BLOCKS)]
    lacking = properties_of_all().difference(*map(properties, configs))
    assert not lacking, sorted(map(str, lacking))
