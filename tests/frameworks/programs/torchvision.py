"""Networks of torchvision in the adapter of PyTorch."""

import math

import torch
from harness.adapter import Unsupported
from harness.request.declaration import read_model

from .prelude import built, raised, started
from .small import SCRIPTS


def train():
    facts = read_model(f"{SCRIPTS}/models/googlenet.json", "torchvision")
    facts["inputs"][0]["shape"] = ["batch", 64, 64, 3]
    facts["hyperparameters"].update(dropout=0.125, batch_norm_epsilon=0.25)
    adapter = built(facts)
    heads = len(adapter.outputs())
    loss = adapter.read(adapter.step())
    model = adapter._model
    modules = list(model.modules())

    def laid_out():
        return {name: (entry.axes, entry.unfolded) for name, entry in adapter.state().items()}

    theirs = laid_out()
    from framework_under_test.models import cnn

    adapter._model = cnn.build(facts)
    return {
        "module": type(model).__module__,
        "same": theirs == laid_out(),
        "heads": heads,
        "rates": [module.p for module in modules if isinstance(module, torch.nn.Dropout)],
        "epsilons": sorted(
            {module.eps for module in modules if isinstance(module, torch.nn.BatchNorm2d)}
        ),
        "finite": math.isfinite(loss),
    }


def refuse():
    facts = read_model(f"{SCRIPTS}/models/resnet18.json", "torchvision")
    build = started(facts)._definition.build
    hyper = facts["hyperparameters"]
    small = {**facts, "hyperparameters": {**hyper, "width": 16}}
    return {
        "reasons": [
            raised(Unsupported, lambda entry=entry: build(entry))
            for entry in (small, {**facts, "name": "n"})
        ]
    }
