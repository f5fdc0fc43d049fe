"""Counts of the trained parameters of networks.
Where a framework can build a model without drawing them, they are not drawn: all 35 networks have
1.8 billion."""

import importlib

import numpy as np

from .prelude import FRAMEWORK, started


def product(shape):
    return int(np.prod([int(size) for size in shape]))


def count_jax(definition, framework, model_config):
    definition._drawn = lambda weight, random: np.broadcast_to(np.float32(0), weight.shape)
    return sum(array.size for array in definition.parameters(model_config, None).values())


def count_mindspore(definition, framework, model_config):
    return sum(p.size for p in definition.build(model_config, True).trainable_params())


def count_mxnet(definition, framework, model_config):
    parameters = definition.build(model_config).collect_params().values()
    return sum(product(p.shape) for p in parameters if p.grad_req != "null")


def count_oneflow(definition, framework, model_config):
    for kind in (framework.nn.Conv2d, framework.nn.Linear, framework.nn.BatchNorm2d):
        kind.reset_parameters = lambda module: None
    initializers = dict.fromkeys(definition.INITIALIZERS, lambda tensor, value: None)
    definition.INITIALIZERS = initializers
    return sum(p.numel() for p in definition.build(model_config).parameters())


def count_paddle(definition, framework, model_config):
    with framework.LazyGuard():
        model = definition.build(model_config)
    return sum(product(p.shape) for p in model.parameters() if not p.stop_gradient)


def count_tensorflow(definition, framework, model_config):
    import keras

    with keras.StatelessScope(initialize_variables=False):
        return sum(
            product(entry.shape) for entry in definition.build(model_config).trainable_variables
        )


def count_tensorflow1(definition, framework, model_config):
    def sized(shape, value, trainable=True):
        return trainable * product(shape)

    definition.normal = definition.uniform = definition.constant = sized
    return sum(definition.variables(model_config).values())


def count_pytorch(definition, framework, model_config):
    with framework.device("meta"):
        return sum(p.numel() for p in definition.build(model_config).parameters())


def count_drawn(definition, framework, model_config):
    """Count those of other frameworks, whose modules are like PyTorch's."""
    return sum(product(p.shape) for p in definition.build(model_config).parameters())


def count(networks):
    adapter = started(networks[0])
    framework = importlib.import_module(adapter.MODULE)
    counted = globals().get(f"count_{FRAMEWORK}", count_drawn)
    counts = {
        network["name"]: int(counted(adapter._definition, framework, network))
        for network in networks
    }
    return {"counts": counts}
