"""Shared names and initial values of parameters, and losses of the models."""

from __future__ import annotations

from typing import Any, Dict, Iterator, Mapping, Tuple

import mxnet as mx
import networks
import numpy as np
from harness.adapter import Definition
from harness.adapter.layout import INPUTS
from mxnet.gluon import nn
from networks import total_loss

ENDINGS = {"gamma": "weight", "beta": "bias"}  # shared endings of normalisations' parameters
INITIALIZERS = {
    "normal": mx.init.Normal,
    "uniform": mx.init.Uniform,
    "constant": mx.init.Constant,
}


def named_parameters(block: nn.Block, prefix: str = "") -> Iterator[Tuple[str, nn.Block, Any]]:
    """Yield the shared name, block and parameter of each parameter in ``block``. A parameter that
    several blocks share is yielded last from the block that created it."""
    for attribute, parameter in block._reg_params.items():
        yield prefix + ENDINGS.get(attribute, attribute), block, parameter
    for name, child in block._children.items():
        yield from named_parameters(child, f"{prefix}{name}.")


def initialized(model: nn.Block, weights: Mapping[str, networks.Weight]) -> nn.Block:
    for name, _, parameter in named_parameters(model):
        if name in weights:
            distribution, value = weights[name].initial
            parameter.init = INITIALIZERS[distribution](value)
    return model


def labels(batch: Dict[str, Any]) -> Dict[str, Any]:
    """Return the numpy arrays that :func:`loss` takes: a flat array of classes, or probabilities of
    all classes."""
    named = {name: array for name, array in batch.items() if name not in INPUTS}
    return {
        name: array if array.dtype.kind == "f" else array.reshape(-1).astype(np.int32)
        for name, array in named.items()
    }


def cross_entropy(logits: Any, labels: Any) -> Any:
    """Return the mean cross-entropy."""
    entropy = mx.gluon.loss.SoftmaxCrossEntropyLoss(sparse_label=labels.ndim == 1)
    return entropy(logits.reshape((-3, 0)) if logits.ndim > 2 else logits, labels).mean()


class ModelDefinition(Definition):
    #: Operators that multiply.
    MATMULS = ("FullyConnected", "batch_dot")

    def loss(self, outputs: Tuple[Any, ...], labels: Dict[str, Any]) -> Any:
        exact = [x.astype("float32") for x in outputs]
        return total_loss(
            exact, labels, self.hyper, cross_entropy, lambda x: x.transpose((0, 2, 1))
        )
