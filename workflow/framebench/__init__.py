"""The driver's half: from configuration to cases, from records to tables and report."""

import sys
from pathlib import Path

#: The folder of the project, wherever the working directory is.
PROJECT = Path(__file__).absolute().parents[2]

# Harness and driver share the package `core`.
if (_SCRIPTS := str(PROJECT / "scripts")) not in sys.path:
    sys.path.insert(0, _SCRIPTS)
