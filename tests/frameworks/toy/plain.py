"""Plain-Python framework with every optional capability; its device is a clock."""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Callable, Sequence
from typing import Any

from harness.adapter import (
    Accumulation,
    AllReduce,
    MatmulTrace,
    Numerics,
    Variable,
)
from harness.capabilities import BatchInput, MicroBenchmarks, PairTransfers, Transfers
from harness.operations import (
    ADD,
    ALL_COLLECTIVES,
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    BROADCAST,
    EXP,
    MATMUL,
    MULTIPLY,
    REDUCE,
    REDUCE_SCATTER,
    SCALAR,
    SCALE,
    SEND_RECEIVE,
    TRIAD,
    CollectiveOperation,
    ConvolutionShape,
    ForwardBackward,
    Layer,
    MatmulCollective,
    Operation,
    Overlapped,
    side_by_side,
)

from .models import toy
from .ring import Ring

PEAK = 1e11  # floating-point operations per second in matmuls of the toy
NAMES = ("slope", "offset")


class DeviceClock:
    """Replacement of ``time.perf_counter`` that advances by waiting for the device.
    Reading it takes a microsecond; nothing else takes time, however busy the machine is."""

    def __init__(self) -> None:
        self.seconds = time.perf_counter()

    def __call__(self) -> float:
        self.seconds += 1e-6
        return self.seconds


def wait_until(moment: float) -> None:
    clock = time.perf_counter
    if isinstance(clock, DeviceClock):
        clock.seconds = max(clock.seconds, moment)
    else:
        time.sleep(max(0.0, moment - clock()))


class PlainToy(
    Accumulation,
    MatmulTrace,
    Numerics,
    MicroBenchmarks,
    PairTransfers,
    Transfers,
    BatchInput,
):
    """Toy framework: a step is complete :meth:`seconds` after the one before it.
    The points of a batch are its `x` and `y`; without these the toy draws its own."""

    COLLECTIVES = ALL_COLLECTIVES

    def start(self) -> None:
        self.done_at = 0.0
        several = self.rank_context.world_size > 1
        self.ring = Ring(self.rank_context.rank, self.rank_context.addresses) if several else None

    def build(self, batch: dict[str, Any]) -> None:
        # Each device has different data, even if its rank does not know the others.
        node = zlib.crc32(os.environ.get("SLURMD_NODENAME", "").encode())
        seed = (
            self.rank_context.seed * 1000
            + self.rank_context.rank
            + 100 * self.rank_context.local_rank
            + 1000 * node
        )
        self.line = toy.Line(self.case.batch_per_device * self.case.accumulation, seed)
        self.rate = self.model_config["hyperparameters"]["learning_rate"]
        self.feed(batch)

    def feed(self, batch: dict[str, Any]) -> None:
        if batch:
            self.line.points = list(zip(*(batch[name].tolist() for name in "xy"), strict=True))

    def set_learning_rate(self, rate: float) -> None:
        self.rate = rate

    def seconds(self) -> float:
        return 0.0

    def occupy(self, seconds: float) -> None:
        """Occupy the device for ``seconds``, after its pending work."""
        self.done_at = max(self.done_at, time.perf_counter()) + seconds

    def step(self) -> tuple[float, float]:
        self.occupy(self.seconds())
        return self._train() if self.case.mode == "train" else self._infer(), self.done_at

    def _train(self) -> float:
        loss, _ = self.loss_and_gradients()
        gradients = self.averaged_gradients()
        self.line.weights = [w - self.rate * gradients[i] for i, w in enumerate(self.line.weights)]
        return loss

    def loss_and_gradients(self) -> tuple[float, list[float]]:
        size, count = self.case.batch_per_device, self.case.accumulation
        firsts = [number * size for number in range(count)]
        steps = [self.line.loss_and_gradients(first, first + size) for first in firsts]
        loss = sum(value for value, _ in steps) / count
        weights = range(len(self.line.weights))
        return loss, [sum(gradients[i] for _, gradients in steps) / count for i in weights]

    def averaged_gradients(self) -> list[float]:
        _, gradients = self.loss_and_gradients()
        if self.ring:
            sums = self.ring.all_reduce(gradients)
            gradients = [value / self.rank_context.world_size for value in sums]
        return gradients

    def _infer(self) -> float:
        outputs = self.line.forward()
        return sum(outputs) / len(outputs)

    def read(self, handle: tuple[float, float]) -> float:
        value, done_at = handle
        wait_until(done_at)
        return value

    def synchronize(self) -> None:
        wait_until(self.done_at)

    def wait(self, mark: tuple[float, float]) -> None:
        wait_until(mark[1])

    def version(self) -> str:
        return "1.0"

    def device(self) -> str:
        return f"toy:{self.rank_context.local_rank}"

    def settings(self) -> dict[str, Any]:
        return {"threads": self.rank_context.threads}

    def trainable_parameters(self) -> int:
        return len(self.line.weights)

    def matmul_dtypes(self) -> dict[str, int]:
        return {"float32": 1, "bfloat16": 20} if self.case.precision == "amp" else {"float32": 161}

    def all_reduce(self, value: float) -> float:
        return self.ring.all_reduce([value])[0] if self.ring else value

    def prepare_all_reduce(self, array: Any) -> AllReduce:
        held = [array]

        def run() -> None:
            held[0] = self.ring.sum(held[0])

        return AllReduce(run, lambda: held[0])

    def gradient_messages(self) -> list[int]:
        return [8 * len(self.line.weights)]

    def weights_checksum(self) -> float:
        return sum(abs(weight) for weight in self.line.weights)

    def state(self) -> dict[str, Variable]:
        return {
            n: Variable(self.to_numpy(w)) for n, w in zip(NAMES, self.line.weights, strict=True)
        }

    def to_numpy(self, tensor: Any) -> Any:
        import numpy as np

        return np.asarray(tensor, float)

    def assign(self, arrays: dict[str, Any]) -> None:
        self.line.weights = [float(arrays[name]) for name in NAMES]

    def raw_gradients(self) -> dict[str, Any]:
        return dict(zip(NAMES, self.averaged_gradients(), strict=True))

    def logits(self) -> list[Any]:
        return [self.line.forward()]

    def primitives(self) -> Any:
        return self

    def layer_matmul(self, left: Any, right: Any) -> Operation:
        dtype = "float32" if self.case.precision == "fp32" else "bfloat16"
        seconds = 2 * len(left) ** 3 / PEAK
        return Operation(lambda: self.occupy(seconds), lambda: left @ right, dtype)

    def operation(self, name: str, arrays: Sequence[Any]) -> Operation:
        import numpy as np

        functions: dict[str, Callable[..., Any]] = {
            MATMUL: np.matmul,
            ADD: np.add,
            MULTIPLY: np.multiply,
            EXP: np.exp,
            SCALE: lambda c: SCALAR * c,
            TRIAD: lambda b, c: b + SCALAR * c,
        }
        computed = functions[name](*arrays)

        def result() -> Any:
            wait_until(self.done_at)
            return computed

        dtype = "float32" if self.case.precision == "fp32" else "bfloat16"
        return Operation(lambda: self.occupy(self.operation_seconds()), result, dtype)

    def operation_seconds(self) -> float:
        return 1e-4

    def collective(self, operation: str, array: Any, dtype: str) -> CollectiveOperation:
        """Return a collective, computed as a sum of the arrays that ranks put at their places."""
        import numpy as np

        rank, ranks, held = self.rank_context.rank, self.rank_context.world_size, [array]
        part = slice(rank * len(array) // ranks, (rank + 1) * len(array) // ranks)

        def each() -> Any:
            placed = np.zeros((ranks, len(held[0])), np.float32)
            placed[rank] = held[0]
            return self.ring.sum(placed).reshape(placed.shape)

        given: dict[str, Callable[[], Any]] = {
            ALL_REDUCE: lambda: each().sum(0, dtype=np.float32),
            REDUCE: lambda: each().sum(0, dtype=np.float32),
            BROADCAST: lambda: each()[0],
            ALL_GATHER: lambda: each().reshape(-1),
            REDUCE_SCATTER: lambda: each().sum(0, dtype=np.float32)[part],
            ALL_TO_ALL: lambda: each()[:, part].reshape(-1),
            SEND_RECEIVE: lambda: each()[(rank - 1) % ranks],
        }
        latest = [array]

        def reset() -> None:
            held[0] = latest[0] = array

        def run() -> None:
            self.occupy(self.operation_seconds())
            latest[0] = given[operation]()
            if operation in (ALL_REDUCE, REDUCE):
                held[0] = latest[0]

        def result() -> Any:
            wait_until(self.done_at)
            return latest[0]

        return CollectiveOperation(reset, run, result)

    def overlapped(self, name: str, arrays: Sequence[Any], count: int, message: Any) -> Overlapped:
        exchange = self.collective(ALL_REDUCE, message, "float32")
        made = side_by_side(self.operation(name, arrays), exchange, count)

        def both() -> None:
            begin = self.done_at
            made.communicate()
            exchanged, self.done_at = self.done_at, begin
            made.compute()
            self.done_at = max(self.done_at, exchanged)

        return made._replace(both=both)

    def sharded_matmul(self, left: Any, right: Any, operation: str) -> MatmulCollective:
        import numpy as np

        part, ranks = left @ right, self.rank_context.world_size
        whole = [part]

        def product() -> None:
            self.occupy(self.operation_seconds())

        def communicate() -> None:
            self.occupy(self.operation_seconds())
            placed = np.zeros((ranks, *part.shape), np.float32)
            placed[self.rank_context.rank] = part
            parts = self.ring.sum(placed).reshape(placed.shape)
            whole[0] = parts.sum(0) if operation == ALL_REDUCE else np.concatenate(parts, 1)

        def both() -> None:
            product()
            communicate()

        def result() -> Any:
            wait_until(self.done_at)
            return whole[0]

        dtype = "float32" if self.case.precision == "fp32" else "bfloat16"
        return MatmulCollective(product, communicate, both, result, dtype)

    def forward_backward(self, layer: Layer, arrays: Sequence[Any]) -> ForwardBackward:
        from . import layers

        compute: Any = (
            layers.convolution if isinstance(layer, ConvolutionShape) else layers.attention
        )
        result, *gradients = compute(layer, *arrays)

        def read(computed: Any) -> Any:
            wait_until(self.done_at)
            return computed

        def run(times: int) -> None:
            self.occupy(times * self.operation_seconds())

        return ForwardBackward(
            Operation(lambda: run(1), lambda: read(result), "float32"),
            Operation(lambda: run(3), lambda: read(gradients), "float32"),
        )

    def transfer(self, direction: str, array: Any, pinned: bool) -> Operation:
        return Operation(lambda: None, lambda: array, "float32")

    def transfer_between(self, sender: int, receiver: int, array: Any) -> Operation:
        return Operation(lambda: None, lambda: array, "float32")

    def stop(self) -> None:
        if self.ring:
            self.ring.close()
