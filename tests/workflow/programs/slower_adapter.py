"""Adapter of a framework that is the toy, with slower steps."""

from __future__ import annotations

import os
from pathlib import Path

#: Seconds of a step, by the folder of the framework.
SECONDS = {"slower": 0.025, "slowest": 0.1}
os.environ["FRAMEBENCH_TOY"] = f"exact,sleep={SECONDS[Path(__file__).parent.name]}"

from frameworks.toy.adapter import ToyAdapter  # noqa: E402


class Other(ToyAdapter):
    pass
