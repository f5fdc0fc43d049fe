"""Device of a rank, and all-reduces between several ranks."""

from __future__ import annotations

import re
import socket
from abc import abstractmethod
from typing import Any, Callable, List, NamedTuple, Optional, Sequence

from core import gpus, precisions

from harness.adapter.base import Capability, Mismatch, RankContext, Unsupported

HALVES = frozenset(("bfloat16", "float16"))

#: Parts of error messages about a working driver that is older than the framework needs.
_OLD_DRIVER = re.compile(r"driver .*too old|driver .*insufficient|the driver supports CUDA")


class AllReduce(NamedTuple):
    """All-reduce of one array on the device.

    ``run`` enqueues it and replaces each rank's array by the sum over all ranks, so repeated runs
    sum up sums. ``result`` returns the current array for numpy."""

    run: Callable[[], Any]
    result: Callable[[], Any]


class Collectives(Capability):
    """Several ranks can train together."""

    LACKING = "has no collectives: one device only"

    @abstractmethod
    def prepare_all_reduce(self, array: Any) -> AllReduce:
        """Prepare an all-reduce of a one-dimensional float32 numpy array, through the collectives
        of gradients.

        Called on several ranks only, also before :meth:`build`."""

    def gradient_messages(self) -> List[int]:
        """Return the bytes of each array in the gradient all-reduce of a training step.

        The framework reports them after some steps; they are not derived from the model config.
        Raises :class:`Unsupported` where it does not report them."""
        raise Unsupported(f"{self.case.framework} does not report the messages of its gradients")

    def gradient_all_reduce(self, messages: Sequence[int]) -> Callable[[], Any]:
        """Return a function that enqueues all-reduces of zeros, in the sizes of
        :meth:`gradient_messages`.

        Zeros, because repeated sums of anything else grow. By default they are enqueued one after
        the other, with one array for each size; frameworks whose step enqueues them together
        override this."""
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


def takes_gpu(
    rank_context: RankContext, framework: str, has_cuda: bool, count: Callable[[], int]
) -> bool:
    """Return whether this rank computes on a GPU.

    ``framework``: its name and version; ``has_cuda``: whether its build has CUDA; ``count``:
    returns how many GPUs it sees. Raises :class:`Unsupported` for a build without CUDA, and the
    error of :func:`no_device` where it sees too few, with the driver's reason where it sees
    none."""
    if rank_context.accelerator == "cpu":
        return False
    if not has_cuda:
        raise Unsupported(f"{framework} is a build without CUDA")
    seen = count()
    if rank_context.local_rank >= seen:
        why = "" if seen else f": {driver_reason()}"
        raise no_device(
            f"{framework} sees {seen} CUDA devices, too few for local rank "
            f"{rank_context.local_rank}{why}"
        )
    return True


def no_device(reason: str) -> Exception:
    """Return the error of a rank that cannot have its device: :class:`Unsupported` where the
    framework needs a newer driver, else :class:`Mismatch`, because the machine is at fault."""
    if _OLD_DRIVER.search(reason):
        return Unsupported(reason)
    return Mismatch("; ".join(filter(None, [_unresolved_host(), reason])))


def _unresolved_host() -> str:
    """Return a message with a remedy if this machine's host name does not resolve, else ""."""
    name = socket.gethostname()
    try:
        socket.getaddrinfo(name, None)
    except OSError as error:
        remedy = f"a line '127.0.1.1 {name}' in /etc/hosts"
        return f"host name {name}: does not resolve ({error}); allowed: {remedy}"
    return ""


def require_tf32(capability: Optional[Sequence[int]] = None, device: str = "a CPU") -> None:
    """Raise :class:`Unsupported` where the ``device`` has no TF32.

    ``capability``: compute capability of an NVIDIA GPU, (major, minor); None for other devices."""
    if capability is None or tuple(capability) < (8, 0):
        version = "" if capability is None else ", compute capability %d.%d" % tuple(capability)
        raise Unsupported(
            "TF32 is in NVIDIA's GPUs of compute capability 8.0 and later; the device is "
            f"{device}{version}"
        )


def is_mixed(precision: str) -> bool:
    """Return whether matmuls are in a half precision and parameters in float32."""
    known = precisions.known().get(precision)
    return bool(known and known.storage == "float32" and {*known.dtypes} <= HALVES)


def matmul_dtype(precision: str, has_bfloat16: bool, where: str) -> str:
    """Return the dtype of matmuls in ``precision``: in mixed precision bfloat16, which needs no
    loss scale, wherever the device has it. Raises :class:`Unsupported` where it lacks the requested
    dtype."""
    if precision in ("fp32", "tf32"):
        return "float32"
    return mixed_dtype(precision, ("bfloat16", "float16") if has_bfloat16 else ("float16",), where)


def mixed_dtype(precision: str, available: Sequence[str], where: str) -> str:
    """Return the first of the ``available`` dtypes in which the mixed ``precision`` may compute.

    ``available``: dtypes of the framework, its default first; ``where``: words for framework and
    device. Raises :class:`Unsupported` where it has none."""
    dtypes = precisions.known()[precision].dtypes
    for dtype in available:
        if dtype in dtypes:
            return dtype
    raise Unsupported(
        f"mixed precision of {where} is in {' or '.join(available)}, not in {' or '.join(dtypes)}"
    )


def driver_reason() -> str:
    """Return the driver's error or, without an error, the CUDA version that the driver supports."""
    try:
        number, words = gpus.start_cuda()
    except OSError as error:
        return str(error)
    return f"cuInit: {words or number}" if number else f"the driver supports CUDA {words}"


def zeros(size: int) -> Any:
    """Return a float32 numpy array of at least ``size`` bytes."""
    import numpy as np

    return np.zeros(-(-size // 4), np.float32)
