"""Measure one run: ``python scripts/frameworks/tensorflow --kind train ..``."""

import os
import runpy
import sys

_HERE = os.path.realpath(sys.path.pop(0))  # modules of this folder would hide others
sys.argv[1:1] = ["--framework", _HERE]
runpy.run_path(os.path.join(_HERE, os.pardir, os.pardir, "harness"), run_name="__main__")
