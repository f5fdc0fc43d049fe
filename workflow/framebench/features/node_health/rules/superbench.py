"""SuperBench's rules for data diagnosis, and the lookup in its baselines.

The rules follow SuperBench's documentation and its superbench/analyzer (version 0.12):
- ``value``: a figure that meets the criteria breaks the rule.
- ``variance``: (figure - baseline) / baseline that meets the criteria breaks the rule.
- ``failure_check``: a figure that meets the criteria breaks the rule, and so does one that only
  other nodes have, and a metric that no node has.
- ``multi_rules``: stored results of earlier rules that meet the criteria break the rule.
- With ``store: true`` a rule names no node. It stores the number of figures that broke it, or,
  without ``criteria``, the figures themselves. It needs no ``function`` then.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from ....config.validation import ConfigError, compile_pattern, did_you_mean, show
from . import criteria

VALUE, VARIANCE, MULTI, FAILURES = "value", "variance", "multi_rules", "failure_check"
FUNCTIONS = (VALUE, VARIANCE, MULTI, FAILURES)
#: Function of a rule that stores the figures themselves.
STORED = "store"
_T = TypeVar("_T")
_KEYS = ("function", "criteria", "categories", "metrics", "store")


class Metrics(NamedTuple):
    """Figures that a rule selects: of one benchmark, with a name in which the expression is
    found."""

    text: str
    benchmark: str
    expression: re.Pattern[str]

    def match(self, figure: str) -> bool:
        if self.text == figure:
            return True
        own = benchmark_of(figure)
        is_of_it = self.benchmark in ("", own) or re.fullmatch(self.benchmark, own)
        return bool(is_of_it and self.expression.search(figure))


class TheirRule(NamedTuple):
    """A rule of SuperBench's.

    ``function``: of FUNCTIONS, or STORED; ``meets``: whether a value, or the mapping of stored
    results, breaks the rule; ``stores``: it names no node, but counts for a later rule; ``reads``:
    earlier rules whose results it reads.
    """

    name: str
    function: str
    meets: Callable[[Any], bool]
    category: str
    metrics: tuple[Metrics, ...]
    stores: bool
    reads: tuple[str, ...] = ()

    def is_of(self, *names: str) -> bool:
        """Return whether the rule selects a figure with these names."""
        return any(some.match(name) for some in self.metrics for name in names)


@dataclass(frozen=True)
class TheirRules:
    """Rules of SuperBench's, in the order of the file."""

    rules: tuple[TheirRule, ...]

    @property
    def needs_baseline(self) -> bool:
        """Return whether some rule compares with the baseline."""
        return any(rule.function == VARIANCE for rule in self.rules)


def benchmark_of(figure: str) -> str:
    """Return the benchmark of a figure, without its annotation."""
    return figure.partition("/")[0].partition(":")[0]


def in_baseline(baseline: Mapping[str, _T], figure: str) -> _T | None:
    """Look a figure up in a baseline by its name, then by a shorter one.

    The shorter name lacks the rank. Without rank and annotation it is that of the benchmark.
    """
    names = [figure]
    head, colon, tail = figure.rpartition(":")
    if colon and "/" not in tail:
        names.append(head)
    elif not colon:
        names.append(figure.partition("/")[0])
    return next((baseline[name] for name in names if name in baseline), None)


def is_theirs(written: Mapping[str, Any]) -> bool:
    """Return whether a file of rules is SuperBench's."""
    return "superbench" in written


def rules_of(written: Mapping[str, Any], source: str) -> TheirRules:
    """Return the rules ``written`` in a file. Raises ConfigError, which names ``source``."""
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


def _rule(name: str, keys: Any, where: str, before: list[TheirRule]) -> TheirRule:
    if not isinstance(keys, Mapping):
        raise ConfigError(f"{where}: found {show(keys)}; allowed: a mapping")
    for key in keys:
        if key not in _KEYS:
            hint = did_you_mean(key, _KEYS)
            raise ConfigError(f"{where}: unknown key {key}{hint}; allowed: {', '.join(_KEYS)}")
    category = str(keys.get("categories", name))
    stores = keys.get("store", False)
    if not isinstance(stores, bool):
        raise ConfigError(f"{where}.store: found {show(stores)}; allowed: true, false")
    function, text = keys.get("function"), keys.get("criteria")
    if stores and text is None and function in (None, *FUNCTIONS):
        metrics = _metrics(keys.get("metrics"), where)
        return TheirRule(name, STORED, lambda _: False, category, metrics, stores)
    if function not in FUNCTIONS:
        raise ConfigError(
            f"{where}.function: found {show(function)}; allowed: {', '.join(FUNCTIONS)}, or none "
            "with store: true and without criteria"
        )
    try:
        kind = criteria.of_labels if function == MULTI else criteria.of_value
        meets = kind(text if isinstance(text, str) else "")
    except criteria.Unreadable:
        raise ConfigError(
            f"{where}.criteria: found {show(text)}; allowed: {criteria.ALLOWED}"
        ) from None
    if function != MULTI:
        metrics = _metrics(keys.get("metrics"), where)
        return TheirRule(name, function, meets, category, metrics, stores)
    reads = criteria.names(str(text))
    stored = [rule.name for rule in before if rule.stores]
    for label in reads:
        if label not in stored:
            raise ConfigError(
                f"{where}.criteria: found label {label!r}{did_you_mean(label, stored)}; "
                "allowed: rules before it with store: true "
                f"({', '.join(stored) or 'there is none'})"
            )
    return TheirRule(name, function, meets, category, (), stores, tuple(reads))


def _metrics(written: Any, where: str) -> tuple[Metrics, ...]:
    texts = [written] if isinstance(written, str) else written
    if not isinstance(texts, list) or not texts:
        raise ConfigError(
            f"{where}.metrics: found {show(written)}; allowed: a list of regular expressions"
        )
    found = []
    for text in map(str, texts):
        benchmark = benchmark_of(text) if "/" in text else ""
        try:
            compile_pattern(benchmark)
            found.append(Metrics(text, benchmark, compile_pattern(text)))
        except ValueError as error:
            raise ConfigError(
                f"{where}.metrics: found {show(text)}; allowed: a regular expression ({error})"
            ) from None
    return tuple(found)
