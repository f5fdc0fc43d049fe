"""The attention of a transformer alone, forward and backward, in the fused operator that the
framework's models here call, or written out where they write it out: heads and their size are the
model's, batch and sequence length the case's. Without dropout. One head's results are held against
float64. Standard library and numpy.
"""

from __future__ import annotations

from typing import Dict

from harness.kind import Workload
from harness.measuring.micro import attentions, layer_kernels
from harness.operations import Attention as Shape


class Attention(layer_kernels.ModelKernels):
    """TFLOP/s and microseconds of each; of all layers together."""

    axes = (
        "framework", "model", "nodes", "devices_per_node", "batch_per_device", "precision",
        "sequence_length",
    )  # fmt: skip
    layers = attentions
    lacking = "{} has no attention"

    def shapes(self, workload: Workload) -> Dict[Shape, int]:
        case = workload.case
        return attentions.of_model(workload.facts, case.batch_per_device, case.sequence_length)
