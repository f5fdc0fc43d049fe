"""Forward and backward pass of a convolution, as the models here call it."""

from __future__ import annotations

from typing import Any, Sequence

import oneflow
from harness.operations import ConvolutionShape, ForwardBackward, Operation
from oneflow import Tensor
from oneflow.nn import functional as F

from ..devices import channels_last

#: Axes of images and kernels as OneFlow has them, and back.
_FIRST = ((0, 3, 1, 2), (3, 2, 0, 1), (0, 2, 3, 1), (2, 3, 1, 0))
_LAST = ((0, 1, 2, 3), (3, 0, 1, 2), (0, 1, 2, 3), (1, 2, 3, 0))


def convolution(
    shape: ConvolutionShape, arrays: Sequence[Any], device: oneflow.device, dtype: oneflow.dtype
) -> ForwardBackward:
    """Prepare the forward and backward kernels of a convolution; see
    :class:`harness.operations.LayerOperations`."""
    last = channels_last()
    to_images, to_kernel, from_images, from_kernel = _LAST if last else _FIRST
    layouts = (to_images, to_kernel, to_images)
    images, kernel, gradient = (
        oneflow.tensor(array.transpose(axes).copy(), dtype=dtype, device=device)
        for array, axes in zip(arrays, layouts)
    )
    operands = [images.requires_grad_(), kernel.requires_grad_()]

    def convolved() -> Tensor:
        return F.conv2d(
            images,
            kernel,
            stride=shape.stride,
            padding=list(shape.padding),
            groups=shape.groups,
            channel_pos="channels_last" if last else "channels_first",
        )

    def differentiated() -> Any:
        return oneflow.autograd.grad(kept, operands, gradient, retain_graph=True)

    kept = convolved()
    with oneflow.no_grad():
        held = convolved()
    gradients = differentiated()

    def forward() -> None:
        nonlocal held
        with oneflow.no_grad():
            held = convolved()

    def backward() -> None:
        nonlocal gradients
        gradients = differentiated()

    def result(tensor: Tensor, axes: Sequence[int]) -> Any:
        return tensor.float().numpy().transpose(axes)

    name = str(held.dtype).replace("oneflow.", "")
    return ForwardBackward(
        Operation(forward, lambda: result(held, from_images), name),
        Operation(backward, lambda: list(map(result, gradients, (from_images, from_kernel))), name),
    )
