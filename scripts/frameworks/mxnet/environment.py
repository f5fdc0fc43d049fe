"""Set up the process before MXNet is imported."""

from __future__ import annotations

import os

from harness.adapter import Case, RankContext


def prepare(case: Case, rank_context: RankContext) -> None:
    """Set variables that MXNet and its libraries read when they are loaded."""
    # OpenMP reads it once, also for MXNet's own threads, which no function can configure
    os.environ["OMP_NUM_THREADS"] = str(rank_context.threads)
    if case.precision == "fp32":
        os.environ["NVIDIA_TF32_OVERRIDE"] = "0"
