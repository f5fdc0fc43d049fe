"""Rules by which nodes are judged."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

from pydantic import Field

from ... import PROJECT
from ...config.keys import Keys, Share, Text, Values, default, read_mapping, validated
from ...statistics.verdicts import FALSE_ALARMS

#: Default rules.
SHIPPED = PROJECT / "config" / "node_rules.yaml"


class NodeRule(Keys):
    """A rule. ``metrics``: expressions, one of which must match the whole name of a figure in
    ``node_figures.csv``."""

    metrics: Values[re.Pattern[str]]
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


def read(path: Path | None) -> NodeRules:
    """Read a file of rules, by default the shipped one. Raises ConfigError for an invalid file."""
    path = path or SHIPPED
    return validated(NodeRules, read_mapping(path), str(path))
