"""Primitives of the micro-benchmarks: each operation is a run of a separate graph, whose operands
and results are variables on the device."""

from __future__ import annotations

import functools
import itertools
from typing import Any, Callable, List, Sequence, Tuple

import tensorflow as tf
from harness import operations
from harness.adapter import RankContext, Unsupported
from harness.operations import (
    CollectiveOperation,
    ConvolutionShape,
    MatmulCollective,
    Overlapped,
    functions,
)
from harness.primitives import SHARED, Function, LayerFunction, Repeated
from harness.primitives import Primitives as Base

from . import devices, steps

#: Each graph has names and keys of its own: a server keeps a variable by its name, and a
#: collective's shape by its key, whatever graph they are in.
_NUMBERS = itertools.count()


class Primitives(Base):
    """``dtype``: numpy's; ``session_of``: returns a session of a graph."""

    COLLECTIVES = (operations.ALL_REDUCE,)
    LACKING = "TensorFlow 1's strategies only average gradients"
    FUNCTIONS = functions(tf.matmul, tf.add, tf.multiply, tf.exp)

    def __init__(
        self, rank_context: RankContext, dtype: str, session_of: Callable[[tf.Graph], tf.Session]
    ) -> None:
        super().__init__(rank_context, devices.device_name(rank_context), dtype)
        self._session_of = session_of

    def tensor(self, array: Any, dtype: str = "") -> Any:
        return array.astype(dtype or self.dtype)  # loaded into a variable by a graph

    def to_numpy(self, tensor: Any) -> Any:
        return tensor.astype("float32")

    def callables(
        self, make: Callable[..., Sequence[Any]], arrays: Sequence[Any]
    ) -> List[Callable[[], Any]]:
        """Return a callable for each fetch that ``make`` builds from tensors like ``arrays``, which
        are kept on the device."""
        named, graph = {f"operand_{n}": array for n, array in enumerate(arrays)}, tf.Graph()
        with graph.as_default(), tf.device(self.device), tf.name_scope(f"own_{next(_NUMBERS)}"):
            resident = steps.resident(named)
            fetched = make(*[variable.read_value() for variable in resident.values()])
            start = tf.global_variables_initializer()
        session = self._session_of(graph)
        session.run(start)
        steps.load(resident, named, session)
        return [session.make_callable(fetch) for fetch in fetched]

    def all_reduced(self, tensor: tf.Tensor) -> tf.Tensor:
        """Return the sum of a tensor over all ranks, within a graph."""
        key = devices.ALONE_KEY + next(_NUMBERS)
        return devices.all_reduce(tensor, self.rank_context, key, mean=False)

    def repeated(self, function: Function, operands: Sequence[Any]) -> Repeated:
        def make(*tensors: tf.Tensor) -> Sequence[Any]:
            made = function(*tensors)
            if not isinstance(made, list):
                return _kept(made)
            updates, values = zip(*map(_kept, made))
            return [tf.group(*updates), list(values)]

        run, result = self.callables(make, operands)
        run()
        return Repeated(run, result)

    def convolution(self, shape: ConvolutionShape) -> LayerFunction:
        if shape.groups > 1:
            # A backward pass alone would split and pad the images again, as the forward pass did.
            raise Unsupported(
                "TensorFlow 1 has no grouped convolution as one operation with padding"
            )
        rows, columns = shape.padding
        padding = [[0, 0], [rows, rows], [columns, columns], [0, 0]]
        convolve = functools.partial(tf.nn.conv2d, strides=shape.stride, padding=padding)
        return LayerFunction(convolve, SHARED)

    def pullback(
        self, function: Function, operands: Sequence[Any], upstream: Any
    ) -> Tuple[Function, Sequence[Any]]:
        def gradients(images: tf.Tensor, kernel: tf.Tensor, gradient: tf.Tensor) -> List[tf.Tensor]:
            own = [images, kernel]
            pulled: List[tf.Tensor] = tf.gradients(function(*own), own, gradient)
            for tensor, operand in zip(pulled, own):
                tensor.set_shape(operand.shape)  # TensorFlow does not infer the shape of the result
            return pulled

        return gradients, [*operands, upstream]

    def collective(self, operation: str, array: Any, dtype: str) -> CollectiveOperation:
        def make(own: tf.Tensor) -> Sequence[Any]:
            brought = tf.cast(own, dtype)
            held = steps.empty(array.shape, brought.dtype)
            total = self.all_reduced(held.read_value())
            return [
                held.assign(brought, read_value=False), held.assign(total, read_value=False),
                tf.cast(held.read_value(), tf.float32),
            ]  # fmt: skip

        reset, run, result = self.callables(make, [array])
        reset()
        return CollectiveOperation(reset, run, result)

    def sharded_matmul(self, left: Any, right: Any, operation: str) -> MatmulCollective:
        def make(a: tf.Tensor, b: tf.Tensor) -> Sequence[Any]:
            computed = tf.matmul(a, b)
            part, whole = (steps.empty(computed.shape, computed.dtype) for _ in range(2))
            return [
                part.assign(computed, read_value=False),
                whole.assign(self.all_reduced(part.read_value()), read_value=False),
                whole.assign(self.all_reduced(computed), read_value=False),
                tf.cast(whole.read_value(), tf.float32),
            ]

        operands = [self.tensor(left), self.tensor(right)]
        matmul, communicate, both, result = self.callables(make, operands)
        matmul()
        return MatmulCollective(matmul, communicate, both, result, self.dtype)

    def overlapped(self, name: str, arrays: Sequence[Any], count: int, message: Any) -> Overlapped:
        """Prepare computation and all-reduce for one run of a graph, as in a training step."""
        function = self.function(name)

        def make(a: tf.Tensor, b: tf.Tensor, own: tf.Tensor) -> Sequence[Any]:
            # TensorFlow drops unused results, and computes equal independent operations only once.
            computed = function(a, b)
            each = [computed[0, 0]]
            for _ in range(count - 1):
                with tf.control_dependencies([computed]):
                    computed = function(a, b)
                each.append(computed[0, 0])
            update, value = _kept(computed)
            held = steps.empty(message.shape, tf.float32)
            summed = held.assign(self.all_reduced(held.read_value()), read_value=False)
            compute = [update, tf.add_n(each)]
            reset = held.assign(own, read_value=False)
            return [compute, summed, [summed, compute], reset, value, held.read_value()]

        made = self.callables(make, [*map(self.tensor, arrays), message])
        compute, communicate, both, reset, computed, reduced = made
        compute()
        reset()
        return Overlapped(
            compute, communicate, both, reset, lambda: self.to_numpy(computed()), reduced,
            self.dtype,
        )  # fmt: skip


def _kept(tensor: tf.Tensor) -> Tuple[tf.Operation, tf.Tensor]:
    """Return the operation that writes a tensor to a variable, and the variable's value."""
    held = steps.empty(tensor.shape, tensor.dtype)
    return held.assign(tensor, read_value=False), held.read_value()
