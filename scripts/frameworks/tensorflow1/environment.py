"""Set up the process before TensorFlow is imported."""

from __future__ import annotations

import os
import warnings

from harness.adapter import Case, RankContext


def prepare(case: Case, rank_context: RankContext) -> None:
    """Set variables that TensorFlow reads when it is imported."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    # Read by cuBLAS and cuDNN. NVIDIA's TensorFlow 1 would take TF32 for float32 on Ampere.
    os.environ["NVIDIA_TF32_OVERRIDE"] = "0"
    # TensorFlow warns that newer NumPy versions change dtypes
    warnings.filterwarnings("ignore", category=FutureWarning)
