"""A model's parameters by the names and in the layouts that all frameworks share; the names are
those of the blocks' attributes."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Tuple

import mxnet as mx
from mxnet.gluon import Parameter, nn

ENDINGS = {"gamma": "weight", "beta": "bias"}  # of normalisations


def _blocks(block: Any, prefix: str = "") -> Iterator[Tuple[str, Any]]:
    yield prefix, block
    for name, child in block._children.items():
        yield from _blocks(child, f"{prefix}{name}.")


def _shared(model: Any) -> List[Tuple[str, Parameter, Tuple[int, ...]]]:
    """Name, parameter, and the axes that permute it into the shared layout."""
    found = {}
    for prefix, block in _blocks(model):
        for own, parameter in block._reg_params.items():
            axes = tuple(range(len(parameter.shape)))
            if len(axes) == 4:  # (out, in, height, width)
                axes = (2, 3, 1, 0)
            elif isinstance(block, nn.Dense) and own == "weight":  # (out, in)
                axes = (1, 0)
            # one that is shared has the name of the block that made it, which comes later
            found[parameter] = (prefix + ENDINGS.get(own, own), parameter, axes)
    return list(found.values())


def load(model: Any, weights: Dict[str, Any]) -> None:
    """Raises KeyError and ValueError where ``weights`` do not fit ``model``."""
    left = set(weights)
    for name, parameter, axes in _shared(model):
        shape = tuple(parameter.shape[axis] for axis in axes)
        if shape != weights[name].shape:
            raise ValueError(f"{name} is {shape}, not {weights[name].shape}")
        back = sorted(range(len(axes)), key=axes.__getitem__)
        parameter.set_data(mx.nd.array(weights[name].transpose(back), dtype="float32"))
        left.remove(name)
    if left:
        raise KeyError(f"the model has no {sorted(left)}")


def arrays(model: Any) -> Dict[str, Any]:
    """Copies of the trainable parameters."""
    return {
        name: parameter.data().asnumpy().transpose(axes).copy()
        for name, parameter, axes in _shared(model)
        if parameter.grad_req != "null"
    }


def gradients(model: Any, scale: float) -> Dict[str, Any]:
    """Copies of the gradients that the parameters hold, times ``scale``."""
    return {
        name: parameter.grad().asnumpy().transpose(axes) * scale
        for name, parameter, axes in _shared(model)
        if parameter.grad_req != "null"
    }
