"""A model's parameters by the names and in the layouts that all frameworks share; the names are
those of the modules."""

from __future__ import annotations

from typing import Any, Dict, Iterator, Tuple

import torch
from torch import Tensor, nn


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
    with torch.no_grad():
        for name, tensor, axes in _shared(model):
            seen = tensor.permute(axes)
            if seen.shape != weights[name].shape:
                raise ValueError(f"{name} is {tuple(seen.shape)}, not {weights[name].shape}")
            seen.copy_(torch.from_numpy(weights[name]))
            left.remove(name)
    if left:
        raise KeyError(f"the model has no {sorted(left)}")


def arrays(model: nn.Module) -> Dict[str, Any]:
    """Copies of the trainable parameters."""
    return {
        name: tensor.detach().permute(axes).cpu().numpy().copy()
        for name, tensor, axes in _shared(model)
        if tensor.requires_grad
    }


def gradients(model: nn.Module, scale: float) -> Dict[str, Any]:
    """Copies of the gradients that the parameters hold, divided by ``scale``."""
    return {
        name: (tensor.grad.detach().permute(axes).float() / scale).cpu().numpy()
        for name, tensor, axes in _shared(model)
        if tensor.grad is not None
    }
