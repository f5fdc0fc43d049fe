"""Rules and baseline by which nodes are judged."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

from pydantic import Field, ValidationError

from ... import PROJECT
from ...config.fields import (
    AllowedValues,
    Keys,
    ReadAs,
    Share,
    Text,
    Values,
    default,
)
from ...config.validation import ConfigError, NotAllowed, compile_pattern, explain, show
from ...config.yaml_files import read_mapping
from ...files import json_files
from ...statistics.verdicts import FALSE_ALARMS, SIDES

#: Default rules.
SHIPPED = PROJECT / "config" / "node_rules.yaml"
FORMAT = "framebench-node-baseline-1"


def _checked_pattern(text: str) -> re.Pattern[str]:
    try:
        return compile_pattern(text)
    except ValueError as error:
        raise NotAllowed(f"a regular expression ({error})", show(text)) from None


_Pattern = Annotated[re.Pattern[str], ReadAs(Text, _checked_pattern)]
_Side = Literal["others", "baseline"]
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
        known = _checked(Baseline, content if isinstance(content, dict) else {}, baseline)
    path = rules or SHIPPED
    return Health(_checked(NodeRules, read_mapping(path), path), known.figures)


_M = TypeVar("_M", bound=Keys)


def _checked(model: type[_M], content: Mapping[str, Any], path: Path) -> _M:
    try:
        return model.model_validate(content)
    except ValidationError as error:
        errors = error.errors(include_url=False)
        raise ConfigError(explain(errors, content, str(path), {})) from None
