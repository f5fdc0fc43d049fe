"""Command ``nodes``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ...config.validation import records
from ...feature_registry import Feature

STATUSES = "Exit status: 3 for a slow node, 4 for a failed one, 5 if no node can be judged."


def _judge(options: argparse.Namespace) -> int:
    from . import command, judging

    source = options.records or options.results / "runs"
    rules = judging.read_rules(options.rules)
    return command.make(source, options.results, rules, options.baseline)


def _add_commands(commands: Any) -> None:
    nursing = commands.add_parser(
        "nodes", help="nodes against each other and a baseline", epilog=STATUSES
    )
    nursing.add_argument(
        "--records", type=records, help="folder of records, or CSV (default: RESULTS/runs)"
    )
    nursing.add_argument("--results", type=Path, default=Path("results"), help="where to write")
    nursing.add_argument("--rules", type=Path, help="YAML file (default: config/node_rules.yaml)")
    nursing.add_argument("--baseline", type=records, help="records of healthy nodes")
    nursing.set_defaults(command=_judge)


FEATURE = Feature(
    add_commands=_add_commands, tables=("node_health.command.NODES", "node_health.command.FIGURES")
)
