"""SuperBench's LSTM in float64 (Hochreiter and Schmidhuber 1997; with a forget gate, Gers et al.
2000), as ``torch.nn.LSTM`` defines it: two bias vectors a layer; gates in the order input, forget,
cell, output; from a state of zeros. A linear layer classifies the last step of the last layer."""

from __future__ import annotations

from typing import Any

import autograd.numpy as np
import numpy
from networks import transformers
from networks.transformers import GATES

from reference.operations import Array, cross_entropy, dense, matmul
from reference.weights import Arrays, Drawn, Hyper


def parameters(model_config: dict[str, Any]) -> dict[str, Drawn]:
    """Return every parameter, by PyTorch's names, and how its value for the comparison is drawn."""
    hyper = model_config["hyperparameters"]
    weights = {}
    for name, weight in transformers.lstm(hyper).items():
        # gates differ much, so that exchanging two of them changes the outputs
        factor = 1.5 if "weight_ih" in name else 2.0 if "classifier" in name else 1.0
        bias = 0.1 if "classifier" in name else 0.3
        spread = bias if len(weight.shape) == 1 else factor * weight.shape[0] ** -0.5
        weights[name] = Drawn(weight.shape, spread)
    return weights


def forward(
    weights: Arrays, batch: Arrays, hyper: Hyper, training: bool, dropout: Any = None
) -> list[Array]:
    """Return logits (batch, classes). There is no dropout."""
    x = batch["features"]
    for layer in range(hyper["layers"]):
        x = _layer(x, weights, layer)
    return [dense(x[:, -1], weights, "classifier")]


def _layer(x: Array, weights: Arrays, layer: int) -> Array:
    """Map (batch, sequence, features) to (batch, sequence, hidden)."""
    rows, length, features = x.shape
    recurrent = weights[f"lstm.weight_hh_l{layer}"]
    biases = weights[f"lstm.bias_ih_l{layer}"] + weights[f"lstm.bias_hh_l{layer}"]
    # input gates of all steps in one matmul: only the recurrent part needs the previous step
    entering = matmul(np.reshape(x, (-1, features)), weights[f"lstm.weight_ih_l{layer}"]) + biases
    entering = np.reshape(entering, (rows, length, -1))
    output = cell = numpy.zeros((rows, len(recurrent)))
    outputs = []
    for step in range(length):
        gates = entering[:, step] + matmul(output, recurrent)
        write, keep, new, read = np.split(gates, GATES, axis=1)  # input, forget, cell, output
        cell = _logistic(keep) * cell + _logistic(write) * np.tanh(new)
        output = _logistic(read) * np.tanh(cell)
        outputs.append(output)
    return np.stack(outputs, axis=1)


def _logistic(x: Array) -> Array:
    return 0.5 * (1 + np.tanh(0.5 * x))


def loss(outputs: list[Array], batch: Arrays, hyper: Hyper) -> Array:
    return cross_entropy(outputs[0], batch["labels"])
