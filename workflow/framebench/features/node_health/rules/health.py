"""Rules and baseline of node verdicts, read from our files or SuperBench's."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from .... import PROJECT
from ....config.validation import ConfigError, show
from ....config.yaml_files import read_mapping
from ....files import json_files
from . import own, superbench
from .own import OwnRules
from .superbench import TheirRules

#: Default rules.
SHIPPED = PROJECT / "config" / "node_rules.yaml"
#: Format of our baseline files.
FORMAT = "framebench-node-baseline-1"
_BASELINES = (
    "a baseline of Framebench (tables/node_baseline.json), or SuperBench's: metrics and numbers"
)


class NodeRuleFile(NamedTuple):
    """Content of a file, and its name in messages."""

    source: str
    content: Mapping[str, Any]


class Kept(NamedTuple):
    """A figure in a baseline: repeats of healthy nodes, with their unit. SuperBench's has one
    number without a unit."""

    values: Sequence[float]
    unit: str


@dataclass(frozen=True)
class Health:
    """Rules and baseline. ``baseline``: by the name of a figure."""

    rules: OwnRules | TheirRules
    baseline: Mapping[str, Kept] = field(default_factory=dict)


def read_rules(path: Path) -> NodeRuleFile:
    """Read a file of rules. Raises ConfigError for an invalid one."""
    written = NodeRuleFile(str(path), read_mapping(path))
    rules_of(written)
    return written


def read_baseline(path: Path) -> NodeRuleFile:
    """Read a baseline file. Raises ConfigError for an invalid one."""
    try:
        content = json_files.read(path)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: cannot be read as JSON: {error}") from None
    written = NodeRuleFile(str(path), content)
    baseline_of(written)
    return written


def rules_of(written: NodeRuleFile) -> OwnRules | TheirRules:
    """Return the rules in a file, ours or SuperBench's. Raises ConfigError."""
    theirs = superbench.is_theirs(written.content)
    return (superbench.rules_of if theirs else own.rules_of)(written.content, written.source)


def baseline_of(written: NodeRuleFile) -> dict[str, Kept]:
    """Return the baseline in a file, by the name of a figure. Raises ConfigError."""
    source, content = written
    if not isinstance(content, Mapping) or not content:
        raise ConfigError(f"{source}: found {show(content)}; allowed: {_BASELINES}")
    if "format" not in content:
        return {name: Kept([_number(value, name, source)], "") for name, value in content.items()}
    figures = content.get("figures")
    if content["format"] != FORMAT or not isinstance(figures, Mapping):
        raise ConfigError(f"{source}: format: found {show(content['format'])}; allowed: {FORMAT}")
    results = {}
    for name, figure in figures.items():
        values = figure.get("values") if isinstance(figure, Mapping) else None
        if not isinstance(values, list) or not values or not isinstance(figure.get("unit"), str):
            raise ConfigError(
                f"{source}: figures.{name}: found {show(figure)}; allowed: unit and values"
            )
        results[str(name)] = Kept(
            [_number(value, name, source) for value in values], figure["unit"]
        )
    return results


def health_of(rules: NodeRuleFile | None, baseline: NodeRuleFile | None) -> Health:
    """Return rules and baseline, by default the shipped rules.

    Raises ConfigError if rules and baseline do not fit each other.
    """
    known = rules_of(rules or read_rules(SHIPPED))
    is_bare = baseline is not None and "format" not in baseline.content
    if baseline is not None and is_bare and isinstance(known, OwnRules):
        raise ConfigError(
            f"config: node_baseline: found {baseline.source}, numbers without repeats, for rules "
            "that test repeats; allowed: a baseline of Framebench (tables/node_baseline.json), or "
            "node_rules=FILE with rules of SuperBench's"
        )
    if isinstance(known, TheirRules) and baseline is None and known.needs_baseline:
        source = rules.source if rules else ""
        raise ConfigError(
            f"config: node_rules: found {source}, which has rules of function variance; allowed: "
            "with node_baseline=FILE"
        )
    return Health(known, baseline_of(baseline) if baseline else {})


def baseline_text(figures: Mapping[str, Kept]) -> str:
    """Return the text of a baseline file."""
    rows = {
        name: {"unit": figure.unit, "values": [*figure.values]} for name, figure in figures.items()
    }
    return json.dumps({"format": FORMAT, "figures": rows}, indent=1) + "\n"


def _number(value: Any, name: str, source: str) -> float:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value):
        raise ConfigError(f"{source}: {name[:80]}: found {show(value)}; allowed: a number")
    return float(value)
