"""Run simulations, print their tables, and write them to ``results.md``."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from . import gates, history, intervals, steps, winners

METHODS = {
    "intervals": intervals.rows,
    "gates": gates.gate_rows,
    "bisections": gates.bisection_rows,
    "winners": winners.rows,
    "steps": steps.rows,
    "history": history.rows,
}
RESULTS = Path(__file__).parent / "results.md"
COLUMNS = "| promise | sampler | goal | result |\n|---|---|---|--:|"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("methods", nargs="*", metavar="METHOD", help=", ".join(METHODS))
    parser.add_argument("--draws", type=int, default=20_000)
    options = parser.parse_args()
    head, *parts = re.split(r"^## (\w+)\n", RESULTS.read_text(), flags=re.MULTILINE)
    tables = dict(zip(parts[::2], map(str.strip, parts[1::2]), strict=True))
    missed = False
    for name in options.methods or METHODS:
        lines = [f"{options.draws} draws.", "", COLUMNS]
        for row in METHODS[name](options.draws):
            print(row, flush=True)
            lines.append(str(row))
            missed |= row.is_missed
        tables[name] = "\n".join(lines)
    sections = [f"## {name}\n\n{tables[name]}\n" for name in METHODS if name in tables]
    RESULTS.write_text(head + "\n".join(sections))
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
