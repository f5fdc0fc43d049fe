"""Device of a rank, its precision, and the settings of MXNet for both."""

from __future__ import annotations

import functools
import os
from typing import Any, Dict, Sequence, Tuple

import mxnet as mx
import numpy as np
from harness.adapter import RankContext, Unsupported, mixed_dtype, takes_gpu
from mxnet.contrib import amp

BFLOAT16 = np.dtype([("bfloat16", np.uint16)])  # MXNet's own stand-in: numpy has none
DTYPES = {"bfloat16": BFLOAT16, "float16": np.dtype(np.float16)}
#: Shape of both operands with which a matmul operator is tried, and its options.
TRIALS: Dict[str, Tuple[Tuple[int, ...], Dict[str, Any]]] = {
    "Convolution": ((1, 8, 3, 3), {"num_filter": 1, "kernel": (3, 3), "no_bias": True}),
    "FullyConnected": ((8, 8), {"num_hidden": 8, "no_bias": True}),
    "batch_dot": ((1, 8, 8), {}),
}


def put_messages_first() -> None:
    """Make the text of MXNet's errors begin with the message instead of the C++ trace, because a
    record keeps the first line."""

    def text(error: mx.MXNetError) -> str:
        whole = RuntimeError.__str__(error).strip()
        trace, *lines = whole.splitlines() or [""]
        message = next((line for line in lines if not line.startswith("  ")), None)
        if not trace.startswith("Traceback") or message is None:
            return whole
        return message.replace("MXNetError: ", "", 1) + f"\n{whole}"

    mx.MXNetError.__str__ = text


def take(rank_context: RankContext) -> mx.Context:
    """Return the device of ``rank_context``. Raises :class:`Unsupported` where it is not there."""
    name, has_cuda = f"MXNet {mx.__version__}", mx.runtime.Features().is_enabled("CUDA")
    is_gpu = takes_gpu(rank_context, name, has_cuda, mx.context.num_gpus)
    return mx.gpu(rank_context.local_rank) if is_gpu else mx.cpu()


def staged(values: Any, device: mx.Context) -> Any:
    """Return ``values`` for an array of the device that a step may still be reading. Those of numpy
    are copied to a GPU at once, from page-locked memory: MXNet's engine copies while the step
    runs."""
    if device.device_type == "cpu" or isinstance(values, mx.nd.NDArray):
        return values
    pinned = mx.nd.array(values, ctx=mx.cpu_pinned(device.device_id), dtype=values.dtype)
    return pinned.as_in_context(device)


def name_of(dtype: Any) -> str:
    """Return ``float32``, ``float16``, ``bfloat16``, ..: numpy prints MXNet's bfloat16 as
    ``void16``."""
    resolved = np.dtype(dtype)
    return "bfloat16" if resolved == BFLOAT16 else resolved.name


def set_precision(
    precision: str, device: mx.Context, matmuls: Sequence[str]
) -> Tuple[str, Dict[str, str]]:
    """Switch mixed precision on, if requested, for the whole process. Return the dtype of matmuls
    and, for each operator, why it does not run in it, "" for one that does.

    ``matmuls``: names of the operators in the model; those that MXNet lacks in that dtype on
    ``device`` stay in float32.

    Raises :class:`Unsupported` where all of them would stay in float32."""
    if precision == "fp32":
        return "float32", dict.fromkeys(matmuls, "")
    # what MXNet's AMP has for each device: the other one is refused or ignored there
    available = ("bfloat16",) if device.device_type == "cpu" else ("float16",)
    dtype = mixed_dtype(precision, available, f"MXNet on a {device.device_type}")
    reasons = {name: refusal(name, dtype, device) for name in matmuls}
    refused = {name for name, reason in reasons.items() if reason}
    if refused == set(matmuls):
        raise Unsupported(f"MXNet's products on {device.device_type} in {dtype}: {reasons}")
    # MXNet's list leaves batch_dot to the widest of its operands, and a softmax gives float32
    half = {*amp.list_lp16_ops(DTYPES[dtype]), *matmuls} - refused
    single = {*amp.list_fp32_ops(DTYPES[dtype]), *refused}
    amp.init(dtype, target_precision_ops=sorted(half), fp32_ops=sorted(single))
    return dtype, {name: reason and f"{name}: {reason}" for name, reason in reasons.items()}


@functools.lru_cache(maxsize=None)  # AMP, once on, would cast the operands of a second trial
def refusal(operator: str, dtype: str, device: mx.Context) -> str:
    """Return why MXNet cannot compute the matmul ``operator`` in ``dtype`` on ``device``, in its
    own words, by trying; "" where it can."""
    shape, options = TRIALS[operator]
    operand = mx.nd.amp_cast(mx.nd.ones(shape, ctx=device), dtype=DTYPES[dtype])
    try:
        getattr(mx.nd, operator)(operand, operand, **options).wait_to_read()
    except mx.MXNetError as error:
        # The last line of MXNet's traceback, behind the check that failed.
        return str(error).splitlines()[-1].rpartition(": ")[2]
    return ""


def hybridize(mode: str, device: mx.Context, dtype: str) -> Dict[str, Any]:
    """Return the arguments of ``HybridBlock.hybridize``. Its documentation and the performance
    guide recommend static allocation for shapes that never change, the guide to oneDNN its fusion
    of operators, which knows no gradients."""
    options: Dict[str, Any] = {"static_alloc": True, "static_shape": True}
    # under AMP the fused graph is slower, and its outputs are a seventh off those without
    if mode == "inference" and device.device_type == "cpu" and dtype == "float32":
        options["backend"] = "MKLDNN"
    return options


def settings() -> Dict[str, Any]:
    """Return flags and features that act on speed: JSON values, as MXNet reports them."""
    features = mx.runtime.Features()
    return {
        "threads": int(os.environ["OMP_NUM_THREADS"]),
        "engine": os.environ.get("MXNET_ENGINE_TYPE", "ThreadedEnginePerDevice"),
        "engine_threads": int(os.environ.get("MXNET_CPU_WORKER_NTHREADS", "1")),
        "onednn": features.is_enabled("MKLDNN"),
        "cudnn": features.is_enabled("CUDNN"),
    }
