"""Rules and baseline that judge the nodes of a results folder.

Kept in ``node_health.json`` in the results, with the latest values, so that tables depend on that
folder only.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ...config.validation import ConfigError
from ...files import json_files
from ...files.whole_files import write_whole
from ...records.run import Problem, cause
from .rules.health import Health, NodeRuleFile, health_of

FILE = "node_health.json"


def load(results: Path) -> tuple[Health, list[Problem]]:
    """Return stored rules and baseline; the shipped rules without a valid file, and the problem."""
    try:
        rules, baseline = _read(results)
        return health_of(rules, baseline), []
    except FileNotFoundError:
        return health_of(None, None), []
    except (OSError, ValueError, ConfigError) as error:
        return health_of(None, None), [Problem(FILE, cause(error))]


def keep(results: Path, rules: NodeRuleFile | None, baseline: NodeRuleFile | None) -> None:
    """Write given rules and baseline; the one that is not given keeps its stored value.

    Raises OSError, and ConfigError if rules and baseline do not fit each other.
    """
    if rules is None and baseline is None:
        return
    try:
        kept = _read(results)
    except (OSError, ValueError):
        kept = None, None
    rules, baseline = rules or kept[0], baseline or kept[1]
    health_of(rules, baseline)
    if (rules, baseline) != kept:
        content = {"rules": _part(rules), "baseline": _part(baseline)}
        write_whole(results / FILE, json.dumps(content, indent=1) + "\n")


def _part(written: NodeRuleFile | None) -> dict[str, Any] | None:
    return written._asdict() if written else None


def _read(results: Path) -> tuple[NodeRuleFile | None, NodeRuleFile | None]:
    """Return the stored rules and baseline. Raises OSError, and ValueError for an invalid file."""
    content = json_files.read(results / FILE)
    try:
        parts = (content["rules"], content["baseline"])
        rules, baseline = (
            NodeRuleFile(str(part["source"]), dict(part["content"])) if part else None
            for part in parts
        )
    except (KeyError, TypeError, ValueError):
        raise ValueError("is not a file that Framebench wrote") from None
    return rules, baseline
