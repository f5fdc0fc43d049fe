"""Simulations of all statistical promises, each with its seed.

    .venv/bin/python -m benchmarks.promises [MODULE..] [--draws N]

Prints a table of promise, sampler, goal and result for each module, and writes it to ``results.md``
here; tables of other modules stay. A module simulates the promises of one method. Samplers are
those of ``tests/framebench/statistics``, where the tests run a smaller version. Rows "for
comparison" show other methods, and hold no promise. Ends with 1 if a promise is missed by more than
three standard errors of the simulation.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "workflow"), str(ROOT / "scripts"), str(ROOT)]
