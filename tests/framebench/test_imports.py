"""What a plan must not wait for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

WORKFLOW = Path(__file__).parents[2] / "workflow"


def test_a_plan_does_not_import_what_only_tables_need() -> None:
    slow = "{'pandas', 'scipy', 'jsonschema'}"
    code = f"import sys, framebench.driver; print(*{slow} & {{*sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=WORKFLOW, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == ""
