"""Report of an interrupted call."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from framebench.runs import partial

from ..conftest import ROOT


def test_signals_to_the_caller_do_not_reach_the_report() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tests/framebench/programs/report_amid_signals.py"],
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'workflow'}:{ROOT / 'scripts'}"},
        start_new_session=True,
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
    )
    assert done.stdout == "50\n", "reports were ended by signals, or their maker was"


def test_the_caller_can_end_a_report() -> None:
    def end(process: subprocess.Popen[bytes]) -> int:
        process.terminate()
        return process.wait(20)

    assert not partial.make(["sh", "-c", "sleep 60"], ["report"], Path(), end)
