"""Capabilities of nearly every framework, in one class; adapters add further ones.

Standard library and numpy; Python 3.7 to 3.13.
"""

from __future__ import annotations

from harness.adapter import MatmulTrace, Numerics, PeakMatmul, StepBreakdown
from harness.batch_input import Checkpointing
from harness.communication import ShardedMatmuls
from harness.operations import LayerOperations
from harness.overlapping import Overlapping


class CommonCapabilities(
    MatmulTrace,
    Numerics,
    PeakMatmul,
    StepBreakdown,
    Overlapping,
    ShardedMatmuls,
    LayerOperations,
    Checkpointing,
):
    """Several devices, single operations and collectives, step breakdown, comparison with the
    reference, and checkpoints."""
