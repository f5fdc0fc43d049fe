"""Comparison of the networks in a framework's own zoo with ours of the same names.

``PYTHONPATH=scripts:workflow python -m tests.frameworks.zoos`` writes its tables in docs/zoos.md.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from networks import SampleShape, describe_images
from networks.schedule import schedule
from reference import cnn

from ..conftest import ROOT, build_environment
from ..framebench.settings import CATALOG
from . import zoo_observed
from .cnns import TORCHVISION

SCRIPT = Path(zoo_observed.__file__)
TITLES = {
    "tensorflow": "Keras (`keras.applications`)",
    "mxnet": "MXNet (`gluon.model_zoo.vision`)",
    "paddle": "PaddlePaddle (`paddle.vision.models`)",
}
#: Tolerance of outputs of the same weights: float32 against float64, up to 500 layers in a row.
RELATIVE = 1e-3
SAME = "same"
PAGE = ROOT / "docs/zoos.md"

Layers = Sequence[Mapping[str, Any]]


def observed(framework: str, networks: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the zoo's versions of our ``networks``, for those that it has."""
    python = build_environment(framework)
    variables = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    command = [python, str(SCRIPT), framework, *networks]
    ran = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    actual: dict[str, dict[str, Any]] = json.loads(ran.stdout.splitlines()[-1])
    return actual


@cache
def ours(network: str, size: int) -> list[dict[str, Any]]:
    """Return our layers for inference, in the form of observed ones."""
    hyper = CATALOG.models[network]["hyperparameters"]
    described = describe_images(hyper, SampleShape(size, size, 3))
    actual = []
    for layer in (call.layer for call in schedule(described, training=False).calls):
        given = layer.attributes
        if layer.op == "convolution":
            inputs = layer.in_shape.channels // given["groups"]
            kernel = (*given["kernel"], inputs, given["channels"])
            places = layer.shape.height * layer.shape.width
            actual.append(zoo_observed.product(kernel, places, given["bias"]))
        elif layer.op == "linear":
            kernel = (layer.in_shape.channels, given["features"])
            actual.append(zoo_observed.product(kernel, 1, given["bias"]))
        elif layer.op == "batch_norm":
            normalisation = zoo_observed.normalisation
            channels = layer.shape.channels
            actual.append(normalisation(channels, given["epsilon"], given["momentum"]))
        elif layer.op == "dropout":
            actual.append(zoo_observed.dropout(given["rate"]))
        for entry in actual[len(actual) - 1 :]:
            entry.setdefault("name", layer.name)
    return actual


@cache
def outputs(network: str, size: int) -> Any:
    """Return the float64 logits of the reference, for the weights that the zoo's network gets."""
    layers = ours(network, size)
    endings = {"kernel": "weight", "scale": "weight", "offset": "bias", "bias": "bias"}
    endings |= {"mean": "running_mean", "variance": "running_var"}
    weights = {
        f"{layer['name']}.{endings[role]}": array.astype(np.float64)
        for layer, arrays in zip(layers, zoo_observed.filled(layers), strict=True)
        for role, array in zip(layer["roles"], arrays, strict=True)
    }
    hyper = CATALOG.models[network]["hyperparameters"]
    (logits,) = cnn.forward(weights, {"images": zoo_observed.images(size)}, hyper, False)
    return logits[0]


def differences(framework: str, network: str, zoo: Mapping[str, Any]) -> Iterator[str]:
    """Yield the observed differences as text, the most important first."""
    size = zoo_observed.size_of(framework, network)
    mine, theirs = ours(network, size), zoo["layers"]
    count = CATALOG.models[network]["trainable_parameters"]
    if zoo["parameters"] != count:
        yield f"{zoo['parameters']:,} parameters, not {count:,}"
    arrays = [[layer["shapes"] for layer in layers if layer["shapes"]] for layers in (mine, theirs)]
    alike = arrays[0] == arrays[1]
    if not alike and zoo["parameters"] == count:
        yield "other layers"
    sums = [sum(layer.get("multiply_adds", 0) for layer in layers) for layers in (mine, theirs)]
    known = all(layer.get("multiply_adds", 1) for layer in theirs)
    if known and sums[0] != sums[1]:
        yield f"{sums[1]:,} multiply-adds for an image of {size} x {size}, not {sums[0]:,}"
    for key, name in (("epsilon", "epsilon"), ("momentum", "weight of new statistics")):
        actual, wanted = (
            {layer[key] for layer in layers if key in layer} for layers in (theirs, mine)
        )
        if actual != wanted:
            yield f"{name} {_listed(actual)}, not {_listed(wanted)}"
    if _dropout(theirs) != _dropout(mine):
        yield f"dropout {_dropout(theirs) or 'none'}, not {_dropout(mine) or 'none'}"
    if alike:
        wanted = outputs(network, size)
        error = np.linalg.norm(np.array(zoo["outputs"]) - wanted) / np.linalg.norm(wanted)
        if not error < RELATIVE:
            yield "other outputs"


def _listed(numbers: set[float]) -> str:
    return ", ".join(f"{number:g}" for number in sorted(numbers)) or "none"


def _dropout(layers: Layers) -> str:
    """Return dropout rates, each with the number of preceding layers with arrays, and oddities."""
    actual, before = [], 0
    for layer in layers:
        before += bool(layer["shapes"])
        if layer["op"] == "dropout" and layer["rate"]:
            unusual = layer["mode"] if layer["mode"] != "upscale_in_train" else ""
            actual.append(f"{layer['rate']:g} after {before} layers {unusual}".rstrip())
    return ", ".join(actual)


def rows(framework: str, networks: Sequence[str] = TORCHVISION) -> list[str]:
    """Return a row of the page for each of our ``networks`` in the zoo."""
    actual = []
    for network, zoo in observed(framework, networks).items():
        text = "; ".join(differences(framework, network, zoo))
        actual.append(f"| `{network}` | {text or SAME} |")
    return actual


def summary(found: Sequence[str]) -> str:
    """Return a sentence about the rows of a zoo."""
    same = sum(row.endswith(f"| {SAME} |") for row in found)
    return f"It has {len(found)} of our {len(TORCHVISION)} networks; {same} are the same."


def section(framework: str) -> str:
    """Return the page's section about one zoo."""
    actual = rows(framework)
    lines = [
        f"## {TITLES[framework]}",
        "",
        summary(actual),
        "",
        "| network | differences |",
        "|---|---|",
        *actual,
    ]
    return "\n".join(lines) + "\n"


def page() -> str:
    """Return the page with new sections below its introduction."""
    introduction = PAGE.read_text().partition("\n## ")[0]
    return "\n".join([introduction, *map(section, TITLES)])


if __name__ == "__main__":
    PAGE.write_text(page())
