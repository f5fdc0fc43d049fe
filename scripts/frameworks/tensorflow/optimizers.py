"""Optimizers of the model config by the rules of ``torch.optim``, on TensorFlow's fused update
kernels, and LAMB, which has no such kernel.

Keras's own SGD knows decoupled weight decay only, and its Adam adds epsilon to sqrt(v) before
the bias is corrected: at the first step that epsilon is sqrt(1 / (1 - beta2)), about 30 times,
too large. Keras's Lamb decays outside the ratio of norms, and cannot exclude
parameters from the ratio.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Sequence

import keras
import tensorflow as tf
from harness.optimizers import UpdateRule, update_rules

NameOf = Callable[[tf.Variable], str]


def from_model_config(model_config: Dict[str, Any], name_of: NameOf) -> keras.optimizers.Optimizer:
    """Return the optimizer that the model's hyper-parameters name. ``name_of``: function from a
    variable to the name that all frameworks share."""
    hyper = model_config["hyperparameters"]
    if hyper["optimizer"] == "sgd":
        return CoupledSGD(
            hyper, name_of, learning_rate=hyper["learning_rate"], momentum=hyper["momentum"]
        )
    return {"adamw": AdamW, "lamb": Lamb}[hyper["optimizer"]](
        hyper,
        name_of,
        learning_rate=hyper["learning_rate"],
        beta_1=hyper["beta1"],
        beta_2=hyper["beta2"],
        epsilon=hyper["epsilon"],
        global_clipnorm=hyper.get("clip_global_norm"),
    )


class _Ruled(keras.optimizers.Optimizer):
    """Optimizer that updates each variable by its rule. Keras clips by global norm."""

    def __init__(self, hyper: Dict[str, Any], name_of: NameOf, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._hyper, self._name_of = hyper, name_of

    def build(self, variables: Sequence[tf.Variable]) -> None:
        rules = update_rules(map(self._name_of, variables), self._hyper)
        self._rules: List[UpdateRule] = list(rules.values())
        super().build(variables)


class CoupledSGD(_Ruled, keras.optimizers.SGD):
    """``torch.optim.SGD``: the weight decay is part of the gradient, so momentum sees it. The
    momentum accumulates gradients, as in TensorFlow 1; Keras's accumulates steps, which include
    earlier learning rates."""

    def update_step(self, gradient: tf.Tensor, variable: tf.Variable, learning_rate: Any) -> None:
        index = self._get_variable_index(variable)
        if self._rules[index].weight_decay:
            gradient += self._rules[index].weight_decay * variable
        tf.raw_ops.ResourceApplyMomentum(
            var=variable.handle,
            accum=self.momentums[index].handle,
            lr=tf.cast(learning_rate, variable.dtype),
            grad=gradient,
            momentum=self.momentum,
        )


class AdamW(_Ruled, keras.optimizers.Adam):
    """``torch.optim.AdamW``: epsilon is added to sqrt(v / (1 - beta2^t)), and every parameter that
    decays loses ``learning_rate * weight_decay`` of itself before its update."""

    def update_step(self, gradient: tf.Tensor, variable: tf.Variable, learning_rate: Any) -> None:
        index = self._get_variable_index(variable)
        rule = self._rules[index]
        rate = tf.cast(learning_rate, variable.dtype) * rule.rate_factor
        if rule.weight_decay:
            variable.assign_sub(rate * rule.weight_decay * variable)
        step = tf.cast(self.iterations + 1, variable.dtype)
        beta2_power = tf.pow(tf.cast(self.beta_2, variable.dtype), step)
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=self._momentums[index].handle,
            v=self._velocities[index].handle,
            beta1_power=tf.pow(tf.cast(self.beta_1, variable.dtype), step),
            beta2_power=beta2_power,
            lr=rate,
            beta1=self.beta_1,
            beta2=self.beta_2,
            # The kernel divides by sqrt(v) + epsilon and multiplies by sqrt(1 - beta2^t).
            epsilon=self.epsilon * tf.sqrt(1.0 - beta2_power),
            grad=gradient,
        )


class Lamb(_Ruled, keras.optimizers.Lamb):
    """Keras's Lamb with the decay within the ratio of norms, as in You et al. 2019
    (arXiv:1904.00962) and TensorFlow Addons, and with parameters that are excluded from decay or
    ratio."""

    def update_step(self, gradient: tf.Tensor, variable: tf.Variable, learning_rate: Any) -> None:
        index = self._get_variable_index(variable)
        rule = self._rules[index]
        step = tf.cast(self.iterations + 1, variable.dtype)
        mean, square = self._momentums[index], self._velocities[index]
        self.assign_add(mean, (gradient - mean) * (1 - self.beta_1))
        self.assign_add(square, (tf.square(gradient) - square) * (1 - self.beta_2))
        root = tf.sqrt(square / (1 - tf.pow(tf.cast(self.beta_2, variable.dtype), step)))
        corrected = mean / (1 - tf.pow(tf.cast(self.beta_1, variable.dtype), step))
        change = corrected / (root + self.epsilon) + rule.weight_decay * variable
        if rule.trust_ratio:
            change *= trust_ratio(tf.norm(variable), tf.norm(change))
        self.assign_sub(variable, tf.cast(learning_rate, variable.dtype) * change)


def trust_ratio(of_weight: tf.Tensor, of_change: tf.Tensor) -> tf.Tensor:
    """Return the ratio of two norms; 1 where either is zero."""
    scalable = tf.logical_and(of_weight > 0, of_change > 0)
    return tf.where(scalable, of_weight / of_change, tf.ones_like(of_weight))
