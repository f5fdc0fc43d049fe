"""Optimizers of the model config: SGD with momentum adds weight decay to the gradient, AdamW decays
apart from it (Loshchilov and Hutter, arXiv:1711.05101)."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Mapping, Sequence

from harness import layerwise
from harness.optimizers import NO_DECAY, left_out
from mindspore import Parameter, Tensor, nn, ops


class AdamW:
    """AdamW by MindSpore's fused kernel, which does not correct biases: its rate, epsilon and decay
    carry the correction (Kingma and Ba, arXiv:1412.6980, end of section 2)."""

    def __init__(
        self, parameters: Sequence[Parameter], decays: Sequence[float], hyper: Dict[str, Any]
    ) -> None:
        self.learning_rate = hyper["learning_rate"]
        self._betas, self._epsilon = (hyper["beta1"], hyper["beta2"]), hyper["epsilon"]
        self._steps = Parameter(Tensor(0), name="steps")
        self._held = [
            (one, *(Parameter(ops.zeros_like(one), name=f"{one.name}.{of}") for of in "mv"), decay)
            for one, decay in zip(parameters, decays)
        ]
        self._kernel = ops.AdamWeightDecay()

    def __call__(self, gradients: Sequence[Tensor]) -> None:
        ops.assign(self._steps, self._steps + 1)
        first, second = (1 - beta ** int(self._steps) for beta in self._betas)
        scale = second**0.5 / first
        rate, epsilon = self.learning_rate * scale, self._epsilon * second**0.5
        for (parameter, mean, square, decay), gradient in zip(self._held, gradients):
            self._kernel(
                *(parameter, mean, square, rate, *self._betas, epsilon, decay / scale, gradient)
            )

    def get_parameters(self) -> Iterator[Parameter]:
        """Return the state."""
        yield self._steps
        for _, mean, square, _ in self._held:
            yield from (mean, square)


class Optimizer:
    """Optimizer of all ``parameters`` by name, in the order in which gradients come."""

    def __init__(self, parameters: Mapping[str, Parameter], hyper: Dict[str, Any]) -> None:
        undecayed = left_out(hyper, NO_DECAY, parameters)
        decays = [0.0 if name in undecayed else hyper["weight_decay"] for name in parameters]
        self._order = sorted(range(len(parameters)), key=lambda at: decays[at] == 0.0)
        ordered = [[*parameters.values()][at] for at in self._order]
        self._limit = hyper.get("clip_global_norm")
        made = _momentum if hyper["optimizer"] == "sgd" else AdamW
        self._made: Any = made(ordered, [decays[at] for at in self._order], hyper)

    def update(self, gradients: Sequence[Tensor]) -> None:
        """Update the parameters by their ``gradients``, which are clipped first."""
        given = tuple(gradients[at] for at in self._order)
        if self._limit is not None:
            given = ops.clip_by_global_norm(given, self._limit)
        self._made(given)

    def get_parameters(self) -> Iterator[Parameter]:
        """Return the optimizer's state, which may have the parameters that it updates."""
        return self._made.get_parameters()

    def set_learning_rate(self, rate: float) -> None:
        if isinstance(self._made, AdamW):
            self._made.learning_rate = rate
        else:
            ops.assign(self._made.learning_rate, Tensor(rate))


def from_model_config(
    parameters: Mapping[str, Parameter], model_config: Dict[str, Any]
) -> Optimizer:
    """Return the optimizer that the model's hyper-parameters name."""
    layerwise.refuse(model_config)
    return Optimizer(parameters, model_config["hyperparameters"])


def _momentum(
    parameters: Sequence[Parameter], decays: Sequence[float], hyper: Dict[str, Any]
) -> nn.Momentum:
    """Return an SGD with a group for each decay."""
    groups: List[Dict[str, Any]] = [
        {
            "params": [one for one, its in zip(parameters, decays) if its == decay],
            "weight_decay": decay,
        }
        for decay in dict.fromkeys(decays)
    ]
    return nn.Momentum(groups, hyper["learning_rate"], hyper["momentum"])
