"""Adapter of numpy, with its own weight layout."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.adapter import (
    CONVOLUTION_OIHW,
    DENSE_OI,
    SAME,
    AllReduce,
    Case,
    Collectives,
    MatmulTrace,
    Numerics,
    RankContext,
    Variable,
)

SHAPES = {"conv": (4, 3, 2, 1), "dense": (5, 4), "bias": (5,), "mean": (5,)}
AXES = {"conv": CONVOLUTION_OIHW, "dense": DENSE_OI}


class Numpy(MatmulTrace, Numerics, Collectives):
    """Adapter with an array of each kind, a loss scale of 4, and sums of ten ranks."""

    OUT_OF_MEMORY = ("no room", "FullError")

    def __init__(self, ranks: int = 1, accelerator: str = "cpu", precision: str = "fp32") -> None:
        case = Case("numpy", "m", "train", 1, ranks, 1, precision, "none", None)
        super().__init__(case, {}, RankContext(0, 3, ["h:1"] * ranks, accelerator, 1, 0))
        self.arrays = {name: np.zeros(shape, np.float32) for name, shape in SHAPES.items()}

    def start(self) -> None: ...
    def build(self, batch: dict[str, Any]) -> None: ...
    def step(self) -> None: ...
    def synchronize(self) -> None: ...
    def settings(self) -> dict[str, Any]:
        return {}

    def state(self) -> dict[str, Variable]:
        return {
            name: Variable(array, AXES.get(name, SAME), name != "mean")
            for name, array in self.arrays.items()
        }

    def to_numpy(self, tensor: Any) -> Any:
        return tensor

    def assign(self, arrays: dict[str, Any]) -> None:
        self.arrays = arrays

    def raw_gradients(self) -> dict[str, Any]:
        return {name: 4 * array for name, array in self.arrays.items() if name != "mean"}

    def loss_scale(self) -> float:
        return 4.0

    def logits(self) -> list[Any]:
        return [self.arrays["dense"]]

    def matmul_dtypes(self) -> dict[str, int]:
        return {"float32": 2, "bfloat16": 1}

    def prepare_all_reduce(self, array: Any) -> AllReduce:
        def run() -> None:
            array[:] *= 10

        return AllReduce(run, lambda: array)
