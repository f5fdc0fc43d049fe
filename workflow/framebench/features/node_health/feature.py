"""Command ``nodes``, and verdicts on nodes in reports."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...config.arguments import records, share
from ...feature_registry import Feature

if TYPE_CHECKING:
    from ...config.settings import Settings


FAIL_ON_NODES = "5%%, or 0.05: what a node may be worse."
NODE_STATUSES = "Ends with 3 for a slow node, 4 for a failed one, 5 if of none it can be told."


def _judge(given: argparse.Namespace) -> None:
    from . import command

    command.make(given.records, given.results, given.fail_on)


def _check(settings: Settings) -> None:
    """Raise ConfigError for invalid files of rules or baseline."""
    from .rules import health

    if settings.node_rules:
        health.read_rules(settings.node_rules)
    if settings.node_baseline:
        health.read_baseline(settings.node_baseline)


def _keep(results: Path, settings: Settings) -> None:
    """Store rules and baseline with the results."""
    from . import kept_rules
    from .rules import health

    rules, baseline = settings.node_rules, settings.node_baseline
    kept_rules.keep(
        results,
        health.read_rules(rules) if rules else None,
        health.read_baseline(baseline) if baseline else None,
    )


def _add_commands(commands: Any) -> None:
    nursing = commands.add_parser("nodes", help="nodes against each other and a kept baseline")
    nursing.add_argument("--records", type=records, required=True, help="folder of records, or CSV")
    nursing.add_argument("--results", type=Path, required=True, help="folder to write to")
    nursing.add_argument("--fail-on", type=share, help=f"{FAIL_ON_NODES} {NODE_STATUSES}")
    nursing.set_defaults(command=_judge)


FEATURE = Feature(
    add_commands=_add_commands,
    result_files=("node_health.json",),
    check=_check,
    keep=_keep,
)
