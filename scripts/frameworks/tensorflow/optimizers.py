"""The facts' optimizers by the rules of ``torch.optim``, on TensorFlow's fused update kernels.

Keras's own SGD knows decoupled weight decay only, and its Adam adds epsilon to sqrt(v) before
the bias is corrected: at the first step that epsilon is sqrt(1 / (1 - beta2)), about 30 times,
too large.
"""

from __future__ import annotations

from typing import Any, Callable, Dict

import keras
import tensorflow as tf
from harness import layerwise


def from_facts(
    facts: Dict[str, Any], name_of: Callable[[Any], str] = str
) -> keras.optimizers.Optimizer:
    """The optimizer that the model's hyper-parameters name. ``name_of``: the shared name of a
    variable."""
    hyper = facts["hyperparameters"]
    if layerwise.decays(facts):
        return _adamw(hyper, LayerwiseAdamW, part=lambda one: layerwise.factor(name_of(one), hyper))
    return {"sgd": _sgd, "adamw": _adamw}[facts["hyperparameters"]["optimizer"]](
        facts["hyperparameters"]
    )


class CoupledSGD(keras.optimizers.SGD):
    """``torch.optim.SGD``: the weight decay is part of the gradient, so momentum sees it. The
    momentum is that of gradients, as in TensorFlow 1; Keras's is that of steps, and keeps the rates
    that it was made with."""

    def __init__(self, coupled_weight_decay: float, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.coupled_weight_decay = coupled_weight_decay

    def update_step(self, gradient: tf.Tensor, variable: tf.Variable, learning_rate: Any) -> None:
        tf.raw_ops.ResourceApplyMomentum(
            var=variable.handle,
            accum=self.momentums[self._get_variable_index(variable)].handle,
            lr=tf.cast(learning_rate, variable.dtype),
            grad=gradient + self.coupled_weight_decay * variable,
            momentum=self.momentum,
        )


class AdamW(keras.optimizers.AdamW):
    """``torch.optim.AdamW``: epsilon is added to sqrt(v / (1 - beta2^t)). Clipping by global norm
    and the decay of the parameters are those of the base class."""

    def update_step(self, gradient: tf.Tensor, variable: tf.Variable, learning_rate: Any) -> None:
        index = self._get_variable_index(variable)
        step = tf.cast(self.iterations + 1, variable.dtype)
        beta2_power = tf.pow(tf.cast(self.beta_2, variable.dtype), step)
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=self._momentums[index].handle,
            v=self._velocities[index].handle,
            beta1_power=tf.pow(tf.cast(self.beta_1, variable.dtype), step),
            beta2_power=beta2_power,
            lr=tf.cast(learning_rate, variable.dtype),
            beta1=self.beta_1,
            beta2=self.beta_2,
            # The kernel divides by sqrt(v) + epsilon and multiplies by sqrt(1 - beta2^t).
            epsilon=self.epsilon * tf.sqrt(1.0 - beta2_power),
            grad=gradient,
        )


class LayerwiseAdamW(AdamW):
    """Each variable has its ``part`` of the learning rate, and with it of the weight decay."""

    def __init__(self, part: Callable[[Any], float], **arguments: Any) -> None:
        super().__init__(**arguments)
        self._part = part

    def update_step(self, gradient: tf.Tensor, variable: tf.Variable, learning_rate: Any) -> None:
        own = self._trainable_variables[self._get_variable_index(variable)]
        rate = tf.cast(learning_rate, variable.dtype) * self._part(own)
        variable.assign_sub(rate * self.weight_decay * variable)
        super().update_step(gradient, variable, rate)

    def _apply_weight_decay(self, variables: Any) -> None:
        """With the update."""


def _sgd(hyperparameters: Dict[str, Any]) -> CoupledSGD:
    return CoupledSGD(
        learning_rate=hyperparameters["learning_rate"],
        momentum=hyperparameters["momentum"],
        coupled_weight_decay=hyperparameters["weight_decay"],
    )


def _adamw(hyperparameters: Dict[str, Any], of: type = AdamW, **more: Any) -> AdamW:
    return of(
        learning_rate=hyperparameters["learning_rate"],
        weight_decay=hyperparameters["weight_decay"],
        beta_1=hyperparameters["beta1"],
        beta_2=hyperparameters["beta2"],
        epsilon=hyperparameters["epsilon"],
        global_clipnorm=hyperparameters.get("clip_global_norm"),
        **more,
    )
