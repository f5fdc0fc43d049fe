"""What a plan must not wait for."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

WORKFLOW = Path(__file__).parents[2] / "workflow"


def test_a_plan_does_not_import_what_only_tables_need() -> None:
    rules = (WORKFLOW / "rules/common/plan.smk").read_text()
    imports = re.findall(r"^from framebench[.\w]* import (?:\([^)]*\)|.*)$", rules, re.M)
    assert any("certify" in one for one in imports), "the rules import nothing any more"
    slow = "{'pandas', 'scipy', 'jsonschema'}"
    code = "\n".join(["import sys", *imports, f"print(*{slow} & {{*sys.modules}})"])
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=WORKFLOW, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == ""
