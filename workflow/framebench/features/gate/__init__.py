"""Commands ``gate`` and ``bisect``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ...config.validation import argument, share
from ...feature_registry import Feature
from ...statistics.verdicts import PAIRS

SIDE = "a variant, a model of your own, or a set of records: see docs/ci.md"
VERSION = "version of the package, or of your own model (REVISION:FILE.py)"
GATE_STATUSES = "0 passed; 1 a regression is shown; 3 cannot tell yet, or nothing to compare"
BISECT_STATUSES = (
    "0 the version is found; 1 the bad version is within the margin of the good one; 3 cannot tell "
    "yet, or several versions are left"
)


def _gate(options: argparse.Namespace) -> int:
    from . import command

    return command.gate(options)


def _bisect(options: argparse.Namespace) -> int:
    from . import bisect

    return bisect.bisect(options)


def _add_commands(commands: Any) -> None:
    title = "measure two sides in pairs, and decide"
    gating = _measuring(commands, "gate", title, GATE_STATUSES, _gate)
    gating.add_argument("--base", required=True, help=SIDE)
    gating.add_argument("--candidate", required=True, help="the other side, of the same kind")
    margin = argument(share)
    gating.add_argument("--fail-on", type=margin, default=0.05, help="the margin (default: 5%%)")
    title = "find the version that changed a figure, or the commit of your own model"
    searching = _measuring(commands, "bisect", title, BISECT_STATUSES, _bisect)
    package = "package of the framework's environment, to search its versions"
    searching.add_argument("--package", help=package)
    searching.add_argument("--good", required=True, metavar="VERSION", help=VERSION)
    later = "later version, whose figure has changed"
    searching.add_argument("--bad", required=True, metavar="VERSION", help=later)
    searching.add_argument("--margin", type=margin, default=0.05, help="least change to find (5%%)")


def _measuring(commands: Any, name: str, title: str, statuses: str, run: Any) -> Any:
    """Add a command that measures pairs with Snakemake, and return its parser."""
    epilog = f"Exit status: {statuses}; 4 broken. Words after -- are passed to Snakemake."
    parser = commands.add_parser(name, help=title, epilog=epilog)
    about = f"most pairs of runs of each case (default: {PAIRS})"
    parser.add_argument("--pairs", type=int, default=PAIRS, help=about)
    parser.add_argument("--results", type=Path, default=Path("results", name))
    about = "as for Snakemake"
    parser.add_argument("--config", nargs="+", default=[], metavar="KEY=VALUE", help=about)
    parser.add_argument("words", nargs="*", metavar="-- WORD", help="for Snakemake")
    parser.set_defaults(command=run)
    return parser


FEATURE = Feature(add_commands=_add_commands, tables=("gate.decisions.TABLE",))
