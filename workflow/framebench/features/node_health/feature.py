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


def _judge(options: argparse.Namespace) -> None:
    from . import command

    _keep_files(options.results, options.rules, options.baseline)
    command.make(options.records or options.results / "runs", options.results, options.fail_on)


def _check(settings: Settings) -> None:
    """Raise ConfigError for invalid files of rules or baseline."""
    from . import rules

    given = settings.of_features
    if given["node_rules"]:
        rules.read_rules(given["node_rules"])
    if given["node_baseline"]:
        rules.read_baseline(given["node_baseline"])


def _keep(results: Path, settings: Settings) -> None:
    """Store rules and baseline of the configuration with the results."""
    given = settings.of_features
    _keep_files(results, given["node_rules"], given["node_baseline"])


def _keep_files(results: Path, written: Path | None, baseline: Path | None) -> None:
    """Store rules and baseline with the results. Raises ConfigError for invalid files."""
    from . import rules

    rules.keep(
        results,
        rules.read_rules(written) if written else None,
        rules.read_baseline(baseline) if baseline else None,
    )


def _add_commands(commands: Any) -> None:
    nursing = commands.add_parser("nodes", help="nodes against each other and a kept baseline")
    nursing.add_argument(
        "--records", type=records, help="folder of records, or CSV (default: RESULTS/runs)"
    )
    nursing.add_argument("--results", type=Path, default=Path("results"), help="where to write")
    nursing.add_argument("--rules", type=Path, help="YAML file, which is kept with the results")
    nursing.add_argument("--baseline", type=Path, help="JSON file, which is kept with the results")
    nursing.add_argument("--fail-on", type=share, help=f"{FAIL_ON_NODES} {NODE_STATUSES}")
    nursing.set_defaults(command=_judge)


FEATURE = Feature(
    add_commands=_add_commands,
    result_files=("node_health.json",),
    check=_check,
    keep=_keep,
)
