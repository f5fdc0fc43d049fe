"""Arrays of a model, in the layout of the framework and in the layout that all frameworks share."""

from __future__ import annotations

from typing import Any, Dict, NamedTuple, Sequence, Tuple

#: Axes that permute an array of a model into the layout that all frameworks share.
Axes = Tuple[int, ...]
SAME: Axes = ()
CONVOLUTION_OIHW: Axes = (2, 3, 1, 0)  # (out, in, height, width) -> (height, width, in, out)
CONVOLUTION_OHWI: Axes = (1, 2, 3, 0)  # (out, height, width, in) -> (height, width, in, out)
DENSE_OI: Axes = (1, 0)  # (out, in) -> (in, out)
DENSE_CHWO: Axes = (1, 2, 0, 3)  # (channels, height, width, out) -> (height, width, channels, out)
#: Arrays of a batch that models take as inputs, in this order; all others are targets.
INPUTS = (
    *("images", "features", "token_ids", "segment_ids", "attention_mask", "masked_positions"),
    *("mask_draws", "sampling_draws"),
)


class Variable(NamedTuple):
    """Array of a model: a tensor of the framework with a ``shape``, and the ``axes`` that permute
    it into the shared layout.

    Running statistics are not ``trainable``.

    ``unfolded``: for a dense layer after images that were flattened channels first, where the
    shared layout is channels last. It is the shape of the matrix with channels, height and width as
    separate axes, which ``axes`` permute.

    ``merged``: shape to which a tensor is reshaped before it is permuted, without further axes of
    the framework, such as an axis of groups or axes of one element.

    ``heads``: for a projection with sharded heads: the position on the last axis of each head of
    the shared layout."""

    tensor: Any
    axes: Axes = SAME
    trainable: bool = True
    unfolded: Tuple[int, ...] = ()
    merged: Tuple[int, ...] = ()
    heads: Tuple[int, ...] = ()


def variable_of(
    tensor: Any,
    trainable: bool,
    is_matrix: bool,
    layer: Any = None,
    kernels: Axes = CONVOLUTION_OIHW,
) -> Variable:
    """Return an array of a framework whose dense and recurrent layers are (out, in), which
    ``is_matrix`` states. ``kernels``: axes of its convolutions. A dense ``layer`` after flattened
    images has the attribute ``flattened``: (channels, height, width)."""
    flattened = getattr(layer, "flattened", ())
    if is_matrix and flattened:
        return Variable(tensor, CONVOLUTION_OIHW, trainable, (tensor.shape[0], *flattened))
    axes = DENSE_OI if is_matrix else kernels if len(tensor.shape) == 4 else SAME
    return Variable(tensor, axes, trainable)


def state_of_modules(
    model: Any, dense: type, kernels: Axes = CONVOLUTION_OIHW
) -> Dict[str, Variable]:
    """Return :meth:`Adapter.state` of a model whose modules are named and laid out as PyTorch's.

    ``dense``: class of its dense layers; ``kernels``: axes of convolutions."""
    layers = {
        f"{n}.weight": layer for n, layer in model.named_modules() if isinstance(layer, dense)
    }

    def variable(name: str, tensor: Any) -> Variable:
        # matrices of recurrent layers have names such as weight_ih_l0
        is_matrix = name in layers or name.rpartition(".")[2].startswith("weight_")
        return variable_of(tensor, tensor.requires_grad, is_matrix, layers.get(name), kernels)

    named = (*model.named_parameters(), *model.named_buffers())
    return {n: variable(n, t) for n, t in named if not n.endswith("num_batches_tracked")}


def shape_of(variable: Variable) -> Tuple[int, ...]:
    return tuple(int(extent) for extent in variable.tensor.shape)


def in_shared_layout(array: Any, variable: Variable) -> Any:
    """Return a float32 copy of ``array``, laid out as the tensor of ``variable``, in the shared
    layout."""
    import numpy as np

    array = array.reshape(variable.merged or array.shape)
    if variable.unfolded:
        unfolded = array.reshape(variable.unfolded).transpose(variable.axes)
        array = unfolded.reshape(-1, unfolded.shape[-1])
    elif variable.axes:
        array = array.transpose(variable.axes)
    return np.array(_ordered(array, variable.heads), np.float32, order="C")


def _ordered(array: Any, order: Sequence[int]) -> Any:
    """Return ``array`` with the parts of its last axis in the given ``order``."""
    import numpy as np

    if not order:
        return array
    parts = np.split(array, len(order), axis=-1)
    return np.concatenate([parts[number] for number in order], axis=-1)


def own_layout(array: Any, variable: Variable) -> Any:
    """Undo :func:`in_shared_layout`. Raises ValueError where the shapes do not fit."""
    import numpy as np

    array = _ordered(array, np.argsort(variable.heads).tolist())
    if variable.unfolded:
        *inputs, outputs = (variable.unfolded[axis] for axis in variable.axes)
        if array.shape[1:] != (outputs,):
            raise ValueError(f"not {outputs} outputs after flattened images: {array.shape}")
        array = array.reshape(*inputs, outputs)
    if variable.axes:
        array = array.transpose(np.argsort(variable.axes))
    if variable.merged and array.shape != variable.merged:
        raise ValueError(f"{array.shape}, not {variable.merged}")
    reshaped = variable.unfolded or variable.merged
    return array.reshape(shape_of(variable)) if reshaped else array
