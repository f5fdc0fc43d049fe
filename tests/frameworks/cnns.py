"""The convolutional networks that are described as data, made small: one of each kind."""

from __future__ import annotations

from pathlib import Path

import networks
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


def _alike() -> dict[str, str]:
    """Each network, with the first by name that it is the same as when it is made small, where
    depths, and widths of a multiplier, are given up."""
    first: dict[str, str] = {}
    found = {}
    for name, facts in CNNS.items():
        small = compute.reduced(facts)
        described = repr((networks.describe(small), small["inputs"]))
        found[name] = first.setdefault(described, name)
    return found


ALIKE = _alike()
#: One of each kind of network made small: what is computed of it is computed of all others of its
#: kind.
KINDS = tuple(sorted(set(ALIKE.values())))


def write_small_references(folder: Path) -> None:
    for model in KINDS:
        compute.write(compute.reduced(CNNS[model]), None, 0, folder / model)
