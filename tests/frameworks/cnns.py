"""The convolutional networks that are described as data, and one of each family made small."""

from __future__ import annotations

from pathlib import Path

from framebench.config.catalog import model_facts
from reference import compute

from ..conftest import ROOT
from .models import RESNET

CNNS = {
    path.stem: facts
    for path in sorted(ROOT.glob("scripts/models/*.json"))
    if (facts := model_facts(path)).get("definition") == "cnn"
}

#: The networks under torchvision's names.
TORCHVISION = sorted(name for name, facts in CNNS.items() if "task" not in facts and name != RESNET)

#: One of each family.
FAMILIES = (
    *("alexnet", "densenet121", "googlenet", "inception_v3", "mnasnet0_5", "mobilenet_v2"),
    *("resnext50_32x4d", "shufflenet_v2_x0_5", "squeezenet1_0", "vgg11_bn"),
)


def write_small_references(folder: Path) -> None:
    for model in FAMILIES:
        compute.write(compute.reduced(CNNS[model]), None, 0, folder / model)
