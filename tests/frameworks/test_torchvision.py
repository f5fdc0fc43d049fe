"""torchvision as an independent check of our descriptions of its networks.
Results agree, and its code can be timed next to ours. Of networks that differ only in depth or
width, one has its results and training compared, all their weights and operations of inference."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from .blocks import smallest
from .cnns import TORCHVISION
from .fork_server import ForkServer, served

SCRIPT = Path(__file__).with_name("torchvision_compared.py")
#: Tolerance: both are float64, but sums have another order.
RELATIVE = 1e-9

#: Families with other operations than torchvision's: those only in ours, and only in theirs.
DIFFERENT = {
    "densenet": ([set(), {"cat"}],),  # of a single tensor
    "googlenet": (
        [set(), {"_adaptive_avg_pool2d", "_adaptive_avg_pool2d_backward"}],
    ),  # to its size
    "mnasnet": ([{"add_"}, {"add"}],),
    # a vector, or an image of one pixel
    "inception": ([{"empty_like", "bernoulli_", "div_"}] * 2,),
    # channels are last
    "shufflenet": tuple([{"clone", *own}, {"clone"}] for own in ((), ("copy_", "new_zeros"))),
}
#: Networks whose gradients take long; ``test_blocks.py`` compares those of their layers.
WITHOUT_GRADIENTS = ("alexnet", "inception", "vgg")
#: ShuffleNet's images and gradients are converted to that layout once.
SHUFFLED = 1.002

run = served("pytorch")


def test_networks_compute_what_those_of_torchvision_do(
    pytorch_python: str, all_networks: bool
) -> None:
    assert len(TORCHVISION) == 35
    names = TORCHVISION if all_networks else smallest(TORCHVISION)
    command = [pytorch_python, str(SCRIPT), *names, "--operations", *TORCHVISION]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    actual = json.loads(printed)
    for name in TORCHVISION:
        one = actual[name]
        assert one["rates"] == pytest.approx(one["their_rates"]), name
        compared = {"operations": 1.0}
        if name in names:
            compared["training_operations"] = SHUFFLED
            keys = {"inference", "train", "statistics", "gradients"}
            keys -= {"gradients"} if name.startswith(WITHOUT_GRADIENTS) else set()
            far = {key: one[key] for key in keys}
            assert max(far.values()) < RELATIVE, f"{name}: {far}"
            assert one["heads"] == {"googlenet": 3, "inception_v3": 2}.get(name, 1), name
        for key, room in compared.items():
            operations, own = one[key], DIFFERENT.get(name.split("_v")[0].rstrip("0123456789_"), ())
            assert [*map(set, operations["more"])] in ([set(), set()], *own), (
                f"{name}: {operations}"
            )
            ours, theirs = operations["bytes"]
            assert ours <= room * theirs, f"{name}: takes more memory"
        assert not one["initials"], f"{name} begins with other values: {one['initials'][:3]}"


def test_its_own_code_is_what_a_variant_times(run: ForkServer) -> None:
    (actual,) = run("torchvision.train")
    assert actual == {
        "module": "torchvision.models.googlenet",
        "same": True,
        "heads": 3,
        "rates": [0.7, 0.7, 0.125],
        "epsilons": [0.25],
        "finite": True,
    }


def test_what_it_does_not_have_is_unsupported(run: ForkServer) -> None:
    (actual,) = run("torchvision.refuse")
    assert "in its own size alone" in actual["reasons"][0]
    assert "no network n" in actual["reasons"][1]
