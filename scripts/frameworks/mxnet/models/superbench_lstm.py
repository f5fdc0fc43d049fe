"""SuperBench's LSTM: Gluon's ``rnn.LSTM``, with a dense layer on its last step."""

from __future__ import annotations

from typing import Any, Dict, Tuple

import mxnet as mx
import numpy as np
from mxnet.gluon import nn, rnn

from .bert import labels as labels
from .cnn import loss as loss

LAYOUT = "TNC"  # of the fused operator: NTC has its input transposed to it
LAYOUTS = dict.fromkeys(("cpu", "gpu"), LAYOUT)
MATMULS = ("RNN", "FullyConnected")


class Classifier(nn.HybridBlock):
    """Features (sequence, batch, features) -> logits (batch, classes)."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        hidden = hyper["hidden"]
        uniform = mx.init.Uniform(hidden**-0.5)  # as in PyTorch
        self.lstm = rnn.LSTM(
            hidden,
            num_layers=hyper["layers"],
            layout=LAYOUT,
            input_size=hyper["features"],
            i2h_weight_initializer=uniform,
            h2h_weight_initializer=uniform,
            i2h_bias_initializer=uniform,
            h2h_bias_initializer=uniform,
        )
        self.classifier = nn.Dense(
            hyper["classes"],
            in_units=hidden,
            weight_initializer=uniform,
            bias_initializer=uniform,
        )

    def hybrid_forward(self, F: Any, features: Any) -> Any:
        # not SequenceLast, whose backward pass ends the process
        last = F.slice_axis(self.lstm(features), axis=0, begin=-1, end=None)
        return self.classifier(F.reshape(last, (-3, 0)))  # (1, batch, hidden) -> (batch, hidden)


def build(model_config: Dict[str, Any]) -> nn.HybridBlock:
    return Classifier(model_config["hyperparameters"])


def inputs(batch: Dict[str, Any]) -> Tuple[Any, ...]:
    """Return the batch's numpy arrays that the model takes."""
    return (np.ascontiguousarray(batch["features"].transpose(1, 0, 2)),)
