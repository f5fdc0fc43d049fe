"""Forward pass and gradients: operation by operation, or compiled to one graph each."""

from __future__ import annotations

from typing import Any, Callable, Dict, Sequence

import mindspore
from harness.adapter import Mismatch
from mindspore import Parameter, nn
from mindspore.graph.api import ms_compile_cache


class Programs:
    """Functions of a batch: ``forward``, and ``gradients``, which takes the share of the loss, too,
    and is None without ``parameters``. They are graphs if ``is_compiled``; those that are
    ``uncompiled`` never are."""

    def __init__(
        self,
        definition: Any,
        network: nn.Cell,
        model_config: Dict[str, Any],
        parameters: Sequence[Parameter],
        is_compiled: bool,
    ) -> None:
        # all that losses want of it: a graph takes in no deeper dictionary
        shallow = {"hyperparameters": model_config["hyperparameters"]}

        def forward(batch: Any) -> Any:
            return network(*definition.inputs(batch))

        def losses(batch: Any, share: float) -> Any:
            loss = definition.loss(forward(batch), batch, shallow)
            return loss if share == 1.0 else loss * share

        self.uncompiled_forward: Callable[[Any], Any] = forward
        self.uncompiled_gradients: Any = None
        if parameters:
            self.uncompiled_gradients = mindspore.value_and_grad(
                losses, None, [*parameters], has_aux=False
            )
        self.forward, self.gradients = self.uncompiled_forward, self.uncompiled_gradients
        if is_compiled:
            self.forward = compiled(forward)
            if self.gradients:
                self.gradients = compiled(self.gradients)


def compiled(function: Any) -> Any:
    """Return ``function`` as a graph, which is all of it: with ``fullgraph``, MindSpore raises an
    error where it would leave an operation to Python."""
    return mindspore.jit(function, fullgraph=True)


def proof() -> Dict[str, Any]:
    """Return how many graphs this process has compiled, but for those that ``nn.Momentum`` makes of
    itself.

    Raises :class:`harness.adapter.Mismatch` without any."""
    graphs = [name for name in ms_compile_cache if not name.startswith(nn.Momentum.__module__)]
    if not graphs:
        raise Mismatch("MindSpore's cache of compiled graphs is empty after the warm-up")
    return {"graphs": len(graphs)}
