"""The arrays of a model, in the layout of the framework and in that which all frameworks share.

Standard library and numpy; Python 3.7 to 3.13.
"""

from __future__ import annotations

from typing import Any, Dict, NamedTuple, Sequence, Tuple

#: The axes that permute an array of a model into the layout that all frameworks share.
Axes = Tuple[int, ...]
SAME: Axes = ()
CONVOLUTION_OIHW: Axes = (2, 3, 1, 0)  # (out, in, height, width) -> (height, width, in, out)
DENSE_OI: Axes = (1, 0)  # (out, in) -> (in, out)
DENSE_CHWO: Axes = (1, 2, 0, 3)  # (channels, height, width, out) -> (height, width, channels, out)


class Variable(NamedTuple):
    """One array of the model: a tensor of the framework, which has a ``shape``, and the ``axes``
    that permute it into the shared layout. Running statistics are not ``trainable``.

    ``unfolded`` is of a dense layer behind images that were flattened with their channels first,
    where the shared layout has them last: the shape of its matrix with channels, height and width
    as axes of their own, which ``axes`` permute.

    ``gates`` is of a recurrent layer whose gates stand side by side in another order on the last
    axis: which of them the input, forget, cell and output gate of the shared layout are."""

    tensor: Any
    axes: Axes = SAME
    trainable: bool = True
    unfolded: Tuple[int, ...] = ()
    gates: Tuple[int, ...] = ()


def state_of_modules(model: Any, dense: type) -> Dict[str, Variable]:
    """:meth:`Adapter.state` of a model whose modules name and lay out their arrays as PyTorch's do;
    ``dense``: the class of its dense layers. One behind flattened images says as ``flattened`` what
    was flattened: (channels, height, width)."""
    layers = model.named_modules()
    matrices = {
        f"{name}.weight": getattr(layer, "flattened", ())
        for name, layer in layers
        if isinstance(layer, dense)
    }

    def variable(name: str, tensor: Any) -> Variable:
        if matrices.get(name):
            unfolded = (tensor.shape[0], *matrices[name])
            return Variable(tensor, CONVOLUTION_OIHW, tensor.requires_grad, unfolded)
        # one of a recurrent layer is named weight_ih_l0 and the like
        dense_or_recurrent = name in matrices or name.rpartition(".")[2].startswith("weight_")
        convolution = tensor.dim() == 4
        axes = DENSE_OI if dense_or_recurrent else CONVOLUTION_OIHW if convolution else SAME
        return Variable(tensor, axes, tensor.requires_grad)

    named = (*model.named_parameters(), *model.named_buffers())
    return {n: variable(n, t) for n, t in named if not n.endswith("num_batches_tracked")}


def shape_of(variable: Variable) -> Tuple[int, ...]:
    """The extents of its tensor."""
    return tuple(int(extent) for extent in variable.tensor.shape)


def in_shared_layout(array: Any, variable: Variable) -> Any:
    """A copy of ``array``, laid out as the tensor of ``variable``, in the shared layout."""
    import numpy as np

    if variable.unfolded:
        unfolded = array.reshape(variable.unfolded).transpose(variable.axes)
        array = unfolded.reshape(-1, unfolded.shape[-1])
    elif variable.axes:
        array = array.transpose(variable.axes)
    return np.array(_ordered(array, variable.gates), np.float32, order="C")


def _ordered(array: Any, gates: Sequence[int]) -> Any:
    """``array`` with the ``gates`` on its last axis in that order."""
    import numpy as np

    if not gates:
        return array
    parts = np.split(array, len(gates), axis=-1)
    return np.concatenate([parts[gate] for gate in gates], axis=-1)


def own_layout(array: Any, variable: Variable) -> Any:
    """What :func:`in_shared_layout` made ``array`` of. Raises ValueError where their shapes do not
    fit."""
    import numpy as np

    if variable.gates:
        array = _ordered(array, [int(gate) for gate in np.argsort(variable.gates)])
    if not variable.axes:
        return array
    if variable.unfolded:
        *inputs, outputs = (variable.unfolded[axis] for axis in variable.axes)
        if array.shape[1:] != (outputs,):
            raise ValueError(f"not {outputs} outputs behind flattened images: {array.shape}")
        array = array.reshape(*inputs, outputs)
    array = array.transpose(np.argsort(variable.axes))
    return array.reshape(shape_of(variable)) if variable.unfolded else array
