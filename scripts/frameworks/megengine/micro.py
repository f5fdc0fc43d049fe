"""Primitives of the micro-benchmarks: single operations in the dynamic graph."""

from __future__ import annotations

from typing import Any, Dict

import megengine
import megengine.functional as F
from harness.operations import (
    ADD,
    EXP,
    MATMUL,
    MULTIPLY,
    NEITHER,
    SCALAR,
    SCALE,
    TRIAD,
    Transposed,
)
from harness.primitives import Function
from harness.primitives import Primitives as Base
from megengine import Tensor


class Primitives(Base):
    def tensor(self, array: Any, dtype: str = "") -> Tensor:
        return megengine.tensor(array)

    def to_numpy(self, tensor: Tensor) -> Any:
        return tensor.numpy()

    def name_of(self, tensor: Tensor) -> str:
        return tensor.dtype.name

    def function(self, name: str, transposed: Transposed = NEITHER) -> Function:
        functions: Dict[str, Function] = {
            MATMUL: lambda a, b: F.matmul(a, b, *transposed),
            ADD: F.add,
            MULTIPLY: F.mul,
            EXP: F.exp,
            SCALE: lambda x: x * SCALAR,
            TRIAD: lambda x, y: x + y * SCALAR,
        }
        return functions[name]
