"""The convolutional networks that are described as data, and one of each family made narrow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from framebench.config.catalog import model_facts
from reference import compute

from ..conftest import ROOT

CNNS = {
    path.stem: facts
    for path in sorted(ROOT.glob("scripts/models/*.json"))
    if (facts := model_facts(path)).get("definition") == "cnn"
}

#: One of each family: so narrow that a step takes a moment, images as small as it can do with.
NARROW: dict[str, tuple[int, dict[str, Any]]] = {
    "alexnet": (95, {"channels": [8, 12, 16, 12, 8], "features": 24}),
    "densenet121": (64, {"growth": 16, "blocks": [2, 1, 2, 1], "width": 32}),
    "googlenet": (112, {"width": 1 / 16}),
    "inception_v3": (299, {"width": 1 / 32}),
    "mnasnet0_5": (
        32,
        {"stages": [[3, 2, 3, 2, 16], [5, 2, 3, 1, 16], [3, 1, 6, 1, 24]], "channels": [16, 8, 32]},
    ),
    "mobilenet_v2": (
        32,
        {"stages": [[1, 8, 1, 1], [6, 16, 2, 2], [6, 24, 1, 2]], "channels": [16, 32]},
    ),
    "resnext50_32x4d": (32, {"blocks": [1, 2], "width": 16, "groups": 4, "width_per_group": 16}),
    "shufflenet_v2_x0_5": (64, {"blocks": [2, 2, 1], "channels": [8, 16, 16, 24, 32]}),
    "squeezenet1_0": (49, {"layers": [[8, 7], "pool", [4, 8, 8], "pool", [4, 12, 12]]}),
    "vgg11_bn": (28, {"layers": [8, "pool", 12, 12, "pool"], "features": 16}),
}


def narrow(model: str) -> dict[str, Any]:
    """The model's facts for small images, few channels and 10 classes, so that a step takes a
    moment."""
    size, changes = NARROW[model]
    facts: dict[str, Any] = json.loads(json.dumps(CNNS[model]))
    facts["hyperparameters"].update(changes, classes=10)
    for item in facts["inputs"]:
        item.update(
            {"shape": ["batch", size, size, 3]} if item["name"] == "images" else {"below": 10}
        )
    return facts


def write_narrow_references(folder: Path) -> None:
    for model in NARROW:
        compute.write(narrow(model), None, 0, folder / model)
