"""Measure one run: ``python scripts/frameworks/mxnet --kind train ..``."""

import os
import runpy
import sys

_HERE = os.path.dirname(os.path.realpath(__file__))
# Modules of this folder would hide others; the adapter is loaded as a package.
sys.path[:] = [entry for entry in sys.path if os.path.realpath(entry) != _HERE]
sys.argv[1:1] = ["--framework", _HERE]
runpy.run_path(os.path.join(_HERE, os.pardir, os.pardir, "harness"), run_name="__main__")
