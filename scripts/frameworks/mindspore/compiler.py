"""Forward pass and gradients: operation by operation, or compiled to one graph each."""

from __future__ import annotations

from typing import Any, Callable, Dict, Sequence, Tuple

import mindspore
from harness.adapter import Mismatch
from harness.adapter.layout import INPUTS
from mindspore import Parameter, Tensor, nn
from mindspore.graph.api import ms_compile_cache

#: Module of MindSpore whose functions it compiles as separate graphs.
OF_OPTIMIZERS = "mindspore.nn.optim."


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
