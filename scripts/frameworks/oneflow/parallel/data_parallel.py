"""Several ranks, which OneFlow joined when it was imported."""

from __future__ import annotations

from typing import Dict, List

import oneflow
from harness.adapter import Unsupported
from oneflow import Tensor, nn

DATA_PARALLEL = {
    # running statistics stay each rank's own: a training step does not read them, and the other
    # frameworks do not send them either
    "broadcast_buffers": False,
}


def wrap(model: nn.Module) -> nn.Module:
    """Return ``model`` with its gradients averaged over all ranks during the backward pass."""
    return nn.parallel.DistributedDataParallel(model, **DATA_PARALLEL)


def bucket_bytes(model: nn.Module) -> List[int]:
    """Return the bytes of each bucket that DistributedDataParallel sends, padding included, last
    layers first.

    ``model``: the argument of :func:`wrap`, which keeps the buckets."""
    return [bucket.numel() * bucket.element_size() for bucket in model._bucket_tensors]


def replicate(model: nn.Module, device: oneflow.device) -> nn.Module:
    """Return ``model`` as one of global tensors, whole in every rank: what OneFlow recommends for
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
    """Return the batches of all ranks as one of global tensors, split along the batch."""
    everywhere = oneflow.placement.all(device.type)
    return {
        name: tensor.to_global(placement=everywhere, sbp=oneflow.sbp.split(0))
        for name, tensor in batch.items()
    }


def local(tensor: Tensor) -> Tensor:
    """Return this rank's part of a global tensor, in the same memory; another tensor as it is."""
    return tensor.to_local() if tensor.is_global else tensor
