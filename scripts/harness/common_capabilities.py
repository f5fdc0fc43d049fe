"""Capabilities of nearly every framework: micro-benchmarks, and one class with all common
capabilities.

Standard library and numpy; Python 3.7 to 3.13.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

from harness.adapter import (
    AllReduce,
    Capability,
    Collectives,
    Numerics,
    Rounding,
    Unsupported,
)
from harness.batch_input import Checkpointing
from harness.communication import ALL_REDUCE
from harness.primitives import Primitives


class SingleOperations(Capability):
    """The framework runs single operations as its users call them: eagerly, or compiled alone where
    it has nothing else. :meth:`synchronize` waits for the last one."""

    LACKING: ClassVar[str] = "runs no single operations"

    @abstractmethod
    def primitives(self) -> Primitives:
        """Return the framework's primitives, after :meth:`start` and without :meth:`build`."""


class MicroBenchmarks(SingleOperations, Collectives):
    """The framework runs single layers as its models here call them, and the collectives that its
    users call: alone, after a matmul, and next to computation."""

    LACKING: ClassVar[str] = "runs no single layers, and no collective but its gradient all-reduce"

    def prepare_all_reduce(self, array: Any) -> AllReduce:
        made = self.primitives_with(ALL_REDUCE).collective(ALL_REDUCE, array, "float32")
        return AllReduce(made.run, made.result)

    def primitives_with(self, operation: str) -> Primitives:
        """Return the primitives. Raises Unsupported where they lack the collective."""
        primitives = self.primitives()
        if operation not in primitives.COLLECTIVES:
            raise self.no_collective(operation, primitives.LACKING)
        return primitives

    def no_collective(self, operation: str, reason: str) -> Unsupported:
        """Return the error for a missing collective, with the framework's ``reason``."""
        accelerator = self.rank_context.accelerator
        device = "a CPU" if accelerator == "cpu" else accelerator
        return Unsupported(f"{self.case.framework} has no {operation} on {device}: {reason}")


class CommonCapabilities(MicroBenchmarks, Rounding, Numerics, Checkpointing):
    """Several devices, micro-benchmarks, comparison with the reference, and checkpoints."""

    def matmul_result(self, left: Any, right: Any) -> Any:
        return self.primitives().matmul_result(left, right)
