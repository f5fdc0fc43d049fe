"""Micro-benchmarks, written once over the primitives of a framework: the class ``Primitives`` of
the module ``micro`` in its folder, derived from :class:`Primitives` for single operations and
layers alone, or from the class below that fits its collectives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Callable, ClassVar, List, Mapping, NamedTuple, Sequence, Tuple

from harness.adapter import RankContext, Unsupported
from harness.operations import (
    ALL_COLLECTIVES,
    ALL_GATHER,
    ALL_REDUCE,
    BROADCAST,
    MATMUL,
    REDUCE,
    REDUCE_SCATTER,
    AttentionShape,
    CollectiveOperation,
    ConvolutionShape,
    ForwardBackward,
    Layer,
    MatmulCollective,
    Operation,
    Overlapped,
    side_by_side,
)

Function = Callable[..., Any]
#: Axes of images and kernels of a convolution in a framework's layout.
CHANNELS_FIRST = ((0, 3, 1, 2), (3, 2, 0, 1))  # (batch, channels, height, width), OIHW
CHANNELS_LAST = ((0, 1, 2, 3), (3, 0, 1, 2))  # (batch, height, width, channels), OHWI
SHARED = ((0, 1, 2, 3), (0, 1, 2, 3))  # (batch, height, width, channels), HWIO
#: Axes of query, key and value as (batch, heads, sequence, size) or (batch, sequence, heads, size).
HEADS_FIRST, SEQUENCE_FIRST = 3 * ((0, 1, 2, 3),), 3 * ((0, 2, 1, 3),)


def _same(tensor: Any) -> Any:
    return tensor


class Repeated(NamedTuple):
    """Prepared function of tensors. ``run`` enqueues it once more; each run starts after the
    previous one is complete. ``held`` returns the last result."""

    run: Callable[[], Any]
    held: Callable[[], Any]


class LayerFunction(NamedTuple):
    """Layer as the framework's models call it.

    ``axes`` permute each operand into the framework's layout; the result has the first operand's
    layout. ``place`` puts an operand, or the result's gradient, into its memory format."""

    function: Function
    axes: Sequence[Tuple[int, ...]]
    place: Callable[[Any], Any] = _same


class Primitives(ABC):
    """Primitives of a framework on the rank's device. ``dtype``: the framework's dtype of matmuls.

    Prepared operations take float32 numpy arrays and copy them to the device as ``dtype``. Methods
    raise :class:`harness.adapter.Unsupported` for operations that the framework lacks on the
    device. Methods for several ranks must be called in all ranks."""

    #: Collectives that the framework has, and the reason why it lacks the others.
    COLLECTIVES: Sequence[str] = ALL_COLLECTIVES
    LACKING = ""
    #: Functions of the operations, unless :meth:`function` is overridden.
    FUNCTIONS: ClassVar[Mapping[str, Function]]

    def __init__(self, rank_context: RankContext, device: Any, dtype: Any) -> None:
        self.rank_context, self.device, self.dtype = rank_context, device, dtype

    @abstractmethod
    def tensor(self, array: Any, dtype: str = "") -> Any:
        """Return a copy of a float32 numpy array on the device, as ``dtype``; by default the
        matmuls' dtype."""

    @abstractmethod
    def to_numpy(self, tensor: Any) -> Any:
        """Return a float32 numpy array."""

    def name_of(self, tensor: Any) -> str:
        """Return the dtype of a tensor, as numpy names it."""
        return str(tensor.dtype).rpartition(".")[2].lower()

    def function(self, name: str) -> Function:
        """Return the function of an operation of :mod:`harness.operations`."""
        return self.FUNCTIONS[name]

    def repeated(self, function: Function, operands: Sequence[Any]) -> Repeated:
        """Prepare ``function(*operands)``. By default each result is kept until the next."""
        held = function(*operands)

        def run() -> None:
            nonlocal held
            held = function(*operands)

        return Repeated(run, lambda: held)

    def in_place(self, function: Function, operands: Sequence[Any]) -> Repeated:
        """Prepare a function of :meth:`function`. Where the framework can, each run writes to the
        memory of the previous one."""
        return self.repeated(function, operands)

    def operation(self, name: str, arrays: Sequence[Any]) -> Operation:
        """Prepare MATMUL, ADD, MULTIPLY, EXP, SCALE or TRIAD of ``arrays``."""
        return self.prepared(self.function(name), arrays)

    def prepared(self, function: Function, arrays: Sequence[Any]) -> Operation:
        """Prepare a function, such as :meth:`function` returns, of float32 numpy arrays."""
        made = self.in_place(function, [self.tensor(array) for array in arrays])
        return Operation(made.run, lambda: self.to_numpy(made.held()), self.name_of(made.held()))

    def matmul_in(self, dtype: str, arrays: Sequence[Any]) -> Operation:
        """Prepare the matmul of two arrays in ``float64`` or ``int8``, in which no model trains."""
        raise Unsupported(f"matmuls in {dtype} are measured in PyTorch alone")

    def layer_matmul(self, left: Any, right: Any) -> Operation:
        """Prepare the matmul of two matrices, by the function that the framework has for its
        layers."""
        return self.operation(MATMUL, [left, right])

    def convolution(self, shape: ConvolutionShape) -> LayerFunction:
        raise Unsupported("the framework runs no single convolution here")

    def attention(self, shape: AttentionShape) -> LayerFunction:
        raise Unsupported("the framework has no attention with gradients as one operator here")

    def pullback(
        self, function: Function, operands: Sequence[Any], upstream: Any
    ) -> Tuple[Function, Sequence[Any]]:
        """Run the forward pass; return a function that computes the gradients of ``operands`` (a
        sequence) from ``upstream``, the result's gradient, and the operands of this function."""
        raise NotImplementedError

    def forward_backward(self, layer: Layer, arrays: Sequence[Any]) -> ForwardBackward:
        """Prepare forward and backward kernels of ``layer``.

        ``arrays``: operands of the layer's shapes (images and kernel, or query, key and value),
        then the gradient of the result. The framework's layout is made here, outside the kernels.
        Attention has no dropout and no padding mask."""
        import numpy as np

        if isinstance(layer, ConvolutionShape):
            made = self.convolution(layer)
        else:
            made = self.attention(layer)
        *operands, upstream = self._operands(made, arrays, (*made.axes, made.axes[0]))
        forward = self.repeated(made.function, operands)
        backward = self.repeated(*self.pullback(made.function, operands, upstream))
        back = [tuple(map(int, np.argsort(order))) for order in made.axes]

        def gradients() -> List[Any]:
            return [self.to_numpy(t).transpose(order) for t, order in zip(backward.held(), back)]

        dtype = self.name_of(forward.held())
        return ForwardBackward(
            Operation(forward.run, lambda: self.to_numpy(forward.held()).transpose(back[0]), dtype),
            Operation(backward.run, gradients, dtype),
        )

    def matmul_result(self, left: Any, right: Any) -> Any:
        """Multiply as :meth:`harness.adapter.Rounding.matmul_result`."""
        import numpy as np

        made = LayerFunction(self.function(MATMUL), ((0, 1), (0, 1)))
        if left.ndim == 4:
            batch, height, width, channels = left.shape
            rows, columns, _, filters = right.shape
            made = self.convolution(
                ConvolutionShape(
                    batch, height, width, channels, filters, (rows, columns), 1, (0, 0), 1
                )
            )
        ran = self.repeated(made.function, self._operands(made, (left, right), made.axes))
        ran.run()
        return self.to_numpy(ran.held()).transpose(*map(int, np.argsort(made.axes[0])))

    def _operands(
        self, layer: LayerFunction, arrays: Sequence[Any], axes: Sequence[Tuple[int, ...]]
    ) -> List[Any]:
        """Return tensors of float32 numpy arrays in the framework's layout."""
        import numpy as np

        return [
            layer.place(self.tensor(np.ascontiguousarray(array.transpose(order))))
            for array, order in zip(arrays, axes)
        ]

    def collective(self, operation: str, array: Any, dtype: str) -> CollectiveOperation:
        """Prepare a collective on this rank's one-dimensional ``array``, as ``dtype``.

        Reductions are sums; rank 0 is the root of BROADCAST and REDUCE. REDUCE_SCATTER and
        ALL_TO_ALL split the array into a part for each rank. SEND_RECEIVE sends the array to the
        next rank and receives that of the previous one."""
        raise NotImplementedError

    def sharded_matmul(self, left: Any, right: Any, operation: str) -> MatmulCollective:
        """Prepare the matmul of this rank's ``left`` (m, k) and ``right`` (k, n).

        ``operation``: ALL_REDUCE, where the whole product is the sum of the parts, or ALL_GATHER,
        where the parts of all ranks are joined to (m, ranks x n)."""
        raise NotImplementedError

    def overlapped(self, name: str, arrays: Sequence[Any], count: int, message: Any) -> Overlapped:
        """Prepare ``count`` runs of MATMUL or MULTIPLY of two ``arrays``, each after the one
        before, and an all-reduce of ``message``, a one-dimensional float32 array.

        Both run at the same time, by the means that the framework's training uses to communicate
        gradients during the backward pass."""
        reduced = self.collective(ALL_REDUCE, message, "float32")
        return side_by_side(self.operation(name, arrays), reduced, count)


class InPlace(Primitives):
    """Collectives write to tensors that they are given."""

    def assign(self, target: Any, source: Any) -> None:
        """Overwrite a tensor."""
        target.copy_(source)

    @abstractmethod
    def communicating(
        self, operation: str, held: Any, received: Any
    ) -> Tuple[Callable[[], Any], List[Any]]:
        """Return a function that enqueues a collective from ``held`` to ``held`` itself or to
        ``received``, and the tensors that form its result when joined."""

    @abstractmethod
    def start_all_reduce(self, held: Any) -> Callable[[], Any]:
        """Enqueue an all-reduce of a tensor in place, and return a function that waits for it."""

    def in_turns(self, send: Callable[[], Any], receive: Callable[[], Any]) -> Callable[[], Any]:
        """Return a function that sends and receives in turns, for a framework whose send waits
        until it is received."""
        turns = (send, receive) if self.rank_context.rank % 2 == 0 else (receive, send)

        def run() -> None:
            for turn in turns:
                turn()

        return run

    @abstractmethod
    def columns(self, part: Any) -> Callable[[Any], Any]:
        """Return a function that joins the parts of all ranks, each (m, n) like ``part``, to (m,
        ranks x n)."""

    def collective(self, operation: str, array: Any, dtype: str) -> CollectiveOperation:
        import numpy as np

        ranks, count = self.rank_context.world_size, len(array)
        contribution, held = (self.tensor(array, dtype) for _ in range(2))
        length = {ALL_GATHER: ranks * count, REDUCE_SCATTER: count // ranks}.get(operation, count)
        received = held
        if operation not in (ALL_REDUCE, REDUCE, BROADCAST):
            received = self.tensor(np.zeros(length, np.float32), dtype)
        run, results = self.communicating(operation, held, received)

        def reset() -> None:
            received.zero_()
            self.assign(held, contribution)

        return CollectiveOperation(
            reset,
            run,
            lambda: np.concatenate([self.to_numpy(tensor) for tensor in results]),
            (lambda: self.start_all_reduce(held)) if operation == ALL_REDUCE else None,
        )

    def sharded_matmul(self, left: Any, right: Any, operation: str) -> MatmulCollective:
        operands = [self.tensor(left), self.tensor(right)]
        made = self.in_place(self.function(MATMUL), operands)
        whole = made.held()
        gather = self.columns(whole) if operation == ALL_GATHER else None

        def communicate() -> None:
            nonlocal whole
            whole = made.held()
            if gather:
                whole = gather(whole)
            else:
                self.start_all_reduce(whole)()

        def both() -> None:
            made.run()
            communicate()

        dtype = self.name_of(whole)
        return MatmulCollective(made.run, communicate, both, lambda: self.to_numpy(whole), dtype)


class Functional(Primitives):
    """Collectives return new tensors."""

    @abstractmethod
    def exchange(self, operation: str, value: Any, axis: int = 0) -> Any:
        """Return the result of a collective of ``value``. Called within :meth:`program`, where some
        frameworks have their only collectives. ``axis``: axis along which an all-gather joins."""

    def shared(self, array: Any, dtype: str = "") -> Any:
        """Return a copy of a numpy array as a tensor that :meth:`program` takes."""
        return self.tensor(array, dtype)

    def program(self, function: Function, *operands: Any) -> Function:
        """Return ``function`` ready to be called in all ranks with tensors like ``operands``."""
        return function

    def collective(self, operation: str, array: Any, dtype: str) -> CollectiveOperation:
        own = held = self.shared(array, dtype)
        run_once = self.program(lambda value: self.exchange(operation, value), own)

        def reset() -> None:
            nonlocal held
            held = own

        def run() -> None:
            nonlocal held
            held = run_once(held if operation == ALL_REDUCE else own)

        return CollectiveOperation(reset, run, lambda: self.to_numpy(held))

    def sharded_matmul(self, left: Any, right: Any, operation: str) -> MatmulCollective:
        a, b = self.shared(left), self.shared(right)
        multiply = self.function(MATMUL)
        computing = self.program(multiply, a, b)
        part = whole = computing(a, b)
        exchanging = self.program(lambda value: self.exchange(operation, value, 1), part)
        together = self.program(lambda a, b: self.exchange(operation, multiply(a, b), 1), a, b)

        def matmul() -> None:
            nonlocal part
            part = computing(a, b)

        def communicate() -> None:
            nonlocal whole
            whole = exchanging(part)

        def both() -> None:
            nonlocal whole
            whole = together(a, b)

        return MatmulCollective(
            matmul, communicate, both, lambda: self.to_numpy(whole), self.name_of(part)
        )


class Compiled(Functional):
    """Collectives, and work at the same time as a collective, exist only inside compiled
    programs."""

    @abstractmethod
    def chained(self, function: Function, count: int, a: Any, b: Any) -> Tuple[Any, ...]:
        """Within a program, return the result of the last of ``count`` computations, and values
        that keep the compiler from omitting any of them."""

    def overlapped(self, name: str, arrays: Sequence[Any], count: int, message: Any) -> Overlapped:
        """Prepare computation and all-reduce as one program, as in a training step."""
        function = self.function(name)
        a, b = map(self.shared, arrays)
        buffer = held = self.shared(message, "float32")

        def repeated(a: Any, b: Any) -> Tuple[Any, ...]:
            return self.chained(function, count, a, b)

        def summed(value: Any) -> Any:
            return self.exchange(ALL_REDUCE, value)

        computing, communicating = self.program(repeated, a, b), self.program(summed, buffer)
        together = self.program(lambda value, a, b: (summed(value), repeated(a, b)), buffer, a, b)
        computed = computing(a, b)

        def compute() -> None:
            nonlocal computed
            computed = computing(a, b)

        def communicate() -> None:
            nonlocal held
            held = communicating(held)

        def both() -> None:
            nonlocal held, computed
            held, computed = together(held, a, b)

        def reset() -> None:
            nonlocal held
            held = buffer

        return Overlapped(
            compute, communicate, both, reset,
            lambda: self.to_numpy(computed[0]), lambda: self.to_numpy(held),
            self.name_of(computed[0]),
        )  # fmt: skip
