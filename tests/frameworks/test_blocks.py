"""Blocks of the described networks, each alone, in each framework, against the reference.
Outputs, loss, gradients and updates agree, and a planted mistake is found."""

from __future__ import annotations

from pathlib import Path

from ..conftest import ROOT
from .blocks import BLOCKS, block_config, properties, properties_of_all
from .cnns import connected_config
from .comparing import MISTAKEN, Mistake, beyond, compared
from .fork_server import ForkServer, served
from .models import BLOCKS as ALL_BLOCKS
from .models import model_config_of
from .programs.small import SLOW

FRAMEWORKS = sorted(
    path.parents[1].name for path in ROOT.glob("scripts/frameworks/*/models/cnn.py")
)

#: A mistake in each framework's own code: the block that shows it, text and replacement.
MISTAKES = {
    "jax": ("shuffle", "jnp.swapaxes(split, -1, -2).reshape", "split.reshape"),
    "megengine": ("inception E", 'mode="average"', 'mode="average_count_exclude_padding"'),
    "mindspore": ("inception E", '"count_include_pad": True', '"count_include_pad": False'),
    "mxnet": ("inception E", "count_include_pad=True", "count_include_pad=False"),
    "oneflow": (
        "shuffle",
        "(-1, groups, all_channels // groups, height, width)",
        "(-1, all_channels // groups, groups, height, width)",
    ),
    "paddle": ("inception E", '"exclusive": False', '"exclusive": True'),
    "pytorch": (
        "inception E",
        "nn.AvgPool2d(*layer.window)",
        "nn.AvgPool2d(*layer.window, count_include_pad=False)",
    ),
    # pads only below and on the right if the edge is even
    "tensorflow": (
        "grouped bottleneck, halving",
        "same = layer.stride == 1 and layer.padding",
        "same = layer.padding",
    ),
    "tensorflow1": ("grouped bottleneck, halving", "tf.split(weight, groups, -1))",
                    "tf.split(weight, groups, -1)[::-1])"),
}  # fmt: skip

#: Slow frameworks compare outputs and gradients of the blocks; their steps and inference are
#: compared in the made-up networks.
run = served(*FRAMEWORKS, before=["blocks.leave_out_steps"])


def test_blocks_compute_what_the_reference_does(run: ForkServer, block_references: Path) -> None:
    """Fail if a block differs from the reference, or a planted mistake is missed."""
    block, right, wrong = MISTAKES[run.framework]
    mistake = Mistake(block_references / block, right, wrong)
    modes = ("train",) if run.framework in SLOW else ("train", "inference")
    errors = compared(run, [block_references / name for name in BLOCKS], mistake=mistake,
                      modes=modes)  # fmt: skip
    mistaken = {name: error for name, error in errors.items() if name.endswith(MISTAKEN)}
    blocks = {name: error for name, error in errors.items() if name not in mistaken}
    assert not beyond(blocks), beyond(blocks)
    assert beyond(mistaken)


def test_every_framework_compares_every_kind_of_layer_and_connection() -> None:
    """Fail if a layer or connection of a network is in no block and in no made-up network."""
    configs = [model_config_of(ALL_BLOCKS), connected_config(), *map(block_config, BLOCKS)]
    lacking = properties_of_all().difference(*map(properties, configs))
    assert not lacking, sorted(map(str, lacking))
