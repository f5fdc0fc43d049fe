"""torchvision as an independent check of our descriptions of its networks.
Of networks that differ only in depth or width, one has its results and training compared, all their
weights and initial values."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from .blocks import smallest
from .cnns import TORCHVISION

SCRIPT = Path(__file__).with_name("torchvision_compared.py")
#: Tolerance: both are float64, but sums have another order.
RELATIVE = 1e-9

#: Networks whose gradients take long; ``test_blocks.py`` compares those of their layers.
WITHOUT_GRADIENTS = ("alexnet", "inception", "vgg")


def test_networks_compute_what_those_of_torchvision_do(pytorch_python: str) -> None:
    assert len(TORCHVISION) == 35
    names = smallest(TORCHVISION)
    command = [pytorch_python, str(SCRIPT), *names, "--weights", *TORCHVISION]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    actual = json.loads(printed)
    for name in TORCHVISION:
        one = actual[name]
        assert one["rates"] == pytest.approx(one["their_rates"]), name
        assert not one["initials"], f"{name} begins with other values: {one['initials'][:3]}"
    for name in names:
        one, keys = actual[name], {"inference", "train", "statistics", "gradients"}
        keys -= {"gradients"} if name.startswith(WITHOUT_GRADIENTS) else set()
        far = {key: one[key] for key in keys}
        assert max(far.values()) < RELATIVE, f"{name}: {far}"
        assert one["heads"] == {"googlenet": 3, "inception_v3": 2}.get(name, 1), name
