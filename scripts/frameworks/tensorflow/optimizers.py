"""Optimizers of the model config by the rules of ``torch.optim``, on TensorFlow's fused update
kernels, and LAMB, for which there is none.

Keras's own SGD knows decoupled weight decay only, and its Adam adds epsilon to sqrt(v) before
the bias is corrected: at the first step that epsilon is sqrt(1 / (1 - beta2)), about 30 times,
too large. Its Lamb decays outside the ratio of norms, and leaves no parameter out of that.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Sequence

import keras
import tensorflow as tf
from harness import layerwise
from harness.optimizers import NO_DECAY, NO_TRUST_RATIO, left_out

NameOf = Callable[[tf.Variable], str]


def from_model_config(model_config: Dict[str, Any], name_of: NameOf) -> keras.optimizers.Optimizer:
    """Return the optimizer that the model's hyper-parameters name. ``name_of``: the name that all
    frameworks share, of a variable."""
    hyper = model_config["hyperparameters"]
    if hyper["optimizer"] == "lamb":
        return _lamb(hyper, name_of)
    if layerwise.decays(model_config):
        return _adamw(
            hyper, LayerwiseAdamW, part=lambda variable: layerwise.factor(name_of(variable), hyper)
        )
    return {"sgd": _sgd, "adamw": _adamw}[hyper["optimizer"]](hyper)


def leave_out(
    optimizer: keras.optimizers.Optimizer,
    model_config: Dict[str, Any],
    variables: Sequence[tf.Variable],
    name_of: NameOf,
) -> None:
    """Exclude variables from weight decay as the hyper-parameters say; call it before the
    optimizer is built."""
    named = {name_of(variable): variable for variable in variables}
    undecayed = left_out(model_config["hyperparameters"], NO_DECAY, named)
    optimizer.exclude_from_weight_decay(var_list=[named[name] for name in undecayed])


class CoupledSGD(keras.optimizers.SGD):
    """``torch.optim.SGD``: the weight decay is part of the gradient, so momentum sees it. The
    momentum is that of gradients, as in TensorFlow 1; Keras's is that of steps, and keeps the rates
    that it was made with."""

    def __init__(self, coupled_weight_decay: float, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.coupled_weight_decay = coupled_weight_decay

    def update_step(self, gradient: tf.Tensor, variable: tf.Variable, learning_rate: Any) -> None:
        index = self._get_variable_index(variable)
        if self._use_weight_decay(self._trainable_variables[index]):
            gradient += self.coupled_weight_decay * variable
        tf.raw_ops.ResourceApplyMomentum(
            var=variable.handle,
            accum=self.momentums[index].handle,
            lr=tf.cast(learning_rate, variable.dtype),
            grad=gradient,
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
    """AdamW with a factor of the learning rate for each variable, which applies to its weight
    decay too."""

    def __init__(self, part: Callable[[Any], float], **arguments: Any) -> None:
        super().__init__(**arguments)
        self._part = part

    def update_step(self, gradient: tf.Tensor, variable: tf.Variable, learning_rate: Any) -> None:
        own = self._trainable_variables[self._get_variable_index(variable)]
        rate = tf.cast(learning_rate, variable.dtype) * self._part(own)
        if self._use_weight_decay(own):
            variable.assign_sub(rate * self.weight_decay * variable)
        super().update_step(gradient, variable, rate)

    def _apply_weight_decay(self, variables: Any) -> None:
        """Do nothing: the update applies weight decay."""


class Lamb(keras.optimizers.Lamb):
    """Keras's Lamb with the decay within the ratio of norms, as in You et al. 2019
    (arXiv:1904.00962) and TensorFlow Addons, and with parameters that are excluded from decay or
    ratio. Clipping by global norm is that of the base class."""

    def __init__(self, hyper: Dict[str, Any], name_of: NameOf, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._hyper, self._name_of = hyper, name_of

    def build(self, variables: Sequence[tf.Variable]) -> None:
        names = [self._name_of(variable) for variable in variables]
        undecayed, unscaled = (
            left_out(self._hyper, key, names) for key in (NO_DECAY, NO_TRUST_RATIO)
        )
        self._decays = [0.0 if n in undecayed else self._hyper["weight_decay"] for n in names]
        self._scaled = [name not in unscaled for name in names]
        super().build(variables)

    def update_step(self, gradient: tf.Tensor, variable: tf.Variable, learning_rate: Any) -> None:
        index = self._get_variable_index(variable)
        step = tf.cast(self.iterations + 1, variable.dtype)
        mean, square = self._momentums[index], self._velocities[index]
        self.assign_add(mean, (gradient - mean) * (1 - self.beta_1))
        self.assign_add(square, (tf.square(gradient) - square) * (1 - self.beta_2))
        root = tf.sqrt(square / (1 - tf.pow(tf.cast(self.beta_2, variable.dtype), step)))
        corrected = mean / (1 - tf.pow(tf.cast(self.beta_1, variable.dtype), step))
        change = corrected / (root + self.epsilon) + self._decays[index] * variable
        if self._scaled[index]:
            change *= trust_ratio(tf.norm(variable), tf.norm(change))
        self.assign_sub(variable, tf.cast(learning_rate, variable.dtype) * change)


def trust_ratio(of_weight: tf.Tensor, of_change: tf.Tensor) -> tf.Tensor:
    """Return the ratio of two norms; 1 where either is zero."""
    scalable = tf.logical_and(of_weight > 0, of_change > 0)
    return tf.where(scalable, of_weight / of_change, tf.ones_like(of_weight))


def _sgd(hyperparameters: Dict[str, Any]) -> CoupledSGD:
    return CoupledSGD(
        learning_rate=hyperparameters["learning_rate"],
        momentum=hyperparameters["momentum"],
        coupled_weight_decay=hyperparameters["weight_decay"],
    )


def _adamw(hyperparameters: Dict[str, Any], optimizer: type = AdamW, **more: Any) -> AdamW:
    return optimizer(
        learning_rate=hyperparameters["learning_rate"],
        weight_decay=hyperparameters["weight_decay"],
        beta_1=hyperparameters["beta1"],
        beta_2=hyperparameters["beta2"],
        epsilon=hyperparameters["epsilon"],
        global_clipnorm=hyperparameters.get("clip_global_norm"),
        **more,
    )


def _lamb(hyper: Dict[str, Any], name_of: NameOf) -> Lamb:
    return Lamb(
        hyper,
        name_of,
        learning_rate=hyper["learning_rate"],
        beta_1=hyper["beta1"],
        beta_2=hyper["beta2"],
        epsilon=hyper["epsilon"],
        global_clipnorm=hyper.get("clip_global_norm"),
    )
