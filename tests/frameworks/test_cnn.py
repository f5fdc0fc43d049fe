"""Convolutional networks in each framework: from the same description, the same network. One of
each family, made small, is compared with the reference; of all, the parameters are counted."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import pytest

from ..conftest import ROOT
from .cnns import CNNS, FAMILIES
from .comparing import beyond, compared
from .fork_server import ForkServer, served

FRAMEWORKS = sorted(path.parent.name for path in ROOT.glob("scripts/frameworks/*/cnn.py"))

#: Of one array: with a single channel or two in nearly a hundred batch normalisations (Inception),
#: ten times what wide networks have.
SINGLE_GRADIENT = 5e-3

#: Fewer families, where compiling one takes ten seconds.
COMPARED = {
    "jax": ("resnext50_32x4d", "vgg11_bn"),
    "tensorflow": (
        *("alexnet", "mobilenet_v2", "resnext50_32x4d", "shufflenet_v2_x0_5", "squeezenet1_0"),
        "vgg11_bn",
    ),
    "tensorflow1": ("alexnet", "mobilenet_v2", "vgg11_bn"),
}

#: How many parameters are trained of the model of ``facts``, in frameworks that can build it
#: without drawing them: of all 35 those are 1.8 billion.
COUNTED = {
    "jax": """
import numpy as np
definition._drawn = lambda weight, random: np.broadcast_to(np.float32(0), weight.shape)
count = sum(array.size for array in definition.parameters(facts, None).values())
""",
    "mxnet": """
from math import prod
model = definition.build(facts)
count = sum(prod(p.shape) for p in model.collect_params().values() if p.grad_req != "null")
""",
    "oneflow": """
for kind in (framework.nn.Conv2d, framework.nn.Linear, framework.nn.BatchNorm2d):
    kind.reset_parameters = lambda module: None
definition.INITIALIZERS = dict.fromkeys(definition.INITIALIZERS, lambda tensor, value: None)
count = sum(p.numel() for p in definition.build(facts).parameters())
""",
    "paddle": """
from math import prod
with framework.LazyGuard():
    model = definition.build(facts)
count = sum(prod(p.shape) for p in model.parameters() if not p.stop_gradient)
""",
    "tensorflow": """
import keras
from math import prod
with keras.StatelessScope(initialize_variables=False):
    count = sum(prod(one.shape) for one in definition.build(facts).trainable_variables)
""",
    "tensorflow1": """
from numpy import prod
sized = lambda shape, value, trainable=True: trainable * int(prod(shape))
definition.normal = definition.uniform = definition.constant = sized
count = sum(definition.variables(facts).values())
""",
    "pytorch": """
with framework.device("meta"):
    count = sum(p.numel() for p in definition.build(facts).parameters())
""",
}
COUNT = """
import importlib
import json
networks = json.loads(NETWORKS)
adapter = started(networks[0])
definition = adapter._definition
framework = importlib.import_module(adapter.MODULE)
counts = {}
for facts in networks:
    COUNTED
    counts[facts["name"]] = count
answer(counts=counts)
"""


run = served(*FRAMEWORKS)


def test_every_family_computes_what_the_reference_does(
    run: ForkServer, small_references: Path
) -> None:
    models = COMPARED.get(run.framework, FAMILIES)
    folders = [small_references / model for model in models]
    assert not beyond(compared(run, folders), {"gradients": SINGLE_GRADIENT})


@pytest.mark.parametrize("run", sorted(COUNTED), indirect=True)
def test_every_network_has_the_parameters_of_its_facts(run: ForkServer) -> None:
    given = json.dumps(list(CNNS.values()))
    counted = textwrap.indent(COUNTED[run.framework], "    ")
    (found,) = run(COUNT.replace("COUNTED", counted).replace("NETWORKS", repr(given)))
    assert found["counts"] == {name: facts["trainable_parameters"] for name, facts in CNNS.items()}
