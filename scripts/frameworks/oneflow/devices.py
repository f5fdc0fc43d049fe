"""Device of a rank, mixed precision, and data parallelism. OneFlow's mixed precision is tried
before use, because it may silently have no effect. OneFlow joins the ranks when it is imported."""

from __future__ import annotations

import os
import warnings
from typing import Any, Dict

import oneflow
from harness.adapter import RankContext, Unsupported, mixed_dtype, takes_gpu
from oneflow import Tensor, nn, sysconfig

#: The wheels of OneFlow 0.9 have machine code for compute capability 6.0 to 8.6, and no PTX that a
#: driver could compile for newer ones.
BUILT_UP_TO = 8


def channels_last() -> bool:
    """Return whether OneFlow's layers take images as (batch, height, width, channels)."""
    return os.environ["ONEFLOW_ENABLE_NHWC"] == "1"


def take(rank_context: RankContext) -> oneflow.device:
    """Return the device of ``rank_context``. Raises :class:`Unsupported` where it is not there, or
    newer than OneFlow's kernels."""
    oneflow.set_num_threads(rank_context.threads)
    name = f"OneFlow {oneflow.__version__}"
    if not takes_gpu(rank_context, name, sysconfig.with_cuda(), oneflow.cuda.device_count):
        return oneflow.device("cpu")
    oneflow.cuda.set_device(rank_context.local_rank)
    device = oneflow.device("cuda", rank_context.local_rank)
    major, minor = oneflow.cuda.get_device_capability(device)
    if major > BUILT_UP_TO and oneflow.__version__.startswith("0."):
        raise Unsupported(
            f"{name} has kernels for compute capability 6.0 to 8.6; the "
            f"device is {oneflow.cuda.get_device_name(device)}, compute capability {major}.{minor}"
        )
    return device


def copied(array: Any, device: oneflow.device) -> oneflow.Tensor:
    """Return a copy of ``array`` on the device; a tensor is returned as it is. For a GPU it is
    copied from page-locked memory, which OneFlow's virtual machine does in a separate stream while
    the previous step runs."""
    if isinstance(array, oneflow.Tensor):
        return array
    if device.type == "cuda":
        return oneflow.tensor(array.copy()).pin_memory().to(device)
    return oneflow.tensor(array.copy(), device=device)


def amp_dtype(precision: str, device: oneflow.device, graph: bool, train: bool) -> oneflow.dtype:
    """Return the dtype of matmuls in the mixed ``precision``, by default float16. Raises
    :class:`Unsupported` where matmuls stay in float32."""
    name = mixed_dtype(precision, ("float16", "bfloat16"), "OneFlow")
    dtype: oneflow.dtype = getattr(oneflow, name)
    operand = oneflow.ones(4, 4, device=device)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with oneflow.autocast(device.type, dtype=dtype):
            matmul = oneflow.matmul(operand, operand)
    if matmul.dtype == oneflow.float32:
        warned = "; ".join(str(warning.message) for warning in caught)
        raise Unsupported(f"autocast leaves matmuls in float32; OneFlow warns: {warned}")
    if train and not graph and name == "float16" and not hasattr(oneflow.amp.GradScaler, "scale"):
        raise Unsupported("OneFlow's GradScaler, which float16 needs, works in nn.Graph alone")
    return dtype


def replicate(model: nn.Module, device: oneflow.device) -> nn.Module:
    """Return ``model`` with global tensors, whole in every rank, as OneFlow recommends for
    data-parallel graphs. Batch normalisation still takes each rank's own statistics. Raises
    :class:`Unsupported` for a model in training whose backward pass OneFlow does not compile."""
    if model.training and any(isinstance(layer, nn.LSTM) for layer in model.modules()):
        raise Unsupported(
            "nn.Graph does not compile the backward pass of nn.LSTM with global tensors: 'Stack "
            "Grad expects the shape of input tensor is equal to like tensor's'"
        )
    everywhere = oneflow.placement.all(device.type)
    return model.to_global(placement=everywhere, sbp=oneflow.sbp.broadcast)


def join(batch: Dict[str, Tensor], device: oneflow.device) -> Dict[str, Tensor]:
    """Return the batches of all ranks as global tensors, split along the batch axis."""
    everywhere = oneflow.placement.all(device.type)
    return {
        name: tensor.to_global(placement=everywhere, sbp=oneflow.sbp.split(0))
        for name, tensor in batch.items()
    }


def local(tensor: Tensor) -> Tensor:
    """Return this rank's part of a global tensor, in the same memory; other tensors are returned
    unchanged."""
    return tensor.to_local() if tensor.is_global else tensor
