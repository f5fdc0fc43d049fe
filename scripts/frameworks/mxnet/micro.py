"""Primitives of the micro-benchmarks: single operations, called imperatively, convolutions as the
models call them, and all-reduces by the parameter server. Each run writes to the array of the
previous one, so that MXNet's engine runs them in order."""

from __future__ import annotations

import math
from typing import Any, Dict, List, Sequence, Tuple

import mxnet as mx
from harness import operations
from harness.adapter import RankContext, Unsupported
from harness.operations import CollectiveOperation, ConvolutionShape, MatmulCollective, Operation
from harness.primitives import CHANNELS_FIRST, CHANNELS_LAST, Function, LayerFunction, Repeated
from harness.primitives import Primitives as Base

from .devices import DTYPES, name_of


class Primitives(Base):
    """``group``: the process group, None for a single rank."""

    COLLECTIVES = (operations.ALL_REDUCE,)
    LACKING = "MXNet's kvstore only adds up arrays"

    def __init__(
        self, rank_context: RankContext, device: mx.Context, dtype: str, group: Any
    ) -> None:
        super().__init__(rank_context, device, dtype)
        self._group = group

    def tensor(self, array: Any, dtype: str = "") -> mx.nd.NDArray:
        if not array.size:
            raise Unsupported("MXNet has no arrays without elements: 0 means an unknown extent")
        made, kind = mx.nd.array(array, dtype="float32", ctx=self.device), dtype or self.dtype
        return made if kind == "float32" else mx.nd.amp_cast(made, dtype=DTYPES[kind])

    def to_numpy(self, tensor: mx.nd.NDArray) -> Any:
        return tensor.astype("float32").asnumpy()

    def name_of(self, tensor: mx.nd.NDArray) -> str:
        return name_of(tensor.dtype)

    def function(self, name: str) -> Function:
        def matmul(a: Any, b: Any, **out: Any) -> Any:
            if a.ndim == 3:
                return mx.nd.batch_dot(a, b, **out)
            if self.dtype != "float32":
                raise Unsupported(
                    f"MXNet's only matmul in {self.dtype} is FullyConnected, whose second operand "
                    "is transposed"
                )
            return mx.nd.dot(a, b, **out)

        def scale(c: Any, **out: Any) -> Any:
            return mx.nd._internal._mul_scalar(c, scalar=operations.SCALAR, **out)

        functions: Dict[str, Function] = {
            operations.MATMUL: matmul,
            operations.ADD: mx.nd.elemwise_add,
            operations.MULTIPLY: mx.nd.elemwise_mul,
            operations.EXP: mx.nd.exp,
            operations.SCALE: scale,
            # the sum overwrites an operand, so that the engine starts the next operation after it
            operations.TRIAD: lambda b, c, **out: mx.nd.elemwise_add(b, scale(c, **out), **out),
        }
        return functions[name]

    def repeated(self, function: Function, operands: Sequence[Any]) -> Repeated:
        try:
            held = function(*operands)
            for array in held if isinstance(held, list) else [held]:
                array.wait_to_read()
        except mx.MXNetError as error:
            if "not implemented" in str(error).lower() or "not supported" in str(error).lower():
                raise Unsupported(f"MXNet in {self.dtype}: {str(error).splitlines()[0]}") from error
            raise
        return Repeated(lambda: function(*operands, out=held), lambda: held)

    def in_place(self, function: Function, operands: Sequence[Any]) -> Repeated:
        made = self.repeated(function, operands)
        if self.dtype == "float32":  # MXNet cannot fill half-precision arrays
            made.held()[:] = math.nan  # elements that are never written stay NaN
        return made

    def layer_matmul(self, left: Any, right: Any) -> Operation:
        """Prepare a dense layer's operator, which has bfloat16, unlike ``dot``; its second operand
        is transposed."""

        def dense(a: Any, b: Any, **out: Any) -> Any:
            return mx.nd.FullyConnected(a, b, num_hidden=right.shape[1], no_bias=True, **out)

        return self.prepared(dense, [left, right.T])

    def convolution(self, shape: ConvolutionShape) -> LayerFunction:
        on_cpu = self.device.device_type == "cpu"
        options = {
            "kernel": shape.kernel,
            "stride": (shape.stride, shape.stride),
            "pad": shape.padding,
            "num_filter": shape.filters,
            "num_group": shape.groups,
            "layout": "NCHW" if on_cpu else "NHWC",
            "no_bias": True,
        }
        return LayerFunction(
            lambda images, kernel, **out: mx.nd.Convolution(images, kernel, **options, **out),
            CHANNELS_FIRST if on_cpu else CHANNELS_LAST,
        )

    def pullback(
        self, function: Function, operands: Sequence[Any], upstream: Any
    ) -> Tuple[Function, Sequence[Any]]:
        for operand in operands:
            operand.attach_grad()
        with mx.autograd.record():
            kept = function(*operands)

        def pull(**out: Any) -> List[Any]:
            kept.backward(upstream, retain_graph=True)  # each call writes to the same arrays
            return [operand.grad for operand in operands]

        return pull, ()

    def _all_reduce(self, held: Any) -> Tuple[Any, Any]:
        if self.name_of(held) != "float32":
            raise Unsupported("MXNet's parameter server does not add half-precision arrays")
        run, result = self._group.all_reduce_of(held)
        return run, result

    def collective(self, operation: str, array: Any, dtype: str) -> CollectiveOperation:
        contribution, held = (self.tensor(array, dtype) for _ in range(2))
        run, result = self._all_reduce(held)
        return CollectiveOperation(lambda: contribution.copyto(held), run, result)

    def sharded_matmul(self, left: Any, right: Any, operation: str) -> MatmulCollective:
        made = self.repeated(
            self.function(operations.MATMUL), [self.tensor(left), self.tensor(right)]
        )
        communicate, result = self._all_reduce(made.held())

        def both() -> None:
            made.run()
            communicate()

        return MatmulCollective(made.run, communicate, both, result, "float32")
