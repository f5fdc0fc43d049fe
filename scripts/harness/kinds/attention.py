"""The attention of a transformer alone, forward and backward, in the fused operator that the
framework's models here call, or written out where they write it out: heads and their size are the
model's, batch and sequence length the case's. Without dropout. One head's results are held against
float64. Standard library and numpy.
"""

from __future__ import annotations

from typing import Any, Dict, List

from harness.adapter import Unsupported
from harness.kind import Context, Kind, Metric, Subject
from harness.measuring.micro import attentions, passes
from harness.operations import Attention as Shape
from harness.operations import LayerOperations, Passes


class Attention(Kind):
    """TFLOP/s and microseconds of each; of all layers together."""

    needs = LayerOperations
    independent_ranks = True
    axes = (
        "framework", "model", "nodes", "devices_per_node", "batch_per_device", "precision",
        "sequence_length",
    )  # fmt: skip
    parameters = passes.PARAMETERS

    def metrics(self, subject: Subject) -> Dict[str, Metric]:
        return passes.metrics(_shaped(subject))

    def measure(self, context: Context) -> None:
        import numpy as np

        subject, adapter = context.subject, context.adapter
        shapes = list(_shapes(subject))
        if not shapes:
            raise Unsupported(f"{subject.case.model} has no attention")
        random = np.random.RandomState(adapter.place.seed)
        arrays: List[Any] = []

        def make(number: int) -> Passes:
            arrays[:] = attentions.operands(shapes[number], random)
            made: Passes = adapter.passes(shapes[number], arrays)
            return made

        def check(number: int, results: List[Any], dtype: str) -> float:
            return attentions.check(shapes[number], arrays, results, dtype, random)

        passes.measure(context, _shaped(subject), make, check)


def _shapes(subject: Subject) -> Dict[Shape, int]:
    case = subject.case
    return attentions.of_model(subject.facts, case.batch_per_device, case.sequence_length)


def _shaped(subject: Subject) -> List[passes.Shaped]:
    return [
        passes.Shaped(attentions.at(shape, times), times, attentions.operations(shape))
        for shape, times in _shapes(subject).items()
    ]
