"""Primitives of the micro-benchmarks: single operations in the dynamic graph."""

from __future__ import annotations

from typing import Any

import megengine
import megengine.functional as F
from harness.operations import functions
from harness.primitives import Primitives as Base
from megengine import Tensor


class Primitives(Base):
    FUNCTIONS = functions(F.matmul, F.add, F.mul, F.exp)

    def tensor(self, array: Any, dtype: str = "") -> Tensor:
        return megengine.tensor(array)

    def to_numpy(self, tensor: Tensor) -> Any:
        return tensor.numpy()
