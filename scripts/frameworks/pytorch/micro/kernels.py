"""Forward and backward pass of a convolution and of an attention, as the models here call them."""

from __future__ import annotations

from typing import Any, Callable, Sequence, Tuple

import torch
import torch.nn.functional as F
from harness.operations import AttentionShape, ConvolutionShape, ForwardBackward, Layer, Operation
from torch import Tensor


def passes(
    layer: Layer,
    arrays: Sequence[Any],
    device: torch.device,
    dtype: torch.dtype,
    memory_format: torch.memory_format,
) -> ForwardBackward:
    """Prepare the forward and backward kernels of ``layer``; see
    :class:`harness.operations.LayerOperations`."""
    if isinstance(layer, ConvolutionShape):
        return _convolution(layer, arrays, device, dtype, memory_format)
    return _attention(layer, arrays, device, dtype)


def _convolution(
    shape: ConvolutionShape,
    arrays: Sequence[Any],
    device: torch.device,
    dtype: torch.dtype,
    memory_format: torch.memory_format,
) -> ForwardBackward:
    def moved(array: Any, axes: Tuple[int, ...]) -> Tensor:
        tensor = torch.from_numpy(array).permute(axes).to(device, dtype)
        return tensor.contiguous(memory_format=memory_format)

    images, kernel, gradient = arrays
    to_images, to_kernel = (0, 3, 1, 2), (3, 2, 0, 1)
    return _passes(
        lambda x, weight: F.conv2d(
            x, weight, stride=shape.stride, padding=shape.padding, groups=shape.groups
        ),
        [moved(images, to_images), moved(kernel, to_kernel)],
        moved(gradient, to_images),
        [lambda x: x.permute(0, 2, 3, 1), lambda weight: weight.permute(2, 3, 1, 0)],
    )


def _attention(
    shape: AttentionShape, arrays: Sequence[Any], device: torch.device, dtype: torch.dtype
) -> ForwardBackward:
    *operands, gradient = (torch.from_numpy(array).to(device, dtype) for array in arrays)
    grouped = shape.heads != shape.key_value_heads
    return _passes(
        lambda query, key, value: F.scaled_dot_product_attention(
            query, key, value, is_causal=shape.causal, enable_gqa=grouped
        ),
        operands,
        gradient,
        3 * [lambda tensor: tensor],
    )


def _passes(
    function: Callable[..., Tensor],
    operands: Sequence[Tensor],
    gradient: Tensor,
    shared: Sequence[Callable[[Tensor], Tensor]],
) -> ForwardBackward:
    """Return forward and backward kernels. ``shared``: each operand, or its gradient, in the layout
    of the arrays; the first also the result."""
    for operand in operands:
        operand.requires_grad_()
    kept = function(*operands)
    with torch.no_grad():
        held = function(*operands)
    gradients = torch.autograd.grad(kept, operands, gradient, retain_graph=True)

    def forward() -> None:
        nonlocal held
        with torch.no_grad():
            held = function(*operands)

    def backward() -> None:
        nonlocal gradients
        gradients = torch.autograd.grad(kept, operands, gradient, retain_graph=True)

    def result(layout: Callable[[Tensor], Tensor], tensor: Tensor) -> Any:
        return layout(tensor).float().cpu().numpy()

    dtype = str(held.dtype).replace("torch.", "")
    return ForwardBackward(
        Operation(forward, lambda: result(shared[0], held), dtype),
        Operation(backward, lambda: list(map(result, shared, gradients)), dtype),
    )
