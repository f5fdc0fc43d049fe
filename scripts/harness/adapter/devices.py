"""The device of a rank, and the exchange between those of several ranks.

Standard library and numpy; Python 3.7 to 3.13.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Callable, List, NamedTuple, Optional, Sequence

from harness.adapter.base import Capability
from harness.adapter.case import RankContext, Unsupported


class AllReduce(NamedTuple):
    """An all-reduce of one array on the device. ``run`` enqueues it: each rank's array becomes the
    sum over all ranks; run again, the sum of the sums. ``result``: the array now, for numpy."""

    run: Callable[[], Any]
    result: Callable[[], Any]


class Collectives(Capability):
    """Several ranks train together."""

    LACKING = "brings no collectives: one device only"

    @abstractmethod
    def prepare_all_reduce(self, array: Any) -> AllReduce:
        """An all-reduce of a numpy array of float32, one-dimensional, through the collectives
        that the gradients take. Called on several ranks alone, also before :meth:`build`."""

    def gradient_messages(self) -> List[int]:
        """Bytes of each array that an all-reduce of a training step's gradients sends, as the
        framework says after some steps, not as the model config lets expect. Raises
        :class:`Unsupported` where it does not tell."""
        raise Unsupported(f"{self.case.framework} does not tell in which messages gradients go")

    def gradient_all_reduce(self, messages: Sequence[int]) -> Callable[[], Any]:
        """A function that enqueues all-reduces of ``messages``, as :meth:`gradient_messages` has
        them, of zeros: the sums of sums of anything else grow. By default one behind the other, of
        one array for each size; a framework whose step enqueues them together does so here."""
        all_reduces = {size: self.prepare_all_reduce(zeros(size)) for size in set(messages)}

        def run() -> None:
            for size in messages:
                all_reduces[size].run()

        return run

    def all_reduce(self, value: float) -> float:
        if self.rank_context.world_size == 1:
            return value
        import numpy as np

        array_sum = self.prepare_all_reduce(np.array([value], np.float32))
        array_sum.run()
        return float(array_sum.result()[0])


def require_tf32(capability: Optional[Sequence[int]], device: str) -> None:
    """Raises :class:`Unsupported` where the ``device`` has no TF32. ``capability``: the compute
    capability of NVIDIA's GPUs, as (major, minor); None of another device."""
    if capability is None or tuple(capability) < (8, 0):
        version = "" if capability is None else ", compute capability %d.%d" % tuple(capability)
        raise Unsupported(
            "TF32 is in NVIDIA's GPUs of compute capability 8.0 and later; the device is "
            f"{device}{version}"
        )


def require_visible(framework: str, devices: int, rank_context: RankContext) -> None:
    """Raises :class:`Unsupported` where the framework sees so few ``devices`` of the accelerator
    that there is none for ``rank_context``."""
    if rank_context.local_rank >= devices:
        seen = f"{framework} sees {devices} {rank_context.accelerator.upper()} devices"
        raise Unsupported(f"{seen}, too few for local rank {rank_context.local_rank}")


def zeros(size: int) -> Any:
    """A numpy array of float32 with ``size`` bytes, rounded up."""
    import numpy as np

    return np.zeros(-(-size // 4), np.float32)
