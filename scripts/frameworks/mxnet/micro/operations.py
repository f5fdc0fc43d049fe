"""Single operations, called imperatively. Each run writes to the array of the previous one, so that
MXNet's engine runs them in order."""

from __future__ import annotations

import math
from typing import Any, Callable, Dict, Sequence

import mxnet as mx
from harness.adapter import Unsupported
from harness.operations import (
    ADD,
    EXP,
    MATMUL,
    MULTIPLY,
    SCALAR,
    SCALE,
    TRIAD,
    Operation,
    Transposed,
)

from ..devices import DTYPES, name_of


def operation(
    name: str, arrays: Sequence[Any], transposed: Transposed, device: mx.Context, dtype: str
) -> Operation:
    """Prepare a single operation; see :class:`harness.operations.SingleOperations`."""
    if not all(array.size for array in arrays):
        raise Unsupported("MXNet has no arrays without an element: 0 stands for an unknown extent")
    tensors = [mx.nd.array(array, dtype="float32", ctx=device) for array in arrays]
    if dtype != "float32":
        tensors = [mx.nd.amp_cast(tensor, dtype=DTYPES[dtype]) for tensor in tensors]
    functions: Dict[str, Callable[..., Any]] = {
        MATMUL: _matmul(tensors, transposed, dtype),
        ADD: mx.nd.elemwise_add,
        MULTIPLY: mx.nd.elemwise_mul,
        EXP: mx.nd.exp,
        SCALE: _scale,
        TRIAD: _triad,
    }
    function = functions[name]
    try:
        held = function(*tensors)
        held[:] = math.nan  # which is seen where nothing is written
        held.wait_to_read()
    except mx.MXNetError as error:
        if "not implemented" in str(error).lower() or "not supported" in str(error).lower():
            raise Unsupported(f"MXNet's {name} in {dtype}: {str(error).splitlines()[0]}") from error
        raise
    return Operation(
        lambda: function(*tensors, out=held),
        lambda: held.astype("float32").asnumpy(),
        name_of(held.dtype),
    )


def _scale(c: mx.nd.NDArray, **out: mx.nd.NDArray) -> mx.nd.NDArray:
    return mx.nd._internal._mul_scalar(c, scalar=SCALAR, **out)


def _triad(b: mx.nd.NDArray, c: mx.nd.NDArray, **out: mx.nd.NDArray) -> mx.nd.NDArray:
    """Return ``b`` plus the scaled ``c``. The sum overwrites an operand, so that the engine starts
    no other operation before."""
    return mx.nd.elemwise_add(b, _scale(c, **out), **out)


def _matmul(tensors: Sequence[Any], transposed: Transposed, dtype: str) -> Callable[..., Any]:
    """Return the operator that has the dtype: `dot` has no bfloat16, FullyConnected takes its
    second operand transposed and knows no batches."""
    first, second = transposed
    if tensors[0].ndim == 3:
        return lambda a, b, **out: mx.nd.batch_dot(
            a, b, transpose_a=first, transpose_b=second, **out
        )
    if dtype == "float32":
        return lambda a, b, **out: mx.nd.dot(a, b, transpose_a=first, transpose_b=second, **out)
    if transposed != (False, True):
        raise Unsupported(
            f"MXNet has one product of two matrices in {dtype}, FullyConnected, whose second "
            "operand lies transposed"
        )
    return lambda a, b, **out: mx.nd.FullyConnected(
        a, b, num_hidden=b.shape[0], no_bias=True, **out
    )
