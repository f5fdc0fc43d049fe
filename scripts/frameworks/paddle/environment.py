"""Set up the process before Paddle is imported."""

from __future__ import annotations

import os
import warnings

from harness.adapter import Case, RankContext


def prepare(case: Case, rank_context: RankContext) -> None:
    """Set a variable that Paddle's libraries read when they are loaded."""
    # cuBLAS and cuDNN read this variable when they are loaded
    if case.precision != "tf32":
        os.environ["NVIDIA_TF32_OVERRIDE"] = "0"
    # ccache is for extensions, of which there are none here
    warnings.filterwarnings("ignore", message="No ccache found")
