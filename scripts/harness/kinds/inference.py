"""Inference: forward steps, over a batch on the device unless the case asks for another input."""

from __future__ import annotations

from harness.kind import USUAL_AXES
from harness.measuring.steps import StepBenchmark


class Inference(StepBenchmark):
    """Inference: samples per second of forward steps."""

    axes = (*USUAL_AXES, "input")
