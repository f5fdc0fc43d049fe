"""Convolutions of a model, each distinct shape alone, forward and backward.

The backward pass gives the gradients of images and kernel, for the first layer too. A sample of
each result is checked against float64. Standard library and numpy.
"""

from __future__ import annotations

from typing import Dict

from harness.kind import Workload
from harness.measuring.micro import convolutions, layer_kernels
from harness.operations import ConvolutionShape


class Convolution(layer_kernels.ModelKernels):
    """Convolutions alone: TFLOP/s and microseconds of each shape, and of all in the model."""

    axes = ("framework", "model", "nodes", "devices_per_node", "batch_per_device", "precision")
    operations = staticmethod(convolutions.operations)
    operands = staticmethod(convolutions.operands)
    at = staticmethod(convolutions.at)
    check_results = staticmethod(convolutions.check)
    lacking = "no convolutions of {} are described"

    def shapes(self, workload: Workload) -> Dict[ConvolutionShape, int]:
        return convolutions.layer_counts(workload.model_config, workload.case.batch_per_device)
