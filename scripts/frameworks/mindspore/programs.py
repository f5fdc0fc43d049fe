"""Forward pass and gradients: operation by operation, or compiled to one graph each."""

from __future__ import annotations

from typing import Any, Callable, Dict, Sequence

import mindspore
from harness.adapter import Mismatch
from mindspore import Parameter, nn
from mindspore.graph.api import ms_compile_cache


class Programs:
    """Functions of a batch. ``forward`` and ``gradients``, without ``parameters`` None, are graphs
    if ``is_compiled``; ``uncompiled_forward`` never is one.

    A graph is all of its function: with ``fullgraph``, MindSpore raises an error where it would
    leave an operation to Python."""

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

        def losses(batch: Any) -> Any:
            return definition.loss(forward(batch), batch, shallow)

        self.uncompiled_forward: Callable[[Any], Any] = forward
        self.forward = self.uncompiled_forward
        self.gradients: Any = None
        if parameters:
            self.gradients = mindspore.value_and_grad(losses, None, [*parameters], has_aux=False)
        if is_compiled:
            self.forward = mindspore.jit(forward, fullgraph=True)
            if self.gradients:
                self.gradients = mindspore.jit(self.gradients, fullgraph=True)


def proof() -> Dict[str, Any]:
    """Return how many graphs this process has compiled.

    Raises :class:`harness.adapter.Mismatch` without any."""
    if not ms_compile_cache:
        raise Mismatch("MindSpore's cache of compiled graphs is empty after the warm-up")
    return {"graphs": len(ms_compile_cache)}
