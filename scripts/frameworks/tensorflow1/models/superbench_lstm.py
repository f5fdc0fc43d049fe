"""SuperBench's LSTM: the operator of ``tf.contrib.rnn.LSTMBlockFusedCell``, which runs all steps of
a layer, with a linear layer on the last step.

Its gates stand in another order than those of the reference: input, cell, forget, output. (That of
its second version is the reference's, but TensorFlow 1.15 has its gradient wrong.)"""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

import tensorflow as tf
from networks import transformers

from ..compiler import Scope
from ..variables import Variables
from . import layers
from .layers import loss as loss

#: Which gates of the operator those of the reference are.
GATES = (0, 2, 1, 3)


def variables(model_config: Dict[str, Any]) -> Variables:
    return layers.drawn(transformers.lstm(model_config["hyperparameters"]))


def forward(
    variables: Variables,
    batch: Dict[str, Any],
    model_config: Dict[str, Any],
    training: bool,
    scope: Scope,
) -> Tuple[List[tf.Tensor], Dict[str, tf.Tensor]]:
    """Map features (batch, sequence, features) to logits (batch, classes); there are no
    running statistics."""
    hidden = model_config["hyperparameters"]["hidden"]
    rows, length, _ = batch["features"].shape.as_list()
    state, unused = tf.zeros((rows, hidden)), tf.zeros((hidden,))
    x = tf.transpose(batch["features"], (1, 0, 2))
    for layer in range(model_config["hyperparameters"]["layers"]):
        inner, recurrent, bias, recurrent_bias = (
            variables[f"lstm.{kind}_l{layer}"]
            for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        )
        with scope():
            x = tf.raw_ops.BlockLSTM(
                seq_len_max=tf.constant(length, tf.int64),
                x=x,
                cs_prev=state,
                h_prev=state,
                w=tf.concat([inner, recurrent], axis=0),
                wci=unused,
                wcf=unused,
                wco=unused,
                b=bias + recurrent_bias,
                forget_bias=0.0,  # by default 1 is added
                cell_clip=-1.0,  # none
                use_peephole=False,
            ).h
    with scope():
        return [layers.dense(x[-1], variables, "classifier")], {}
