"""Adapter that records its calls."""

from __future__ import annotations

import gc
from typing import Any

from harness.adapter import Adapter, Case, RankContext, Variable


class Recorder(Adapter):
    """Adapter that notes the order of calls and whether garbage is collected during steps."""

    def __init__(self, world_size: int = 1) -> None:
        case = Case("f", "m", "train", 1, world_size, 1, "fp32", "none", None)
        super().__init__(case, {}, RankContext(0, 0, ["h:1"] * world_size, "cpu", 1, 0))
        self.calls: list[str] = []
        self.steps = 0

    def _note(self, name: str, result: Any = None) -> Any:
        self.calls.append(name)
        return result

    def start(self) -> None: ...
    def build(self, batch: dict[str, Any]) -> None: ...
    def step(self) -> Any:
        assert not gc.isenabled(), "garbage may be collected in the window"
        self.steps += 1
        return self._note("step", self.steps)

    def read(self, handle: Any) -> float:
        self._note("read")
        return 1.0

    def synchronize(self) -> None:
        self._note("synchronize")

    def mark(self, handle: Any) -> Any:
        return handle

    def wait(self, mark: Any) -> None:
        self._note(f"wait {mark}")

    def settings(self) -> dict[str, Any]:
        return {}

    def state(self) -> dict[str, Variable]:
        return {}

    def to_numpy(self, tensor: Any) -> Any:
        return tensor

    def all_reduce(self, value: float) -> float:
        self._note("all_reduce")
        return value

    def reset_peak_device_memory(self) -> None:
        self._note("reset")
