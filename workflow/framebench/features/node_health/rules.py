"""Rules and baseline by which nodes are judged.

``node_health.json`` of the results keeps the latest rules and baseline that were given, so that
tables depend on that folder only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

from pydantic import Field, ValidationError

from ... import PROJECT
from ...config.fields import (
    AllowedValues,
    Keys,
    OneOf,
    ReadAs,
    Share,
    Text,
    Values,
    default,
)
from ...config.validation import ConfigError, NotAllowed, compile_pattern, explain, show
from ...config.yaml_files import read_mapping
from ...files import json_files
from ...files.whole_files import write_whole
from ...records.run import Problem, cause
from ...statistics.verdicts import FALSE_ALARMS, SIDES

FILE = "node_health.json"
#: Default rules.
SHIPPED = PROJECT / "config" / "node_rules.yaml"
FORMAT = "framebench-node-baseline-1"


def _checked_pattern(text: str) -> re.Pattern[str]:
    try:
        return compile_pattern(text)
    except ValueError as error:
        raise NotAllowed(f"a regular expression ({error})", show(text)) from None


_Pattern = Annotated[re.Pattern[str], ReadAs(Text, _checked_pattern)]
_Side = Annotated[Literal["others", "baseline"], OneOf()]
_Numbers = Annotated[list[float], Field(min_length=1), AllowedValues("a list of numbers")]


class NodeRule(Keys):
    """A rule. ``metrics``: expressions, one of which must match the whole name of a figure in
    ``node_figures.csv``."""

    metrics: Values[_Pattern]
    worse_by: Share = default(0.05)
    against: Values[_Side] = default([*SIDES])


class NodeRules(Keys):
    """Content of a file of rules. ``false_alarms``: probability that some node of a healthy set is
    called slower."""

    false_alarms: Share = default(FALSE_ALARMS)
    rules: Annotated[dict[Text, NodeRule], Field(min_length=1)]

    def rule_of(self, figure: str) -> str:
        """Return the name of the first rule that matches a figure; "" if it does not count."""
        for name, rule in self.rules.items():
            if any(pattern.fullmatch(figure) for pattern in rule.metrics):
                return name
        return ""


class Kept(Keys):
    """A figure in a baseline: repeats of healthy nodes, with their unit."""

    unit: str
    values: _Numbers


class Baseline(Keys):
    """Content of a baseline file. ``figures``: by name."""

    format: Annotated[Literal["framebench-node-baseline-1"], OneOf()]
    figures: dict[str, Kept]


class NodeRuleFile(NamedTuple):
    """Content of a file, and its name in messages."""

    source: str
    content: Mapping[str, Any]


class Health(NamedTuple):
    """Rules and baseline. ``baseline``: by the name of a figure."""

    rules: NodeRules
    baseline: Mapping[str, Kept]


_M = TypeVar("_M", bound=Keys)


def _checked(model: type[_M], written: NodeRuleFile) -> _M:
    source, content = written
    try:
        return model.model_validate(content)
    except ValidationError as error:
        raise ConfigError(explain(error.errors(include_url=False), content, source, {})) from None


def read_rules(path: Path) -> NodeRuleFile:
    """Read a file of rules. Raises ConfigError for an invalid one."""
    written = NodeRuleFile(str(path), read_mapping(path))
    _checked(NodeRules, written)
    return written


def read_baseline(path: Path) -> NodeRuleFile:
    """Read a baseline file. Raises ConfigError for an invalid one."""
    try:
        content = json_files.read(path)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: cannot be read as JSON: {error}") from None
    written = NodeRuleFile(str(path), content if isinstance(content, dict) else {})
    _checked(Baseline, written)
    return written


def health_of(rules: NodeRuleFile | None, baseline: NodeRuleFile | None) -> Health:
    """Return rules and baseline, by default the shipped rules. Raises ConfigError."""
    checked = _checked(NodeRules, rules or read_rules(SHIPPED))
    return Health(checked, _checked(Baseline, baseline).figures if baseline else {})


def load(results: Path) -> tuple[Health, list[Problem]]:
    """Return kept rules and baseline; the shipped rules without a valid file, and the problem."""
    try:
        return health_of(*_read(results)), []
    except (OSError, ValueError, ConfigError) as error:
        return health_of(None, None), [Problem(FILE, cause(error))]


def keep(results: Path, rules: NodeRuleFile | None, baseline: NodeRuleFile | None) -> None:
    """Write given rules and baseline; the one that is not given keeps its stored value."""
    if rules is None and baseline is None:
        return
    try:
        kept = _read(results)
    except (OSError, ValueError):
        kept = None, None
    parts = {"rules": rules or kept[0], "baseline": baseline or kept[1]}
    content = {name: part and part._asdict() for name, part in parts.items()}
    write_whole(results / FILE, json.dumps(content, indent=1) + "\n")


def _read(results: Path) -> tuple[NodeRuleFile | None, NodeRuleFile | None]:
    """Return the kept rules and baseline; None without any. Raises OSError, and ValueError for an
    invalid file."""
    if not (results / FILE).exists():
        return None, None
    content = json_files.read(results / FILE)
    try:
        rules, baseline = (
            NodeRuleFile(str(part["source"]), dict(part["content"])) if part else None
            for part in (content["rules"], content["baseline"])
        )
    except (KeyError, TypeError, ValueError):
        raise ValueError("is not a file that Framebench wrote") from None
    return rules, baseline
