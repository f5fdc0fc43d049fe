"""A model's parameters by the names and in the layouts that all frameworks share; the names are
those of the layers, and dense layers are (in, out) already."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Tuple

import numpy as np
from paddle import Tensor, nn

RUNNING = {"_mean": "running_mean", "_variance": "running_var"}
OUT_IN_HEIGHT_WIDTH = (2, 3, 1, 0)  # the axes that permute it into the shared layout


def trainable(model: nn.Layer) -> List[Tensor]:
    """Paddle's ``parameters()`` holds the running statistics too."""
    return [tensor for tensor in model.parameters() if not tensor.stop_gradient]


def _shared(model: nn.Layer) -> Iterator[Tuple[str, Tensor]]:
    for name, tensor in model.named_parameters():
        layer, _, last = name.rpartition(".")
        yield f"{layer}.{RUNNING[last]}" if last in RUNNING else name, tensor


def _to_shared(array: Any) -> Any:
    return array.transpose(OUT_IN_HEIGHT_WIDTH) if array.ndim == 4 else array


def load(model: nn.Layer, weights: Dict[str, Any]) -> None:
    """Raises KeyError and ValueError where ``weights`` do not fit ``model``."""
    left = set(weights)
    for name, tensor in _shared(model):
        array = weights[name]
        if tensor.ndim == 4:
            array = array.transpose(np.argsort(OUT_IN_HEIGHT_WIDTH))
        if list(array.shape) != list(tensor.shape):
            raise ValueError(f"{name} is {list(tensor.shape)}, not {list(array.shape)}")
        tensor.set_value(np.ascontiguousarray(array))
        left.remove(name)
    if left:
        raise KeyError(f"the model has no {sorted(left)}")


def arrays(model: nn.Layer) -> Dict[str, Any]:
    """Copies of the trainable parameters."""
    return {
        name: _to_shared(tensor.numpy()).copy()
        for name, tensor in _shared(model)
        if not tensor.stop_gradient
    }


def gradients(model: nn.Layer, scale: float) -> Dict[str, Any]:
    """Copies of the gradients that the parameters hold, divided by ``scale``."""
    return {
        name: _to_shared(tensor.grad.numpy()).astype(np.float32) / np.float32(scale)
        for name, tensor in _shared(model)
        if tensor.grad is not None
    }
