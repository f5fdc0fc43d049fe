"""Matmuls, single or batched, in several shapes.

Operands are random and stay the same. The kind `peak_flops` keeps the fastest of several sizes,
which is the capability of a device. This benchmark shows the rate of a framework for given shapes.
A sample of each result is checked against float64."""

from __future__ import annotations

from typing import Dict, Iterator, List

from harness.capabilities import SingleOperations
from harness.kind import Context, Metric, Parameter, Workload, one_of
from harness.measuring import blocks, rounding
from harness.measuring.operands import (
    check_matmul,
    matmul_operands,
    shapes,
    shapes_of,
    whole_numbers,
)
from harness.measuring.sweep import Block, GridPoint, Sweep, per_second
from harness.operations import MATMUL, MatmulShape

#: Dtypes of the operands: the dtype of the case's precision, and dtypes in which no model here
#: trains.
OF_PRECISION, INT8 = "precision", "int8"
OTHERS = ("float64", INT8)


class Matmul(Sweep):
    """Matmuls alone: FLOP/s of each shape, in the dtype of the case's precision or another."""

    needs = SingleOperations
    parameters = (
        Parameter(
            "shapes", shapes, "", "m x k x n of each product, or batch x m x k x n",
            "256x256x256 1024x1024x1024 16x256x64x256",
        ),
        Parameter(
            "dtype", one_of(OF_PRECISION, *OTHERS), "",
            "dtype of the operands; float64 and int8 (sums in int32) are for PyTorch alone",
            OF_PRECISION,
        ),
        *blocks.parameters("a shape"),
    )  # fmt: skip
    summaries = (("highest_rate", "rate", max),)

    def grid(self, workload: Workload) -> List[GridPoint]:
        asked = shapes_of(workload.parameters["shapes"])
        return [GridPoint(dict(shape._asdict()), shape) for shape in asked]

    def figures(self, workload: Workload, subject: MatmulShape) -> Dict[str, Metric]:
        # Devices share power, cooling and memory: the slowest of several counts, as for the peak.
        rate = per_second(1e-12 * subject.operations)
        return {"rate": Metric("TFLOP/s", "higher", "min", rate)}

    def run(self, context: Context, subject: MatmulShape) -> Iterator[Block]:
        random = blocks.random_of(context)
        first, second = matmul_operands(subject, random)
        asked = context.workload.parameters["dtype"]
        if asked == OF_PRECISION:
            product = context.adapter.primitives().operation(MATMUL, [first, second])
            dtype = rounding.check_ran_in(context, product.dtype)
        else:
            if asked == INT8:
                first, second = whole_numbers(first), whole_numbers(second)
            product = context.adapter.primitives().matmul_in(asked, [first, second])
            dtype = product.dtype
            context.fields["matmul_dtypes"] = {dtype: 1}
        timing = blocks.measure(context, product)
        error = check_matmul(product.result(), first, second, dtype, random)
        yield {**timing, "error": error}
