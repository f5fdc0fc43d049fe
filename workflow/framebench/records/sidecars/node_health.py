"""What the nodes of a set of results are judged by, kept beside its records in
``node_health.json`` as last given: tables are a function of that folder alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ... import PROJECT
from ...config.node_rules.health import Health, NodeRuleFile, health_of
from ...config.validation import ConfigError
from ...files import json_files
from ...files.whole_files import write_whole
from ..run import Problem, cause

FILE = "node_health.json"
#: The rules that count where none were given.
SHIPPED = PROJECT / "config" / "node_rules.yaml"


def load(results: Path) -> tuple[Health, list[Problem]]:
    """What is kept there; the shipped rules where there is no file, or one that is none of ours."""
    try:
        rules, baseline = _read(results)
        return health_of(rules, baseline, SHIPPED), []
    except FileNotFoundError:
        return health_of(None, None, SHIPPED), []
    except (OSError, ValueError, ConfigError) as error:
        return health_of(None, None, SHIPPED), [Problem(FILE, cause(error))]


def keep(results: Path, rules: NodeRuleFile | None, baseline: NodeRuleFile | None) -> None:
    """Write what is given in the place of what is kept; what is not given stays. Raises OSError,
    and ConfigError where what is given does not go with what stays."""
    if rules is None and baseline is None:
        return
    try:
        kept = _read(results)
    except (OSError, ValueError):
        kept = None, None
    rules, baseline = rules or kept[0], baseline or kept[1]
    health_of(rules, baseline, SHIPPED)
    if (rules, baseline) != kept:
        content = {"rules": _part(rules), "baseline": _part(baseline)}
        write_whole(results / FILE, json.dumps(content, indent=1) + "\n")


def _part(written: NodeRuleFile | None) -> dict[str, Any] | None:
    return written._asdict() if written else None


def _read(results: Path) -> tuple[NodeRuleFile | None, NodeRuleFile | None]:
    """Raises OSError, and ValueError for what is none of ours."""
    found = json_files.read(results / FILE)
    try:
        parts = (found["rules"], found["baseline"])
        rules, baseline = (
            NodeRuleFile(str(part["source"]), dict(part["content"])) if part else None
            for part in parts
        )
    except (KeyError, TypeError, ValueError):
        raise ValueError("is no such file of ours") from None
    return rules, baseline
