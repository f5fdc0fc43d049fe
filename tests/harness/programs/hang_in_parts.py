"""Time the parts of a step that hangs, with a limit of a second."""

from __future__ import annotations

import sys
import time

from harness.adapter import StepBreakdown, StepPart
from harness.measuring import after_window
from harness.messages import report

from tests.harness.recorder import Recorder


class Hanging(StepBreakdown, Recorder):
    def step_parts(self) -> list[StepPart]:
        time.sleep(600)
        return []


after_window.LEAST_SECONDS = 1
after_window.note_parts(Hanging(), 3, 0.0, report.Report(sys.argv[1], 0, "host"))
