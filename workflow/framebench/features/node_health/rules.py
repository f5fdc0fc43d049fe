"""Rules and baseline by which nodes are judged."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field

from ... import PROJECT
from ...config.keys import Keys, Share, Text, Values, default, read_as, validated
from ...config.validation import ConfigError, NotAllowed, compile_pattern
from ...config.yaml_files import read_mapping
from ...files import json_files
from ...statistics.verdicts import FALSE_ALARMS

#: Default rules.
SHIPPED = PROJECT / "config" / "node_rules.yaml"
FORMAT = "framebench-node-baseline-1"


def _checked_pattern(text: Any) -> re.Pattern[str]:
    try:
        return compile_pattern(str(text))
    except ValueError as error:
        raise NotAllowed(f"a regular expression ({error})") from None


_Pattern = Annotated[re.Pattern[str], read_as(_checked_pattern)]
_Numbers = Annotated[list[float], Field(min_length=1)]


class NodeRule(Keys):
    """A rule. ``metrics``: expressions, one of which must match the whole name of a figure in
    ``node_figures.csv``."""

    metrics: Values[_Pattern]
    worse_by: Share = default(0.05)


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

    format: Literal["framebench-node-baseline-1"]
    figures: dict[str, Kept]


class Health(NamedTuple):
    """Rules and baseline. ``baseline``: by the name of a figure."""

    rules: NodeRules
    baseline: Mapping[str, Kept]


def health_of(rules: Path | None, baseline: Path | None) -> Health:
    """Read files of rules, by default the shipped one, and of a baseline. Raises ConfigError for an
    invalid file."""
    known = Baseline.model_construct(figures={})
    if baseline:
        try:
            content = json_files.read(baseline)
        except (OSError, ValueError) as error:
            raise ConfigError(f"{baseline}: cannot be read as JSON: {error}") from None
        known = validated(Baseline, content, str(baseline))
    path = rules or SHIPPED
    return Health(validated(NodeRules, read_mapping(path), str(path)), known.figures)
