"""Our file of rules: figures of a node that count, and how much worse they may be."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field

from ....config.fields import Keys, OneOf, ReadAs, Share, Text, Values, default
from ....config.validation import ConfigError, NotAllowed, compile_pattern, explain, show
from ....statistics.verdicts import FALSE_ALARMS, SIDES

#: Default of ``worse_by``.
WORSE_BY = 0.05


def _checked_pattern(text: str) -> re.Pattern[str]:
    try:
        return compile_pattern(text)
    except ValueError as error:
        raise NotAllowed(f"a regular expression ({error})", show(text)) from None


_Pattern = Annotated[re.Pattern[str], ReadAs(Text, _checked_pattern)]
_Side = Annotated[Literal["others", "baseline"], OneOf()]


class _RuleKeys(Keys):
    """Keys of a rule. ``metrics``: expressions, one of which must match the whole name of a figure
    in ``node_figures.csv``."""

    metrics: Values[_Pattern]
    worse_by: Share = default(WORSE_BY)
    against: Values[_Side] = default([*SIDES])


class RulesFile(Keys):
    """Content of a file of rules."""

    false_alarms: Share = default(FALSE_ALARMS)
    rules: Annotated[dict[Text, _RuleKeys], Field(min_length=1)]


class NodeRule(NamedTuple):
    """A rule. ``metrics``: expressions, one of which must match the whole name of a figure;
    ``worse_by``: a fraction; ``against``: of ``verdicts.SIDES``."""

    name: str
    metrics: tuple[re.Pattern[str], ...]
    worse_by: float
    against: tuple[str, ...]


@dataclass(frozen=True)
class OwnRules:
    """Our rules. ``false_alarms``: probability that some node of a healthy set is called slower."""

    rules: tuple[NodeRule, ...]
    false_alarms: float

    def rule_of(self, figure: str) -> NodeRule | None:
        """Return the first rule that matches a figure's name; None if the figure does not count."""
        for rule in self.rules:
            if any(pattern.fullmatch(figure) for pattern in rule.metrics):
                return rule
        return None


def rules_of(written: Mapping[str, Any], source: str) -> OwnRules:
    """Return the rules ``written`` in a file. Raises ConfigError, which names ``source``."""
    from pydantic import ValidationError

    try:
        checked = RulesFile.model_validate(written)
    except ValidationError as error:
        raise ConfigError(explain(error.errors(include_url=False), written, source, {})) from None
    rules = (
        NodeRule(name, tuple(keys.metrics), keys.worse_by, tuple(keys.against))
        for name, keys in checked.rules.items()
    )
    return OwnRules(tuple(rules), checked.false_alarms)
