"""Optimizers of the model config by the rules of ``torch.optim``, on MXNet's fused update
kernels."""

from __future__ import annotations

import math
import os
from typing import Any, Dict, List, Optional, Sequence, Tuple

import mxnet as mx

# How many parameters one kernel updates: MXNet's own default for SGD, from the documentation of its
# environment variables
AGGREGATION = int(os.environ.get("MXNET_OPTIMIZER_AGGREGATION_SIZE", "4"))
# Elements summed at a time: float32 loses 0.1% in a sum of 23 million squares by `dot`, 5% by
# `norm` and `multi_sum_sq`
CHUNK = 1 << 18


class AdamW(mx.optimizer.Optimizer):
    """AdamW as ``torch.optim.AdamW``; MXNet has kernels for it, but no class.

    A kernel does ``w -= eta * (lr * m / (sqrt(v) + epsilon) + wd * w)``, so both corrections of
    the bias and the learning rate of the decay go into its arguments."""

    def __init__(
        self,
        beta1: float,
        beta2: float,
        epsilon: float,
        clip_global_norm: Optional[float],
        **arguments: Any,
    ) -> None:
        super().__init__(**arguments)
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon
        self.clip_global_norm = clip_global_norm
        self.aggregate_num = AGGREGATION

    def clip(self, gradients: List[Any], scale: float) -> None:
        """Limit the global norm of the next update's ``gradients``, if there is a limit: the update
        kernels multiply them by the factor. ``scale``: factor from these arrays to the true
        gradients. Does not wait.

        The norm is computed by ``dot``, as in ``gluon.utils.clip_global_norm``."""
        if self.clip_global_norm is None:
            self.factor = mx.nd.ones((1,), ctx=gradients[0].context)
            return
        flat = [gradient.reshape((-1,)) for gradient in gradients]
        chunks = [x[start : start + CHUNK] for x in flat for start in range(0, x.size, CHUNK)]
        norm = mx.nd.sqrt(mx.nd.add_n(*[mx.nd.dot(x, x) for x in chunks])) * scale
        self.factor = mx.nd.minimum(self.clip_global_norm / (norm + 1e-6), 1.0)

    def create_state(self, index: int, weight: mx.nd.NDArray) -> Tuple[Any, Any]:
        return mx.nd.zeros_like(weight), mx.nd.zeros_like(weight)

    def update(
        self,
        index: Sequence[int],
        weight: Sequence[Any],
        grad: Sequence[Any],
        state: Sequence[Tuple[Any, Any]],
    ) -> None:
        self._update_count(index)
        step = self._index_update_count[index[0]]
        correction = math.sqrt(1 - self.beta2**step)
        means, variances = zip(*state)
        mx.nd.contrib.multi_adamw_update(
            weight,
            grad,
            means,
            variances,
            self.factor * self.rescale_grad,
            lrs=[rate * correction / (1 - self.beta1**step) for rate in self._get_lrs(index)],
            wds=[r * d for r, d in zip(self._get_lrs(index), self._get_wds(index))],
            etas=[1.0] * len(weight),
            beta1=self.beta1,
            beta2=self.beta2,
            epsilon=self.epsilon * correction,
            out=weight,
        )


def from_model_config(model_config: Dict[str, Any]) -> mx.optimizer.Optimizer:
    """Return the optimizer that the model's hyper-parameters name."""
    hyper = model_config["hyperparameters"]
    common = {"learning_rate": hyper["learning_rate"], "wd": hyper["weight_decay"]}
    if hyper["optimizer"] == "sgd":  # SGD's weight decay is part of the gradient, as in PyTorch
        return mx.optimizer.SGD(momentum=hyper["momentum"], **common)
    return AdamW(
        hyper["beta1"], hyper["beta2"], hyper["epsilon"], hyper.get("clip_global_norm"), **common
    )


def set_rate(trainer: mx.gluon.Trainer, rate: float) -> None:
    """Set the learning rate. MXNet's momentum accumulates steps, which include the rate. So it is
    scaled with the rate, which makes it equal PyTorch's momentum of gradients ("momentum
    correction", Goyal et al. 2017, arXiv:1706.02677, section 2.1)."""
    before = trainer.learning_rate
    trainer.set_learning_rate(rate)
    if before and rate != before and isinstance(trainer.optimizer, mx.optimizer.SGD):
        for updater in trainer._updaters:
            for momentum in updater.states.values():
                momentum *= rate / before
