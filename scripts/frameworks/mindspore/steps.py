"""Forward pass and gradients, operation by operation or compiled to one graph each; the dtypes of
their matmuls and convolutions, observed where PyNative dispatches them; and optimizers.

SGD with momentum adds weight decay to the gradient, AdamW decays weights separately (Loshchilov and
Hutter, arXiv:1711.05101)."""

from __future__ import annotations

from collections import Counter
from typing import Any, Callable, Dict, Iterator, Mapping, Sequence, Tuple

import mindspore
import numpy as np
from harness.adapter import Mismatch, Unsupported
from harness.adapter.layout import INPUTS
from harness.optimizers import groups_by_decay, update_rules
from mindspore import MsDispatchMode, Parameter, Tensor, bfloat16, nn, ops
from mindspore.graph.api import ms_compile_cache

#: Module of MindSpore whose functions it compiles as separate graphs.
OF_OPTIMIZERS = "mindspore.nn.optim."
#: Operators of the forward pass that multiply.
MATMULS = ("MatMul", "BatchMatMul", "MatMulExt", "BatchMatMulExt", "Dense", "Conv2D", "LSTM")
Parameters = Mapping[str, Parameter]


class Programs:
    """Forward pass, and loss with gradients, of a model as functions of a batch; compiled to graphs
    if ``is_compiled``.

    ``gradients`` also takes the factor of the loss, and is None without ``parameters``.
    ``uncompiled_forward`` is never compiled."""

    def __init__(
        self,
        definition: Any,
        network: nn.Cell,
        parameters: Sequence[Parameter],
        is_compiled: bool,
    ) -> None:
        hyper, loss_of = definition.hyper, definition.loss  # a graph can contain functions only

        def forward(batch: Any) -> Any:
            return network(*[batch[name] for name in INPUTS if name in batch])

        def losses(batch: Any, share: float) -> Any:
            loss = loss_of(forward(batch), batch, hyper)
            return loss if share == 1.0 else loss * share

        self.uncompiled_forward: Callable[[Any], Any] = forward
        self.forward: Callable[[Any], Any] = forward
        self.gradients: Any = None
        if parameters:
            self.gradients = mindspore.value_and_grad(losses, None, [*parameters], has_aux=False)
        if is_compiled:
            self.forward = compiled(forward)
            if self.gradients:
                self.gradients = compiled(self.gradients)

    def differentiate(self, batches: Sequence[Any]) -> Tuple[Tensor, Sequence[Tensor]]:
        """Return the mean loss and the mean gradients of micro-batches."""
        share = 1.0 / len(batches)
        total, sums = self.gradients(batches[0], share)
        for batch in batches[1:]:
            loss, gradients = self.gradients(batch, share)
            total, sums = total + loss, [own + other for own, other in zip(sums, gradients)]
        return total, sums


def compiled(function: Any) -> Any:
    """Return ``function`` as a single graph: with ``fullgraph``, MindSpore raises an error where it
    would leave an operation to Python."""
    return mindspore.jit(function, fullgraph=True)


def proof() -> Dict[str, Any]:
    """Return how many graphs this process has compiled, without those that MindSpore's optimizers
    compile for themselves.

    Raises :class:`harness.adapter.Mismatch` if there are none."""
    graphs = [name for name in ms_compile_cache if not name.startswith(OF_OPTIMIZERS)]
    if not graphs:
        raise Mismatch("MindSpore's cache of compiled graphs is empty after the warm-up")
    return {"graphs": len(graphs)}


def refuse_halves() -> None:
    """Raise :class:`Unsupported`, with MindSpore's message if a bfloat16 matmul fails.

    Float16 matmuls run, but convert to float32 and back: there are no float16 kernels."""
    half = Tensor(np.ones((2, 2), np.float32)).astype(bfloat16)
    try:
        ops.matmul(half, half).asnumpy()
    except (TypeError, RuntimeError) as error:
        text = " ".join(str(error).split())
        raise Unsupported(f"bfloat16: {text.partition(' The supported')[0]}") from error
    raise Unsupported("this adapter has no mixed precision, though MindSpore multiplies bfloat16")


class Watch(MsDispatchMode):
    """Counts of the matmuls that PyNative dispatches in its context, by the dtype of their
    operands."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Dict[str, int] = Counter()

    def __ms_dispatch__(self, func: Any, args: Any, kwargs: Any = None) -> Any:
        if func.name in MATMULS:
            # for an operator that is an object, object and name precede the operands
            operands = args[2] if len(args) == 3 and isinstance(args[1], str) else args
            self.counts[str(operands[0].dtype).lower()] += 1
        return func(*args, **(kwargs or {}))


def count_matmuls(network: nn.Cell, forward: Callable[[], Any]) -> Dict[str, int]:
    """Count the matmuls of one ``forward()``. Running statistics are left as they were."""
    statistics = [p for p in network.get_parameters() if not p.requires_grad]
    before = [statistic.asnumpy().copy() for statistic in statistics]
    with Watch() as watch:
        forward()
    for statistic, array in zip(statistics, before):
        ops.assign(statistic, Tensor(array))
    return dict(watch.counts)


class AdamW:
    """AdamW by MindSpore's fused kernel, which does not correct biases: rate, epsilon and decay are
    adjusted for the correction (Kingma and Ba, arXiv:1412.6980, end of section 2)."""

    def __init__(self, parameters: Parameters, hyper: Dict[str, Any]) -> None:
        self.learning_rate = hyper["learning_rate"]
        self._betas, self._epsilon = (hyper["beta1"], hyper["beta2"]), hyper["epsilon"]
        self._limit, self._rules = hyper.get("clip_global_norm"), update_rules(parameters, hyper)
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
        if self._limit is not None:
            gradients = ops.clip_by_global_norm(tuple(gradients), self._limit)
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


def optimizer_of(parameters: Parameters, hyper: Dict[str, Any]) -> Any:
    """Return a function that updates ``parameters`` by gradients in their order. It has
    ``get_parameters``, which returns its state; this may include the parameters that it updates."""
    if hyper["optimizer"] == "adamw":
        return AdamW(parameters, hyper)
    # one group per weight decay, and all parameters in their order
    groups = [*groups_by_decay(parameters, hyper), {"order_params": [*parameters.values()]}]
    return nn.Momentum(groups, hyper["learning_rate"], hyper["momentum"])
