"""The convolutions of a model, each distinct one alone, forward and backward: what a framework
makes of the shapes that the model has. Backward are the gradients of images and kernel, of the
first layer too. A sample of each result is held against float64. Standard library and numpy.
"""

from __future__ import annotations

from typing import Any, Dict, List

from harness.adapter import Unsupported
from harness.kind import Context, Kind, Metric, Subject
from harness.measuring.micro import convolutions, passes
from harness.operations import Convolution as Shape
from harness.operations import LayerOperations, Passes


class Convolution(Kind):
    """TFLOP/s and microseconds of each; of all, as often as the model has them, together."""

    needs = LayerOperations
    independent_ranks = True
    axes = ("framework", "model", "nodes", "devices_per_node", "batch_per_device", "precision")
    parameters = passes.PARAMETERS

    def metrics(self, subject: Subject) -> Dict[str, Metric]:
        return passes.metrics(_shaped(subject))

    def measure(self, context: Context) -> None:
        import numpy as np

        subject, adapter = context.subject, context.adapter
        shapes = list(_shapes(subject))
        if not shapes:
            raise Unsupported(f"no convolutions of {subject.case.model} are described")
        random = np.random.RandomState(adapter.place.seed)
        arrays: List[Any] = []

        def make(number: int) -> Passes:
            arrays[:] = convolutions.operands(shapes[number], random)
            made: Passes = adapter.passes(shapes[number], arrays)
            return made

        def check(number: int, results: List[Any], dtype: str) -> float:
            return convolutions.check(shapes[number], arrays, results, dtype, random)

        passes.measure(context, _shaped(subject), make, check)


def _shapes(subject: Subject) -> Dict[Shape, int]:
    return convolutions.of_model(subject.facts, subject.case.batch_per_device)


def _shaped(subject: Subject) -> List[passes.Shaped]:
    return [
        passes.Shaped(convolutions.at(shape, times), times, convolutions.operations(shape))
        for shape, times in _shapes(subject).items()
    ]
