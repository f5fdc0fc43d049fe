"""Our file of rules: which figures of a node count, and by how much it may be worse."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field

from ...statistics.verdicts import FALSE_ALARMS, SIDES
from ..fields import Keys, OneOf, ReadAs, Share, Text, Values, default
from ..validation import ConfigError, NotAllowed, compile_pattern, explain, show

#: What a node may be worse where a rule does not say.
WORSE_BY = 0.05


def _checked_pattern(text: str) -> re.Pattern[str]:
    try:
        return compile_pattern(text)
    except ValueError as error:
        raise NotAllowed(f"a regular expression ({error})", show(text)) from None


_Pattern = Annotated[re.Pattern[str], ReadAs(Text, _checked_pattern)]
_Side = Annotated[Literal["others", "baseline"], OneOf()]


class _RuleKeys(Keys):
    """``metrics``: names of figures as ``node_figures.csv`` has them, each of which one of these
    expressions must match as a whole."""

    metrics: Values[_Pattern]
    worse_by: Share = default(WORSE_BY)
    against: Values[_Side] = default([*SIDES])


class RulesFile(Keys):
    """What stands in the file."""

    false_alarms: Share = default(FALSE_ALARMS)
    rules: Annotated[dict[Text, _RuleKeys], Field(min_length=1)]


class NodeRule(NamedTuple):
    """``metrics``: names of figures, one of which must match as a whole; ``worse_by``: a part;
    ``against``: of ``verdicts.SIDES``."""

    name: str
    metrics: tuple[re.Pattern[str], ...]
    worse_by: float
    against: tuple[str, ...]


@dataclass(frozen=True)
class OwnRules:
    """``false_alarms``: in this part of all sets of healthy nodes some node is called slower."""

    rules: tuple[NodeRule, ...]
    false_alarms: float

    def rule_of(self, figure: str) -> NodeRule | None:
        """The first whose metrics have the name of a figure; None where it does not count."""
        for rule in self.rules:
            if any(pattern.fullmatch(figure) for pattern in rule.metrics):
                return rule
        return None


def rules_of(written: Mapping[str, Any], source: str) -> OwnRules:
    """What a file has ``written``. Raises ConfigError, which names ``source``."""
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
