"""Forward and backward pass of a convolution, as the models here call it: each a run of a graph
whose results are written to variables on the device."""

from __future__ import annotations

from typing import Any, Callable, List, Sequence, Tuple

import tensorflow as tf
from harness.adapter import Unsupported
from harness.operations import ConvolutionShape, ForwardBackward, Operation

from .. import variables


def convolution(
    shape: ConvolutionShape,
    arrays: Sequence[Any],
    device: str,
    session_of: Callable[[tf.Graph], tf.Session],
) -> ForwardBackward:
    """Prepare the forward and backward kernels of a convolution; see
    :class:`harness.operations.LayerOperations`. ``arrays`` have the dtype of the operation."""
    if shape.groups > 1:
        # A backward pass alone would cut and pad the images again, which the forward pass did.
        raise Unsupported("TensorFlow 1 has no grouped convolution as one operation with padding")
    named, graph = dict(zip(("images", "kernel", "gradient"), arrays)), tf.Graph()
    rows, columns = shape.padding
    padding = [[0, 0], [rows, rows], [columns, columns], [0, 0]]
    with graph.as_default(), tf.device(device):
        resident = variables.resident(named)
        images, kernel, gradient = (variable.read_value() for variable in resident.values())
        computed = tf.nn.conv2d(images, kernel, strides=shape.stride, padding=padding)
        gradients = tf.gradients(computed, [images, kernel], gradient)
        extents = [shape.images_shape, shape.kernel_shape]
        forward, result = _in_variables([computed], [shape.result_shape])
        backward, gradients_of = _in_variables(gradients, extents)
    session = session_of(graph)
    variables.load(resident, named, session)
    forward, result, backward, gradients_of = map(
        session.make_callable, (forward, result[0], backward, gradients_of)
    )
    forward()
    backward()
    name = computed.dtype.name
    return ForwardBackward(
        Operation(forward, result, name), Operation(backward, gradients_of, name)
    )


def _in_variables(
    tensors: Sequence[tf.Tensor], extents: Sequence[Sequence[int]]
) -> Tuple[tf.Operation, List[tf.Tensor]]:
    """Return the operation that writes ``tensors`` to variables, and the variables' values in
    float32."""
    held = [variables.empty(extent, tensor.dtype) for tensor, extent in zip(tensors, extents)]
    pairs = zip(held, tensors)
    update = tf.group(*[variable.assign(tensor, read_value=False) for variable, tensor in pairs])
    return update, [tf.cast(variable.read_value(), tf.float32) for variable in held]
