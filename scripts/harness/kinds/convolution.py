"""The convolutions of a model, each distinct one alone, forward and backward: what a framework
makes of the shapes that the model has. Backward are the gradients of images and kernel, of the
first layer too. A sample of each result is held against float64. Standard library and numpy.
"""

from __future__ import annotations

from typing import Dict

from harness.kind import Workload
from harness.measuring.micro import convolutions, layer_kernels
from harness.operations import Convolution as Shape


class Convolution(layer_kernels.ModelKernels):
    """TFLOP/s and microseconds of each; of all, as often as the model has them, together."""

    axes = ("framework", "model", "nodes", "devices_per_node", "batch_per_device", "precision")
    layers = convolutions
    lacking = "no convolutions of {} are described"

    def shapes(self, workload: Workload) -> Dict[Shape, int]:
        return convolutions.of_model(workload.facts, workload.case.batch_per_device)
