"""Violations of the documented claims, planted one by one, and whether the claims' tests find them.

    .venv/bin/python benchmarks/planted_violations.py [WORD]

Plants each violation of ``tests/claims`` in a copy of the project, runs the tests named for it, and
prints claim, violation, tests and result. Exits with 1 if a named test passes with a violation or
fails without, or if a violation can no longer be planted. ``WORD``: only claims that contain it.
``--table``: writes the table of claims in ``docs/measuring.md`` instead.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / folder) for folder in ("workflow", "scripts", "")]

from tests.claims.register import CLAIMS, PAGE, page  # noqa: E402
from tests.claims.violating import copy_project, missed, run_tests  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("word", nargs="?", default="", help="only claims that contain it")
    parser.add_argument("--table", action="store_true", help=f"write the table in {PAGE}")
    options = parser.parse_args()
    if options.table:
        (ROOT / PAGE).write_text(page((ROOT / PAGE).read_text()))
        return 0
    chosen = [
        (claim, violation)
        for claim in CLAIMS
        if options.word in claim.words
        for violation in claim.planted
    ]
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="violations-") as name:
        right = copy_project(Path(name) / "right")
        done = run_tests(
            right, dict.fromkeys(test for _, violation in chosen for test in violation.tests)
        )
        if done.returncode:
            print(
                "tests fail, or are not found, without any violation:",
                done.stdout[-5000:],
                done.stderr,
            )
            return 1
        print("claim | violation | tests | found")
        for number, (claim, violation) in enumerate(chosen):
            try:
                passed = missed(violation, Path(name) / str(number), right)
                found = f"NOT FOUND by {', '.join(passed)}" if passed else "found"
            except (AssertionError, SyntaxError, OSError) as error:
                found = f"NOT PLANTED: {error}"
            wrong += found != "found"
            names = ", ".join(test.rpartition("::")[2] for test in violation.tests)
            print(claim.words, violation.about, names, found, sep=" | ", flush=True)
    print(
        f"{len(chosen)} violations of {len({claim for claim, _ in chosen})} claims, {wrong} missed"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
