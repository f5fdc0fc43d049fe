"""Set up the process before MindSpore is imported."""

from __future__ import annotations

import os

from harness.adapter import Case, RankContext


def prepare(case: Case, rank_context: RankContext) -> None:
    """Set variables that MindSpore reads when it is imported, and oneDNN at its first operation."""
    # With AVX-512, oneDNN 3.10 runs MindSpore's layout of weights in its reference code. Below, it
    # has a kernel for it. MindSpore's matmuls are its own.
    os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX2")
    os.environ.setdefault("GLOG_v", "3")
