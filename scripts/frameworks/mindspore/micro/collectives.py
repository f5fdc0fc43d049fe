"""Collectives of MindSpore's own runtime on CPUs."""

from __future__ import annotations

from typing import Any, Callable, Dict

import numpy as np
from harness.communication import (
    ALL_GATHER,
    ALL_REDUCE,
    BROADCAST,
    CollectiveOperation,
    MatmulCollective,
)
from mindspore import Tensor, ops

FUNCTIONS: Dict[str, Callable[[], Any]] = {
    ALL_REDUCE: ops.AllReduce,
    ALL_GATHER: ops.AllGather,
    BROADCAST: lambda: ops.Broadcast(0),
}


def refusal(operation: str) -> str:
    return f"Unsupported op [{operation}] on CPU"


def collective(operation: str, array: Any) -> CollectiveOperation:
    """Prepare a collective; see :class:`harness.communication.Communication`."""
    contribution = held = Tensor(array)
    communicate = FUNCTIONS[operation]()

    def reset() -> None:
        nonlocal held
        held = contribution + 0

    def run() -> None:
        nonlocal held
        source = held if operation == ALL_REDUCE else contribution
        held = communicate((source,))[0] if operation == BROADCAST else communicate(source)

    return CollectiveOperation(reset, run, lambda: held.asnumpy())


def sharded_matmul(left: Any, right: Any, operation: str, ranks: int) -> MatmulCollective:
    """Prepare a matmul and the collective of its parts; see
    :class:`harness.communication.ShardedMatmuls`."""
    a, b = Tensor(left), Tensor(right)
    communicate = FUNCTIONS[operation]()
    part = whole = ops.matmul(a, b)

    def matmul() -> None:
        nonlocal part
        part = ops.matmul(a, b)

    def collective() -> None:
        nonlocal whole
        whole = communicate(part)

    def both() -> None:
        matmul()
        collective()

    def result() -> Any:
        # the parts of all ranks lie one below the other
        parts = np.split(whole.asnumpy(), ranks if operation == ALL_GATHER else 1)
        return np.concatenate(parts, axis=1)

    return MatmulCollective(matmul, collective, both, result, str(part.dtype).lower())
