"""Optimizers of the model config by the rules of ``torch.optim``, on TensorFlow's fused update
kernels.

``tf.train.MomentumOptimizer`` knows no weight decay. ``tf.train.AdamOptimizer`` adds epsilon to
sqrt(v) before the bias is corrected: at the first step that epsilon is sqrt(1 / (1 - beta2)), about
30 times, too large. ``tf.contrib.opt.AdamWOptimizer`` inherits that, and its decay does not follow
the learning rate.
"""

from __future__ import annotations

from typing import Any, Dict, FrozenSet

import tensorflow as tf
from harness.optimizers import update_rules


def from_model_config(
    model_config: Dict[str, Any], rate: tf.Variable, names: Dict[str, str]
) -> tf.train.Optimizer:
    """Return the optimizer that the model's hyper-parameters name, with this learning ``rate``, a
    scalar; it does not clip. ``names``: TensorFlow's names of trained parameters, by the names that
    frameworks share."""
    hyper = model_config["hyperparameters"]
    rules = update_rules(names, hyper)
    undecayed = frozenset(names[n] for n, rule in rules.items() if not rule.weight_decay)
    return {"sgd": CoupledMomentum, "adamw": AdamW}[hyper["optimizer"]](hyper, rate, undecayed)


class CoupledMomentum(tf.train.MomentumOptimizer):
    """SGD as ``torch.optim.SGD``: the weight decay is part of the gradient, so momentum sees it."""

    def __init__(self, hyper: Dict[str, Any], rate: tf.Variable, undecayed: FrozenSet[str]) -> None:
        super().__init__(rate, hyper["momentum"])
        self._weight_decay, self._undecayed = hyper["weight_decay"], undecayed

    def _resource_apply_dense(self, grad: tf.Tensor, var: tf.Variable) -> tf.Operation:
        if var.name in self._undecayed:
            return super()._resource_apply_dense(grad, var)
        return super()._resource_apply_dense(grad + self._weight_decay * var, var)


class AdamW(tf.train.AdamOptimizer):
    """``torch.optim.AdamW``: epsilon is added to sqrt(v / (1 - beta2^t)), and every parameter that
    decays loses ``learning_rate * weight_decay`` of itself before its update."""

    def __init__(self, hyper: Dict[str, Any], rate: tf.Variable, undecayed: FrozenSet[str]) -> None:
        super().__init__(rate, hyper["beta1"], hyper["beta2"], hyper["epsilon"])
        self._kept, self._undecayed = 1.0 - rate * hyper["weight_decay"], undecayed

    def _resource_apply_dense(self, grad: tf.Tensor, var: tf.Variable) -> tf.Operation:
        beta1_power, beta2_power = self._get_beta_accumulators()
        before = [grad]
        if var.name not in self._undecayed:
            # Decays after the gradient is computed; otherwise the forward pass would read decayed
            # weights.
            with tf.control_dependencies(before):
                before = [var.assign(var * self._kept, read_value=False)]
        with tf.control_dependencies(before):
            return tf.raw_ops.ResourceApplyAdam(
                var=var.handle,
                m=self.get_slot(var, "m").handle,
                v=self.get_slot(var, "v").handle,
                beta1_power=beta1_power,
                beta2_power=beta2_power,
                lr=self._lr_t,
                beta1=self._beta1_t,
                beta2=self._beta2_t,
                # The kernel divides by sqrt(v) + epsilon and multiplies by sqrt(1 - beta2^t).
                epsilon=self._epsilon * tf.sqrt(1.0 - beta2_power),
                grad=grad,
            )
