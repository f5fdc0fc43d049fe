"""What nearly every framework brings, said once: its adapter names what it brings besides.

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
    """Several devices, single operations and collectives, a step in its parts, comparison with the
    reference, and trainings that go on from checkpoints."""
