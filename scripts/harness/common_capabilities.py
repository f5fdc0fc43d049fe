"""What nearly every framework brings, said once: its adapter names what it brings besides.

Standard library and numpy; Python 3.7 to 3.13.
"""

from __future__ import annotations

from harness.adapter import Matmul, Numerics, Operators, StepBreakdown
from harness.batch_input import Resuming
from harness.communication import ShardedProducts
from harness.operations import LayerOperations
from harness.overlapping import Overlapping


class CommonCapabilities(
    Operators,
    Numerics,
    Matmul,
    StepBreakdown,
    Overlapping,
    ShardedProducts,
    LayerOperations,
    Resuming,
):
    """Several devices, single operations and collectives, a step in its parts, comparison with the
    reference, and trainings that go on from checkpoints."""
