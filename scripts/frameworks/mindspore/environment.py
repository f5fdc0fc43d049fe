"""Set up the process before MindSpore is imported."""

from __future__ import annotations

import os

from harness.adapter import Case, RankContext


def prepare(case: Case, rank_context: RankContext) -> None:
    """Set variables that MindSpore reads when it is imported, and oneDNN at its first operation."""
    # With AVX-512, oneDNN 3.10 has only slow reference code for MindSpore's layout of weights; with
    # AVX2 it has a kernel. MindSpore's matmuls do not use oneDNN.
    os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX2")
    os.environ.setdefault("GLOG_v", "3")
