"""Attention of a transformer alone, forward and backward.

The framework's fused operator is used, or separate operations, as in its models here. Heads and
their size come from the model, batch and sequence length from the case; without dropout. One head's
results are checked against float64. Standard library and numpy.
"""

from __future__ import annotations

from typing import Dict

from harness.kind import Workload
from harness.measuring.micro import attentions, layer_kernels
from harness.operations import AttentionShape


class Attention(layer_kernels.ModelKernels):
    """Attention alone: TFLOP/s and microseconds of each shape, and of all layers together."""

    axes = (
        "framework", "model", "nodes", "devices_per_node", "batch_per_device", "precision",
        "sequence_length",
    )  # fmt: skip
    operations = staticmethod(attentions.operations)
    operands = staticmethod(attentions.operands)
    at = staticmethod(attentions.at)
    check_results = staticmethod(attentions.check)
    lacking = "{} has no attention"

    def shapes(self, workload: Workload) -> Dict[AttentionShape, int]:
        case = workload.case
        return attentions.layer_counts(
            workload.model_config, case.batch_per_device, case.sequence_length
        )
