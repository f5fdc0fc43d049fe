"""A framework in plain Python, for testing the harness: it behaves as FRAMEBENCH_TOY says.

The variable holds words and ``word=number`` separated by commas, such as ``sleep=0.01,nan_at=3``.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path
from typing import Any

from harness.adapter import (
    Collectives,
    Exchange,
    Matmul,
    MatrixProduct,
    Mismatch,
    Numerics,
    Operators,
    Product,
    StepBreakdown,
    Unsupported,
    Variable,
)
from harness.parts import Part, cut

from . import toy
from .ring import Ring


def behaviour() -> dict[str, float]:
    """What FRAMEBENCH_TOY asks for."""
    words = [word for word in os.environ.get("FRAMEBENCH_TOY", "").split(",") if word]
    pairs = [word.partition("=") for word in words]
    return {name: float(value or 1) for name, _, value in pairs}


PEAK = 1e11  # floating-point operations per second of its products


class ToyAdapter(Operators, Numerics, Collectives, Matmul, StepBreakdown):
    """Its device is a clock: a step is complete ``sleep`` seconds after the one before it."""

    PRECISIONS = ("fp32", "amp")

    def start(self) -> None:
        self.does = behaviour()
        print(f"toy in process {os.getpid()}", flush=True)
        self.steps = 0
        self.done_at = 0.0
        self.ring: Ring | None = None
        if "unsupported" in self.does:
            raise Unsupported("the toy has no wheels")
        self._misbehave_at("start")
        if self.place.world_size > 1:
            self.ring = Ring(self.place.rank, self.place.addresses)
        if "grandchild" in self.does:
            code = "import time; time.sleep(600)"
            subprocess.Popen([sys.executable, "-S", "-c", code], start_new_session=True)
        if "hungry_grandchild" in self.does:
            size = int(self.does["hungry_grandchild"]) * 2**20
            code = f"import time; food = bytearray(b'x') * {size}; time.sleep(600)"
            subprocess.Popen([sys.executable, "-S", "-c", code])
        if "fill" in self.does:  # the temporary folder, so many MiB
            with open(os.path.join(tempfile.gettempdir(), "food"), "wb") as file:
                file.write(b"x" * (int(self.does["fill"]) * 2**20))
        if "repin" in self.does:
            os.sched_setaffinity(0, range(os.cpu_count() or 1))

    def _misbehave_at(self, moment: str) -> None:
        def here(name: str) -> bool:
            return self.does.get(name) == self.place.rank and moment == "step"

        if "hang_" + moment in self.does or ("hang" in self.does and moment == "step"):
            time.sleep(600)
        if here("crash_rank"):
            os.kill(os.getpid(), signal.SIGSEGV)
        if here("kill_rank"):
            os.kill(os.getpid(), signal.SIGKILL)
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
        # Other data on each device, also of ranks that do not know of each other.
        node = zlib.crc32(os.environ.get("SLURMD_NODENAME", "").encode())
        seed = self.place.seed * 1000 + self.place.rank + 100 * self.place.local_rank + 1000 * node
        self.line = toy.Line(self.case.batch_per_device, seed)
        if self.does.get("late_device") == self.place.local_rank:
            time.sleep(0.5)
        # Not zeros: pages that nobody wrote to take no memory.
        mebibytes = self.case.batch_per_device * int(self.does.get("fill", 0))
        self.food = [bytearray(b"x") * 2**20 for _ in range(mebibytes)]
        if self.case.batch_per_device >= self.does.get("raise_from_batch", float("inf")):
            raise RuntimeError("the toy is too small for that batch")

    def step(self) -> tuple[float, float]:
        self.steps += 1
        if self.steps == 2:
            self._misbehave_at("step")
        sleep = self.does.get("sleep", 0.0)
        if self.does.get("slow_rank") == self.place.rank:
            sleep *= 5
        slow_until = self.does.get("slow_until")
        if slow_until and self.steps <= slow_until + 4 * self.place.rank:
            sleep *= 5
        sleep *= self.does.get("growth", 1.0) ** self.steps
        self.done_at = max(self.done_at, time.perf_counter()) + sleep
        self._use_shared_hardware()
        busy_until = time.process_time() + self.does.get("burn", 0.0)
        while time.process_time() < busy_until:
            pass
        value = self._train() if self.case.mode == "train" else self._infer()
        if self.steps >= self.does.get("nan_at", float("inf")):
            value = float("nan")
        return value, self.done_at

    def _use_shared_hardware(self) -> None:
        """For ``shared`` seconds no other rank of the run can have it."""
        if "shared" in self.does:
            with open(os.path.join(tempfile.gettempdir(), "hardware"), "w") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                time.sleep(self.does["shared"])

    def _train(self) -> float:
        loss, _ = self.line.loss_and_gradients()
        gradients = self._averaged()
        rate = self.facts["hyperparameters"]["learning_rate"]
        self.line.weights = [w - rate * gradients[i] for i, w in enumerate(self.line.weights)]
        return loss

    def _averaged(self) -> list[float]:
        _, gradients = self.line.loss_and_gradients()
        if self.ring and "no_all_reduce" not in self.does:
            self.done_at = max(self.done_at, time.perf_counter()) + self.does.get("exchange", 0.0)
            sums = self.ring.all_reduce(gradients)
            gradients = [value / self.place.world_size for value in sums]
        return gradients

    def _infer(self) -> float:
        outputs = self.line.forward()
        return sum(outputs) / len(outputs)

    @staticmethod
    def _wait_until(moment: float) -> None:
        time.sleep(max(0.0, moment - time.perf_counter()))

    def read(self, handle: tuple[float, float]) -> float:
        value, done_at = handle
        self._wait_until(done_at)
        return value

    def synchronize(self) -> None:
        if "unsynchronised" not in self.does:
            self._wait_until(self.done_at)

    def wait(self, mark: tuple[float, float]) -> None:
        if "unsynchronised" not in self.does and "unbounded" not in self.does:
            self._wait_until(mark[1])

    def version(self) -> str:
        return "1.0"

    def device(self) -> str:
        return f"toy:{self.place.local_rank}"

    def settings(self) -> dict[str, Any]:
        return {
            "threads": self.place.threads,
            "omp_num_threads": os.environ.get("OMP_NUM_THREADS"),
            "cuda_visible_devices": os.environ.get("CUDA_VISIBLE_DEVICES"),
            "folder": str(Path.cwd()),
            "odd": float("nan") if "odd_settings" in self.does else 0.0,
            "object": object() if "odd_settings" in self.does else None,
        }

    def trainable_parameters(self) -> int:
        return 3 if "wrong_parameters" in self.does else len(self.line.weights)

    def products(self, forward_only: bool) -> list[Product]:
        if self.case.precision == "amp" and "fp32_amp" not in self.does:
            return [Product("float32"), *20 * [Product("bfloat16")]]
        return 161 * [Product("float32")]

    def compiled(self) -> dict[str, Any]:
        if self.case.compiler == "fallback":
            raise Mismatch("the compiler fell back")
        return {}

    def all_reduce(self, value: float) -> float:
        if "lonely" in self.does:
            return value
        return self.ring.all_reduce([value])[0] if self.ring else value

    def exchange(self, array: Any) -> Exchange:
        held = [array]

        def run() -> None:
            held[0] = self.ring.sum(held[0]) + ("wrong_sum" in self.does)

        return Exchange(run, lambda: held[0])

    def weights_checksum(self) -> float:
        return sum(abs(weight) for weight in self.line.weights)

    def state(self) -> dict[str, Variable]:
        names = ("slope", "offset")
        return {
            n: Variable(self.to_numpy(w)) for n, w in zip(names, self.line.weights, strict=True)
        }

    def to_numpy(self, tensor: Any) -> Any:
        import numpy as np

        return np.asarray(tensor, float)

    def assign(self, arrays: dict[str, Any]) -> None:
        self.line.weights = [float(arrays[name]) for name in ("slope", "offset")]

    def raw_gradients(self) -> dict[str, Any]:
        return dict(zip(("slope", "offset"), self._averaged(), strict=True))

    def logits(self) -> list[Any]:
        return [self.line.forward()]

    def parts(self) -> list[Part]:
        """A quarter of ``sleep`` forward, half of it backward, a quarter for the update."""
        if "no_parts" in self.does:
            raise RuntimeError("the toy is one piece")
        if "hang_parts" in self.does:
            time.sleep(600)

        def takes(share: float) -> None:
            sleep = share * self.does.get("sleep", 0.0)
            self.done_at = max(self.done_at, time.perf_counter()) + sleep

        def averaged() -> None:
            takes(0.75)
            self._averaged()
            takes(0.5)

        return cut(
            forward=lambda: takes(0.25),
            backward=lambda loss: takes(0.5),
            averaged=averaged if self.ring else None,
            update=lambda: takes(0.25),
        )

    def matmul(self, left: Any, right: Any) -> MatrixProduct:
        seconds = self.does.get("matmul", 2 * len(left) ** 3 / PEAK)

        def multiply() -> None:
            self.done_at = max(self.done_at, time.perf_counter()) + seconds

        wrong = "fp32_amp" in self.does or self.case.precision == "fp32"
        return MatrixProduct(multiply, "float32" if wrong else "bfloat16")

    def stop(self) -> None:
        if "hang_stop" in self.does:
            time.sleep(600)
        if self.ring:
            self.ring.close()
