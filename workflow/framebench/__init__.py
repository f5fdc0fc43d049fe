"""Driver: from configuration to cases, from records to tables and report."""

import sys
from pathlib import Path

#: Folder of the project, independent of the working directory.
PROJECT = Path(__file__).absolute().parents[2]

# Harness and driver share the package `core`.
_SCRIPTS = str(PROJECT / "scripts")
if _SCRIPTS not in sys.path:
    sys.path.insert(0, _SCRIPTS)
