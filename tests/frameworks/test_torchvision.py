"""torchvision is a witness of its own: what our descriptions make of its networks computes what its
own code did, whose outputs are kept (see torchvision_outputs.py)."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from ..conftest import ROOT

SCRIPT = Path(__file__).with_name("torchvision_outputs.py")
KEPT = json.loads((ROOT / "tests/data/torchvision_outputs.json").read_text())
#: Most of the weights of all 35, which others of their families have in fewer or more layers.
#: Without names, the script computes these too.
LARGE = {
    *("vgg11", "vgg13", "vgg13_bn", "vgg16", "vgg16_bn", "vgg19", "vgg19_bn"),
    *("resnext101_32x8d", "wide_resnet101_2"),
}
#: Both are float64, but sums are made in another order.
RELATIVE = 1e-9


def test_networks_put_out_what_those_of_torchvision_do(pytorch_python: str) -> None:
    kept = {name: values for name, values in KEPT.items() if name not in LARGE}
    printed = subprocess.run(
        [pytorch_python, str(SCRIPT), "ours", *kept], check=True, capture_output=True, text=True
    ).stdout
    ours = json.loads(printed)
    assert len(KEPT) == 35
    for name, values in kept.items():
        scale = max(map(abs, values))
        assert ours[name] == pytest.approx(values, rel=0, abs=RELATIVE * scale), name
