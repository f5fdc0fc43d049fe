"""The plain toy framework for tests of the harness, controlled by FRAMEBENCH_TOY.

The variable holds words and ``word=number`` separated by commas, such as ``sleep=0.01,nan_at=3``.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.adapter import AllReduce, Mismatch, Unsupported
from harness.measuring import model
from harness.operations import (
    ADD,
    TRIAD,
    CollectiveOperation,
    ForwardBackward,
    Layer,
    MatmulCollective,
    Operation,
    Overlapped,
)

from . import plain

#: Process that imported the toy: in forked ranks, the parent process.
_IMPORTED = os.getpid()


def behaviour() -> dict[str, float]:
    parts = [word for word in os.environ.get("FRAMEBENCH_TOY", "").split(",") if word]
    pairs = [word.partition("=") for word in parts]
    return {name: float(value or 1) for name, _, value in pairs}


class ToyAdapter(plain.PlainToy):
    """Toy whose step takes ``sleep`` seconds.
    ``exact``: on a clock of its own. ``hold=N``, ``hold_inference=N``: step N waits while the file
    FRAMEBENCH_HOLD exists."""

    def start(self) -> None:
        self.does = behaviour()
        print(f"toy in process {os.getpid()}, imported in {_IMPORTED}", flush=True)
        self.steps = 0
        if "exact" in self.does:
            time.perf_counter = plain.DeviceClock()
        if "one_batch" in self.does:  # a mistake of the harness
            made = model.make_batch
            model.make_batch = lambda *given: made(*given[:-1], 0)
        if "unsupported" in self.does:
            raise Unsupported("the toy has no wheels")
        self._misbehave_at("start")
        super().start()
        if "grandchild" in self.does:
            code = "import time; time.sleep(600)"
            subprocess.Popen([sys.executable, "-S", "-c", code], start_new_session=True)
        if "fork" in self.does and os.fork() == 0:
            time.sleep(600)
            os._exit(0)
        if "print" in self.does:  # in MiB
            for number in range(int(self.does["print"]) * 2**10):
                print(f"{number:06d}\033[2J" + "x" * 1011)
        if "hungry_grandchild" in self.does:
            size = int(self.does["hungry_grandchild"]) * 2**20
            code = f"import time; food = bytearray(b'x') * {size}; time.sleep(600)"
            subprocess.Popen([sys.executable, "-S", "-c", code])
        if "repin" in self.does:
            os.sched_setaffinity(0, range(os.cpu_count() or 1))

    def _misbehave_at(self, moment: str) -> None:
        def here(name: str) -> bool:
            return self.does.get(name) == self.rank_context.rank and moment == "step"

        if "hang_" + moment in self.does or ("hang" in self.does and moment == "step"):
            time.sleep(600)
        if here("crash_rank"):
            os.kill(os.getpid(), signal.SIGSEGV)
        if here("exit_rank"):
            os._exit(3)
        if here("system_exit_rank"):
            sys.exit(0)
        if here("raise_rank"):
            raise RuntimeError("the toy is broken\nand has more to say")
        if "eat" in self.does and moment == "step":
            food = []
            while True:
                food.append(bytearray(b"x") * 2**24)
        if "oom" in self.does and moment == "step":
            raise MemoryError("the toy box is full")

    def build(self, batch: dict[str, Any]) -> None:
        super().build(batch)
        # Not zeros: untouched pages take no memory.
        mebibytes = self.case.batch_per_device * int(self.does.get("fill", 0))
        self.food = []
        for _ in range(mebibytes):
            self.food.append(bytearray(b"x") * 2**20)
            time.sleep(self.does.get("fill_pause", 0.0))
        if self.case.batch_per_device >= self.does.get("raise_from_batch", float("inf")):
            raise RuntimeError("the toy is too small for that batch")

    def seconds(self) -> float:
        sleep = self.does.get("sleep", 0.0)
        if self.does.get("slow_rank") == self.rank_context.rank:
            sleep *= 5
        slow_until = self.does.get("slow_until")
        if slow_until and self.steps <= slow_until + 4 * self.rank_context.rank:
            sleep *= 5
        return sleep * self.does.get("growth", 1.0) ** self.steps

    def step(self) -> tuple[float, float]:
        self.steps += 1
        if self.steps == 2:
            self._misbehave_at("step")
        if self.does.get(f"hold_{self.case.mode}", self.does.get("hold")) == self.steps:
            while os.path.exists(os.environ["FRAMEBENCH_HOLD"]):
                time.sleep(0.02)
        value, done_at = super().step()
        if self.steps >= self.does.get("nan_at", float("inf")):
            value = float("nan")
        if self.steps >= self.does.get("zero_at", float("inf")):
            value = 0.0
        return value, done_at

    def averaged_gradients(self) -> list[float]:
        if self.ring and "no_all_reduce" in self.does:
            return self.loss_and_gradients()[1]
        if self.ring:
            self.occupy(self.does.get("all_reduce", 0.0))
        return super().averaged_gradients()

    def synchronize(self) -> None:
        if "unsynchronised" not in self.does:
            super().synchronize()

    def wait(self, mark: tuple[float, float]) -> None:
        if "unsynchronised" not in self.does:
            super().wait(mark)

    def settings(self) -> dict[str, Any]:
        return {
            **super().settings(),
            "omp_num_threads": os.environ.get("OMP_NUM_THREADS"),
            "cuda_visible_devices": os.environ.get("CUDA_VISIBLE_DEVICES"),
            "folder": str(Path.cwd()),
        }

    def trainable_parameters(self) -> int:
        return 3 if "wrong_parameters" in self.does else super().trainable_parameters()

    def matmul_dtypes(self) -> dict[str, int]:
        return {"float32": 161} if "fp32_amp" in self.does else super().matmul_dtypes()

    def compiled(self) -> dict[str, Any]:
        if self.case.compiler == "fallback":
            raise Mismatch("the compiler fell back")
        return super().compiled()

    def all_reduce(self, value: float) -> float:
        return value if "lonely" in self.does else super().all_reduce(value)

    def prepare_all_reduce(self, array: Any) -> AllReduce:
        self._misbehave_at("all_reduce")
        run, result = super().prepare_all_reduce(array)

        def run_gradients() -> None:
            self.occupy(self.does.get("all_reduce", 0.0))
            run()

        is_of_gradients = hasattr(self, "line") and array.nbytes in super().gradient_messages()
        return AllReduce(
            run_gradients if is_of_gradients else run, lambda: result() + ("wrong_sum" in self.does)
        )

    def gradient_messages(self) -> list[int]:
        if "secretive" in self.does:
            raise Unsupported("the toy keeps its messages to itself")
        return super().gradient_messages()

    def layer_matmul(self, left: Any, right: Any) -> Operation:
        made = super().layer_matmul(left, right)
        made = made._replace(result=lambda: self._spoilt(left @ right))
        if "matmul" in self.does:
            seconds = self.does["matmul"] * (1 + self.rank_context.rank / 2)
            made = made._replace(run=lambda: self.occupy(seconds))
        return made._replace(dtype="float32") if "fp32_amp" in self.does else made

    def operation_seconds(self) -> float:
        return self.does.get("operation", super().operation_seconds())

    def operation(self, name: str, arrays: Sequence[Any]) -> Operation:
        wrong = name == TRIAD and "wrong_triad" in self.does
        made = super().operation(ADD if wrong else name, arrays)
        return made._replace(result=lambda: self._spoilt(made.result()))

    def collective(self, operation: str, array: Any, dtype: str) -> CollectiveOperation:
        if "no_collective" in self.does:
            raise NotImplementedError("the toy box has no such thing")
        made = super().collective(operation, array, dtype)
        return made._replace(result=lambda: self._spoilt(made.result()))

    def overlapped(self, name: str, arrays: Sequence[Any], count: int, message: Any) -> Overlapped:
        made = super().overlapped(name, arrays, count, message)

        def both() -> None:
            if "one_at_a_time" in self.does:
                made.communicate()
                made.compute()
            elif "forgetful" in self.does:
                made.communicate()
            else:
                made.both()
            self.occupy(self.does.get("hindered", 0.0))

        return made._replace(both=both)

    def sharded_matmul(self, left: Any, right: Any, operation: str) -> MatmulCollective:
        if self.does.get("wrong_shard") == self.rank_context.rank:
            right = right[:, ::-1].copy()
        return super().sharded_matmul(left, right, operation)

    def forward_backward(self, layer: Layer, arrays: Sequence[Any]) -> ForwardBackward:
        forward, backward = super().forward_backward(layer, arrays)
        spoilt = self.does.get("spoil_result", 0.0)  # 0: the result; from 1 on: a gradient

        def result() -> Any:
            return self._spoilt(forward.result()) if spoilt == 0 else forward.result()

        def gradients() -> list[Any]:
            actual = backward.result()
            return [
                self._spoilt(entry) if number == spoilt else entry
                for number, entry in enumerate(actual, 1)
            ]

        return ForwardBackward(forward._replace(result=result), backward._replace(result=gradients))

    def _spoilt(self, result: Any) -> Any:
        """Return a wrong result: one element more, zeros, or too large; in all ranks or in one."""
        import numpy as np

        if self.does.get("spoil_rank", self.rank_context.rank) != self.rank_context.rank:
            return result
        if "one_more" in self.does:
            return result + (np.arange(result.size) == result.size - 1).reshape(result.shape)
        if "empty" in self.does:
            return np.zeros_like(result)
        return 1e38 * 1e38 * result if "overflow" in self.does else result

    def stop(self) -> None:
        if "hang_stop" in self.does:
            time.sleep(600)
        super().stop()
