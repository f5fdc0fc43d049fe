"""Optimizers of the model config: SGD with momentum adds weight decay to the gradient, AdamW decays
apart from it (Loshchilov and Hutter, arXiv:1711.05101), LAMB scales each parameter's update by a
ratio of norms (You et al. 2019, arXiv:1904.00962)."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Mapping, Sequence

from harness import layerwise
from harness.optimizers import NO_DECAY, NO_TRUST_RATIO, left_out
from mindspore import Parameter, Tensor, nn, ops

Parameters = Mapping[str, Parameter]


class AdamW:
    """AdamW by MindSpore's fused kernel, which does not correct biases: its rate, epsilon and decay
    carry the correction (Kingma and Ba, arXiv:1412.6980, end of section 2)."""

    def __init__(
        self,
        parameters: Parameters,
        decays: Mapping[str, float],
        hyper: Dict[str, Any],
    ) -> None:
        self.learning_rate = hyper["learning_rate"]
        self._betas, self._epsilon = (hyper["beta1"], hyper["beta2"]), hyper["epsilon"]
        self._factors = {
            name: layerwise.factor(name, hyper) if layerwise.DECAY in hyper else 1.0
            for name in parameters
        }
        self._decays = decays
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
        for name, gradient in zip(self._held, gradients):
            self._update(name, gradient, scale, epsilon)

    def _update(self, name: str, gradient: Tensor, scale: float, epsilon: float) -> None:
        """Update a parameter by mean / (sqrt(square) + ``epsilon``), times ``scale``, and by its
        decay."""
        rate = self.learning_rate * self._factors[name] * scale
        decay = self._decays[name] / scale
        self._kernel(*self._held[name], rate, *self._betas, epsilon, decay, gradient)

    def get_parameters(self) -> Iterator[Parameter]:
        """Return the state."""
        yield self._steps
        for _, mean, square in self._held.values():
            yield from (mean, square)


class LAMB(AdamW):
    """LAMB, written out: MindSpore's own is an "Unsupported op [Lamb] on CPU", and scales all."""

    def __init__(
        self,
        parameters: Parameters,
        decays: Mapping[str, float],
        hyper: Dict[str, Any],
    ) -> None:
        super().__init__(parameters, decays, hyper)
        self._unscaled = left_out(hyper, NO_TRUST_RATIO, parameters)

    def _update(self, name: str, gradient: Tensor, scale: float, epsilon: float) -> None:
        parameter, mean, square = self._held[name]
        beta1, beta2 = self._betas
        ops.assign(mean, mean * beta1 + gradient * (1 - beta1))
        ops.assign(square, square * beta2 + gradient * gradient * (1 - beta2))
        change = mean * scale / (ops.sqrt(square) + epsilon)
        if self._decays[name]:
            change = change + parameter * self._decays[name]
        ratio = 1.0 if name in self._unscaled else _ratio(parameter, change)
        ops.assign_sub(parameter, change * (ratio * self.learning_rate))


class Optimizer:
    """Optimizer of all ``parameters`` by name, in the order in which gradients come."""

    def __init__(self, parameters: Parameters, hyper: Dict[str, Any]) -> None:
        names = list(parameters)
        undecayed = left_out(hyper, NO_DECAY, names)
        decays = {name: 0.0 if name in undecayed else hyper["weight_decay"] for name in names}
        self._order = sorted(range(len(names)), key=lambda at: decays[names[at]] == 0.0)
        ordered = {names[at]: parameters[names[at]] for at in self._order}
        self._limit = hyper.get("clip_global_norm")
        self._made: Any = OPTIMIZERS[hyper["optimizer"]](ordered, decays, hyper)

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


def _momentum(
    parameters: Parameters, decays: Mapping[str, float], hyper: Dict[str, Any]
) -> nn.Momentum:
    """Return an SGD with a group for each decay."""
    groups: List[Dict[str, Any]] = [
        {
            "params": [
                parameter for name, parameter in parameters.items() if decays[name] == decay
            ],
            "weight_decay": decay,
        }
        for decay in dict.fromkeys(decays[name] for name in parameters)
    ]
    return nn.Momentum(groups, hyper["learning_rate"], hyper["momentum"])


def _ratio(parameter: Tensor, change: Tensor) -> float:
    """Return the ratio of the norms of ``parameter`` and ``change``; 1 where either is zero."""
    norms = [float(ops.sqrt((entry * entry).sum())) for entry in (parameter, change)]
    return norms[0] / norms[1] if all(norms) else 1.0


#: Makers of optimizers by the name in the model config.
OPTIMIZERS = {"sgd": _momentum, "adamw": AdamW, "lamb": LAMB}
