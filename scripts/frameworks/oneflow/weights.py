"""A model's parameters by the names and in the layouts that all frameworks share; the names are
those of the modules."""

from __future__ import annotations

from typing import Any, Dict, Iterator, Sequence, Tuple

import numpy as np
import oneflow
from oneflow import Tensor, nn


def local(tensor: Tensor) -> Tensor:
    """This rank's part of a global tensor, in the same memory; another tensor as it is."""
    return tensor.to_local() if tensor.is_global else tensor


def _shared(model: nn.Module) -> Iterator[Tuple[str, Tensor, Tuple[int, ...]]]:
    """Name, tensor, and the axes that permute it into the shared layout."""
    dense = {f"{n}.weight" for n, module in model.named_modules() if isinstance(module, nn.Linear)}
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        if name.endswith("num_batches_tracked"):
            continue
        if tensor.dim() == 4:  # (out, in, height, width)
            yield name, tensor, (2, 3, 1, 0)
        elif name in dense:  # (out, in)
            yield name, tensor, (1, 0)
        else:
            yield name, tensor, tuple(range(tensor.dim()))


def load(model: nn.Module, weights: Dict[str, Any]) -> None:
    """Raises KeyError and ValueError where ``weights`` do not fit ``model``."""
    left = set(weights)
    with oneflow.no_grad():
        for name, tensor, axes in _shared(model):
            array = weights[name].transpose(np.argsort(axes))
            if tuple(tensor.shape) != array.shape:
                raise ValueError(f"{name} is {tuple(tensor.shape)}, not {array.shape}")
            values = oneflow.tensor(np.ascontiguousarray(array), device=local(tensor).device)
            local(tensor).copy_(values)
            left.remove(name)
    if left:
        raise KeyError(f"the model has no {sorted(left)}")


def arrays(model: nn.Module) -> Dict[str, Any]:
    """Copies of the trainable parameters."""
    return {
        name: _array(tensor, axes) for name, tensor, axes in _shared(model) if tensor.requires_grad
    }


def gradients(model: nn.Module, found: Sequence[Tensor]) -> Dict[str, Any]:
    """Copies of the gradients ``found`` for the trainable parameters, in their order."""
    trainable = [(name, axes) for name, tensor, axes in _shared(model) if tensor.requires_grad]
    return {name: _array(gradient, axes) for (name, axes), gradient in zip(trainable, found)}


def _array(tensor: Tensor, axes: Tuple[int, ...]) -> Any:
    array = local(tensor.detach()).numpy().transpose(axes)
    return np.array(array, dtype=np.float32, order="C")
