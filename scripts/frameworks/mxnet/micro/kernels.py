"""Forward and backward pass of a convolution, as the models here call it. Each run writes to the
arrays of the previous one, so that MXNet's engine runs them in order."""

from __future__ import annotations

from typing import Any, Sequence

import mxnet as mx
from harness.adapter import Unsupported
from harness.operations import ConvolutionShape, ForwardBackward, Operation

from ..devices import DTYPES, name_of

#: Layout of the models' images, by type of device; axes of images and kernels, and back.
_LAYOUTS = {
    "cpu": ("NCHW", (0, 3, 1, 2), (3, 2, 0, 1), (0, 2, 3, 1), (2, 3, 1, 0)),
    "gpu": ("NHWC", (0, 1, 2, 3), (3, 0, 1, 2), (0, 1, 2, 3), (1, 2, 3, 0)),
}


def convolution(
    shape: ConvolutionShape, arrays: Sequence[Any], device: mx.Context, dtype: str
) -> ForwardBackward:
    """Prepare the forward and backward kernels of a convolution; see
    :class:`harness.operations.LayerOperations`."""
    layout, to_images, to_kernel, from_images, from_kernel = _LAYOUTS[device.device_type]
    tensors = [
        mx.nd.array(array.transpose(axes), dtype="float32", ctx=device)
        for array, axes in zip(arrays, (to_images, to_kernel, to_images))
    ]
    if dtype != "float32":
        tensors = [mx.nd.amp_cast(tensor, dtype=DTYPES[dtype]) for tensor in tensors]
    images, kernel, gradient = tensors
    options = {
        "kernel": shape.kernel,
        "stride": (shape.stride, shape.stride),
        "pad": shape.padding,
        "num_filter": shape.filters,
        "num_group": shape.groups,
        "layout": layout,
        "no_bias": True,
    }
    try:
        images.attach_grad()
        kernel.attach_grad()
        with mx.autograd.record():
            kept = mx.nd.Convolution(images, kernel, **options)
        held = mx.nd.Convolution(images, kernel, **options)
        kept.backward(gradient, retain_graph=True)
        kernel.grad.wait_to_read()
    except mx.MXNetError as error:
        if "not implemented" in str(error).lower() or "not supported" in str(error).lower():
            raise Unsupported(
                f"MXNet's Convolution in {dtype}: {str(error).splitlines()[0]}"
            ) from error
        raise

    def result(tensor: Any, axes: Sequence[int]) -> Any:
        return tensor.astype("float32").asnumpy().transpose(axes)

    name = name_of(held.dtype)
    return ForwardBackward(
        Operation(
            lambda: mx.nd.Convolution(images, kernel, out=held, **options),
            lambda: result(held, from_images),
            name,
        ),
        Operation(
            lambda: kept.backward(gradient, retain_graph=True),
            lambda: [result(images.grad, from_images), result(kernel.grad, from_kernel)],
            name,
        ),
    )
