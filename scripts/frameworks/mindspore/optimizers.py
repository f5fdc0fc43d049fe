"""Optimizers of the model config: SGD with momentum adds weight decay to the gradient, AdamW decays
weights separately (Loshchilov and Hutter, arXiv:1711.05101)."""

from __future__ import annotations

from typing import Any, Dict, Iterator, Mapping, Sequence

from harness.optimizers import groups_by_decay, update_rules
from mindspore import Parameter, Tensor, nn, ops

Parameters = Mapping[str, Parameter]


class AdamW:
    """AdamW by MindSpore's fused kernel, which does not correct biases: rate, epsilon and decay are
    adjusted for the correction (Kingma and Ba, arXiv:1412.6980, end of section 2)."""

    def __init__(self, parameters: Parameters, hyper: Dict[str, Any]) -> None:
        self.learning_rate = hyper["learning_rate"]
        self._betas, self._epsilon = (hyper["beta1"], hyper["beta2"]), hyper["epsilon"]
        self._rules = update_rules(parameters, hyper)
        self._steps = Parameter(Tensor(0), name="steps")
        self._held = {
            name: (
                parameter,
                *(Parameter(ops.zeros_like(parameter), name=f"{name}.{moment}") for moment in "mv"),
            )
            for name, parameter in parameters.items()
        }
        self._kernel = ops.AdamWeightDecay()

    def __call__(self, gradients: Sequence[Tensor]) -> None:
        ops.assign(self._steps, self._steps + 1)
        first, second = (1 - beta ** int(self._steps) for beta in self._betas)
        scale, epsilon = second**0.5 / first, self._epsilon * second**0.5
        for (name, held), gradient in zip(self._held.items(), gradients):
            rate = self.learning_rate * self._rules[name].rate_factor * scale
            decay = self._rules[name].weight_decay / scale
            self._kernel(*held, rate, *self._betas, epsilon, decay, gradient)

    def get_parameters(self) -> Iterator[Parameter]:
        """Return the optimizer's state."""
        yield self._steps
        for _, mean, square in self._held.values():
            yield from (mean, square)


class Optimizer:
    """Optimizer of all ``parameters`` by name, in the order of the gradients."""

    def __init__(self, parameters: Parameters, hyper: Dict[str, Any]) -> None:
        self._limit = hyper.get("clip_global_norm")
        self._made: Any = OPTIMIZERS[hyper["optimizer"]](parameters, hyper)

    def update(self, gradients: Sequence[Tensor]) -> None:
        """Update the parameters by their ``gradients``, which are clipped first."""
        given = tuple(gradients)
        if self._limit is not None:
            given = ops.clip_by_global_norm(given, self._limit)
        self._made(given)

    def get_parameters(self) -> Iterator[Parameter]:
        """Return the optimizer's state, which may include the parameters that it updates."""
        return self._made.get_parameters()

    def set_learning_rate(self, rate: float) -> None:
        if isinstance(self._made, AdamW):
            self._made.learning_rate = rate
        else:
            ops.assign(self._made.learning_rate, Tensor(rate))


def _momentum(parameters: Parameters, hyper: Dict[str, Any]) -> nn.Momentum:
    """Return an SGD with one group per weight decay, and all parameters in their order."""
    groups = [*groups_by_decay(parameters, hyper), {"order_params": [*parameters.values()]}]
    return nn.Momentum(groups, hyper["learning_rate"], hyper["momentum"])


#: Makers of optimizers by the name in the model config.
OPTIMIZERS = {"sgd": _momentum, "adamw": AdamW}
