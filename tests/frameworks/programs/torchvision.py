"""Networks of torchvision in the adapter of PyTorch."""

import math

import torch
from harness.adapter import Unsupported
from harness.request.declaration import read_model

from .prelude import built, raised, started
from .small import SCRIPTS


def train():
    model_config = read_model(f"{SCRIPTS}/models/googlenet.json", "torchvision")
    model_config["inputs"][0]["shape"] = ["batch", 64, 64, 3]
    model_config["hyperparameters"].update(dropout=0.125, batch_norm_epsilon=0.25)
    adapter = built(model_config)
    heads = len(adapter.outputs())
    loss = adapter.read(adapter.step())
    model = adapter._model
    modules = list(model.modules())

    def laid_out():
        return {name: (entry.axes, entry.unfolded) for name, entry in adapter.state().items()}

    theirs = laid_out()
    from framework_under_test.models import cnn

    adapter._model = cnn.build(model_config)
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
    model_config = read_model(f"{SCRIPTS}/models/resnet18.json", "torchvision")
    build = started(model_config)._definition.build
    hyper = model_config["hyperparameters"]
    small = {**model_config, "hyperparameters": {**hyper, "width": 16}}
    return {
        "reasons": [
            raised(Unsupported, lambda entry=entry: build(entry))
            for entry in (small, {**model_config, "name": "n"})
        ]
    }
