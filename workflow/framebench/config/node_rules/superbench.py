"""SuperBench's file of rules for its data diagnosis, and its baseline.

Read is what its documentation defines: ``value`` (the figure itself meets the criteria),
``variance`` (the figure over the baseline's, less 1, does), ``multi_rules`` (what several rules
with ``store`` have counted does) and ``failure_check``, which asks for nothing that is not said of
every node here: that it failed, or has no figure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..validation import ConfigError, did_you_mean, show
from . import criteria

VALUE, VARIANCE, MULTI, FAILURES = "value", "variance", "multi_rules", "failure_check"
FUNCTIONS = (VALUE, VARIANCE, MULTI, FAILURES)
_KEYS = ("function", "criteria", "categories", "metrics", "store")


class TheirRule(NamedTuple):
    """``metrics``: expressions, one of which must be found in the name of a figure; ``stores``: it
    calls no node itself, but counts for a rule of several."""

    name: str
    function: str
    meets: Callable[[Any], bool]
    category: str
    metrics: tuple[re.Pattern[str], ...]
    stores: bool


@dataclass(frozen=True)
class TheirRules:
    """In the order of the file."""

    rules: tuple[TheirRule, ...]

    @property
    def needs_baseline(self) -> bool:
        """Whether some rule is of a difference from it."""
        return any(rule.function == VARIANCE for rule in self.rules)


def is_theirs(written: Mapping[str, Any]) -> bool:
    """Whether a file of rules is one of SuperBench's."""
    return "superbench" in written


def rules_of(written: Mapping[str, Any], source: str) -> TheirRules:
    """What a file has ``written``. Raises ConfigError, which names ``source``."""
    unknown = [key for key in written if key not in ("version", "superbench")]
    if unknown:
        raise ConfigError(f"{source}: unknown key {unknown[0]}; allowed: version, superbench")
    inner = written["superbench"]
    rules = inner.get("rules") if isinstance(inner, Mapping) else None
    if not isinstance(rules, Mapping) or not rules:
        raise ConfigError(
            f"{source}: superbench.rules: found {show(rules)}; allowed: a mapping from names to "
            "rules"
        )
    known: list[TheirRule] = []
    for name, keys in rules.items():
        known.append(_rule(str(name), keys, f"{source}: superbench.rules.{name}", known))
    return TheirRules(tuple(known))


def _rule(name: str, keys: Any, place: str, before: list[TheirRule]) -> TheirRule:
    if not isinstance(keys, Mapping):
        raise ConfigError(f"{place}: found {show(keys)}; allowed: a mapping")
    for key in keys:
        if key not in _KEYS:
            hint = did_you_mean(key, _KEYS)
            raise ConfigError(f"{place}: unknown key {key}{hint}; allowed: {', '.join(_KEYS)}")
    function = keys.get("function")
    if function not in FUNCTIONS:
        raise ConfigError(
            f"{place}.function: found {show(function)}; allowed: {', '.join(FUNCTIONS)}"
        )
    category = str(keys.get("categories", name))
    stores = keys.get("store", False)
    if not isinstance(stores, bool):
        raise ConfigError(f"{place}.store: found {show(stores)}; allowed: true, false")
    if function == FAILURES:
        return TheirRule(name, function, lambda _: False, category, (), stores)
    text = keys.get("criteria")
    try:
        meets = criteria.criterion(text if isinstance(text, str) else "")
    except criteria.Unreadable:
        raise ConfigError(
            f"{place}.criteria: found {show(text)}; allowed: {criteria.ALLOWED}"
        ) from None
    if function == MULTI:
        stored = [rule.name for rule in before if rule.stores]
        for label in criteria.names(str(text)):
            if label not in stored:
                raise ConfigError(
                    f"{place}.criteria: found label {label!r}{did_you_mean(label, stored)}; "
                    "allowed: rules before it with store: true "
                    f"({', '.join(stored) or 'there is none'})"
                )
        return TheirRule(name, function, meets, category, (), stores)
    return TheirRule(name, function, meets, category, _patterns(keys.get("metrics"), place), stores)


def _patterns(written: Any, place: str) -> tuple[re.Pattern[str], ...]:
    metrics = [written] if isinstance(written, str) else written
    if not isinstance(metrics, list) or not metrics:
        raise ConfigError(
            f"{place}.metrics: found {show(written)}; allowed: a list of regular expressions"
        )
    found = []
    for one in metrics:
        try:
            found.append(re.compile(str(one)))
        except re.error as error:
            raise ConfigError(
                f"{place}.metrics: found {show(one)}; allowed: a regular expression ({error})"
            ) from None
    return tuple(found)
