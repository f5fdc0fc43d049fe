"""Mistakes in single stages of ResNet-50, in every framework: an activation is missing behind one
of the second blocks."""

from __future__ import annotations

from collections.abc import Sequence

from ..models import RESNET
from .planted import Change, PlantedMistake, other_operation

#: The activation in each framework, and one that LACKS replaces where it is missing.
_, *TENSORFLOW = other_operation("relu", "lambda layer, x: x if LACKS else tf.nn.relu(x)")
ACTIVATIONS = {
    "jax": (
        '"relu": lambda layer, x: relu(x)',
        '"relu": lambda layer, x: x if LACKS else relu(x)',
    ),
    "megengine": ("    return F.relu\n", "    return (lambda x: x) if LACKS else F.relu\n"),
    "mindspore": (
        "else OPERATIONS[layer.op](**layer.attributes)",
        "else nn.Identity() if LACKS else OPERATIONS[layer.op](**layer.attributes)",
    ),
    "mxnet": (
        'return lambda F, x: F.Activation(x, act_type="relu")',
        'return lambda F, x: x if LACKS else F.Activation(x, act_type="relu")',
    ),
    "oneflow": (
        'return relu(call.in_place) if layer.op == "relu"',
        'return (lambda x: x) if LACKS else relu(call.in_place) if layer.op == "relu"',
    ),
    "paddle": ("    return F.relu\n", "    return (lambda x: x) if LACKS else F.relu\n"),
    "pytorch": (
        '"relu": lambda layer: nn.ReLU()',
        '"relu": lambda layer: nn.Identity() if LACKS else nn.ReLU()',
    ),
    "tensorflow": TENSORFLOW,
    "tensorflow1": TENSORFLOW,
}
STAGES = {"third": "layer3.1.relu", "fourth": "layer4.1.relu"}


def _mistake(stage: str, right: str, wrong: str) -> PlantedMistake:
    changed = wrong.replace("LACKS", f'layer.name == "{STAGES[stage]}"')
    about = f"no activation behind a block of the {stage} stage"
    return PlantedMistake(about, RESNET, Change("models/cnn.py", right, changed))


MISTAKES: dict[str, Sequence[PlantedMistake]] = {
    framework: [_mistake(stage, *texts) for stage in STAGES]
    for framework, texts in ACTIVATIONS.items()
}
