"""Run all simulations, print their table, and write it to ``results.md``."""

from __future__ import annotations

import sys
from pathlib import Path

from . import history, medians, odd_repeats, pairs, ratios, steps
from .row import PromiseRow

MODULES = (medians, ratios, pairs, steps, history, odd_repeats)
HEAD = """# Statistical promises, simulated

Written by `.venv/bin/python -m benchmarks.promises {draws}`, which fails if a promise is missed by
more than three standard errors. Some rows have a tenth of the {draws} draws or less. "Kept aside":
no method was chosen on this sampler. Rows without a goal show another method, or what no method can
promise.

| promise | sampler | goal | result |
|---|---|---|--:|"""


def main() -> int:
    """Run every module; return 1 if a promise is missed."""
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    lines, missed = [HEAD.format(draws=draws)], 0
    for module in MODULES:
        row: PromiseRow
        for row in module.rows(draws):
            lines.append(str(row))
            missed += row.is_missed
            print(row, flush=True)
    (Path(__file__).parent / "results.md").write_text("\n".join([*lines, ""]))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
