"""Files of rules and baselines: ours, SuperBench's, and refusals with their messages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from framebench.config.validation import ConfigError
from framebench.features.node_health import figures, judging
from framebench.features.node_health import kept_rules as node_health
from framebench.features.node_health.rules import criteria, health
from framebench.features.node_health.rules.own import OwnRules
from framebench.records import record_sets
from framebench.tables import grouping

from ....conftest import ROOT
from ..formats.importing import brought

#: Rules from SuperBench's documentation of its data diagnosis.
THEIRS = """\
version: v0.12
superbench:
  rules:
    failure-rule:
      function: value
      criteria: lambda x:x>0
      categories: Failed
      metrics: ['.*/return_code']
    rule0:
      function: variance
      criteria: lambda x:x>0.05
      categories: KernelLaunch
      metrics: ['kernel-launch/event_time:\\d+', 'kernel-launch/wall_time:\\d+']
    rule1:
      function: variance
      criteria: lambda x:x<-0.05
      categories: Mem
      metrics: ['mem-bw/H2D_Mem_BW:\\d+']
      store: true
    rule2:
      function: variance
      criteria: "lambda x:x<-0.05"
      categories: Mem
      metrics: ['mem-bw/D2H_Mem_BW:\\d+']
      store: true
    rule3:
      function: multi_rules
      criteria: 'lambda label:True if label["rule1"]+label["rule2"]>=2 else False'
      categories: Both directions
"""
BASELINE = {
    "kernel-launch/event_time:0": 0.0060, "kernel-launch/wall_time:0": 0.0100,
    "mem-bw/H2D_Mem_BW:0": 25.0, "mem-bw/D2H_Mem_BW:0": 24.0,
}  # fmt: skip


def line(node: str, **changes: Any) -> str:
    """Return a line of results-summary.jsonl."""
    named = {name.replace("_0", ":0"): value for name, value in changes.items()}
    given = {f"{name}": value for name, value in BASELINE.items()}
    for key in given:
        for name, value in named.items():
            if key.endswith(name):
                given[key] = value
    return json.dumps({"node": node, "kernel-launch/return_code": changes.get("code", 0), **given})


def by_theirs(lines: list[str], tmp_path: Path) -> dict[str, judging.JudgedNode]:
    actual = brought("superbench", "\n".join(lines) + "\n", tmp_path)
    rules, baseline = tmp_path / "rules.yaml", tmp_path / "baseline.json"
    rules.write_text(THEIRS)
    baseline.write_text(json.dumps(BASELINE))
    given = health.health_of(health.read_rules(rules), health.read_baseline(baseline))
    runs = record_sets.load(actual.root).runs
    nodes = judging.judge(figures.measured(grouping.group(runs, None)), given)
    return {node.name: node for node in nodes}


def test_superbench_rules_and_baseline_judge_superbench_results(tmp_path: Path) -> None:
    nodes = by_theirs(
        [
            line("good"),
            line("launches", event_time_0=0.0064),
            line("one-way", H2D_Mem_BW_0=20.0),
            line("both-ways", H2D_Mem_BW_0=20.0, D2H_Mem_BW_0=20.0),
            line("broken", code=3),
        ],
        tmp_path,
    )
    told = {
        name: (node.verdict, node.telling and node.telling.rule) for name, node in nodes.items()
    }
    assert told == {
        "good": ("passed", "KernelLaunch"),
        "launches": ("defective", "KernelLaunch"),
        "one-way": ("passed", told["one-way"][1]),
        "both-ways": ("defective", "Both directions"),
        "broken": ("defective", "Failed"),
    }
    telling = nodes["launches"].telling
    assert telling is not None
    assert telling.figure.name == "kernel-launch/event_time:0"
    assert telling.reference == 0.006


#: Expression that Python cannot compile: it raises RecursionError.
DEEP = 3000 * "(" + 3000 * ")"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (("lambda x:x>0.05", "lambda x:__import__('os').system('x')"), "rule0.criteria: found"),
        (("lambda x:x>0.05", "lambda x:x.real>0"), "allowed: a lambda of one name"),
        (("lambda x:x>0.05", "x>0"), "allowed: a lambda of one name"),
        (("function: multi_rules", "function: moon"), "allowed: value, variance, multi_rules"),
        (('label["rule1"]', 'label["rule9"]'), "found label 'rule9'.*with store: true"),
        (("categories: Mem", "category: Mem"), r"unknown key category \(did you mean categories"),
        (("'mem-bw/H2D_Mem_BW:\\d+'", "'('"), "rule1.metrics: found .*a regular expression"),
        (("'mem-bw/H2D_Mem_BW:\\d+'", f"'{DEEP}'"), "rule1.metrics: found .*too deep or too long"),
        (("store: true", "store: maybe"), "rule1.store: found 'maybe'; allowed: true, false"),
        (("version: v0.12", "vision: v0.12"), "unknown key vision; allowed: version, superbench"),
    ],
)
def test_a_superbench_file_is_refused_by_the_place_that_is_wrong(
    changed: tuple[str, str], message: str, tmp_path: Path
) -> None:
    file = tmp_path / "rules.yaml"
    assert changed[0] in THEIRS
    file.write_text(THEIRS.replace(*changed))
    with pytest.raises(ConfigError, match=f"rules.yaml: .*{message}"):
        health.read_rules(file)


def test_criteria_are_read_and_never_run() -> None:
    assert criteria.of_value("lambda x: x > 0.05 or x < -0.05")(-0.1)
    assert not criteria.of_value("lambda x: not x >= 0 and abs(x) > 1")(-0.5)
    assert criteria.of_labels("lambda label: bool(label['a'] + label['b'] >= 3)")({"a": 1, "b": 2})
    for text in ("lambda x: open(x)", "lambda x: [x]", "lambda *x: 1", "lambda x, y: 1", "1", "",
                 "lambda x: 9**9**9", "lambda x: y", "(" * 500, "lambda x: 'a'"):  # fmt: skip
        with pytest.raises(criteria.Unreadable):
            criteria.of_value(text)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ({}, "key rules is missing"),
        ({"rules": {}}, "rules: found {}"),
        ({"rules": {"a": {}}}, "key rules.a.metrics is missing"),
        ({"rules": {"a": {"metrics": "("}}}, r"rules.a.metrics.*found '\('.*a regular expression"),
        (
            {"rules": {"a": {"metrics": DEEP}}},
            r"rules.a.metrics.*found '\(\(.*too deep or too long",
        ),
        ({"rules": {"a": {"metrics": ".*", "worse_by": 5}}}, "rules.a.worse_by: found 5"),
        ({"rules": {"a": {"metrics": ".*", "against": "all"}}}, "found 'all'.*others, baseline"),
        ({"rule": {"a": {"metrics": ".*"}}}, r"unknown key rule \(did you mean rules"),
        ({"rules": {"a": {"metrics": ".*"}}, "false_alarms": "0%"}, "false_alarms: found '0%'"),
    ],
)
def test_a_file_of_ours_is_refused_by_the_place_that_is_wrong(
    written: dict[str, Any], message: str, tmp_path: Path
) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump(written))
    with pytest.raises(ConfigError, match=f"rules.yaml: .*{message}"):
        health.read_rules(file)


def test_what_is_no_baseline_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "baseline.json"
    for text, message in (
        ("[1]", "allowed: a baseline of Framebench"),
        ("{}", "allowed: a baseline of Framebench"),
        ('{"a": "1"}', "a: found '1'; allowed: a number"),
        ('{"format": "other", "figures": {}}', "format: found 'other'"),
        ('{"format": "framebench-node-baseline-1", "figures": {"a": {}}}', "figures.a: found {}"),
        ("{", "cannot be read as JSON"),
    ):
        file.write_text(text)
        with pytest.raises(ConfigError, match=message):
            health.read_baseline(file)
    file.write_text('{"a": 1}')
    with pytest.raises(ConfigError, match=r"node_baseline: found .*numbers without repeats"):
        health.health_of(None, health.read_baseline(file))


def test_rules_that_need_a_baseline_say_so(tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text(THEIRS)
    with pytest.raises(ConfigError, match=r"node_rules: found .*variance.*node_baseline"):
        health.health_of(health.read_rules(file), None)


def test_rules_and_baseline_are_kept_with_the_results(tmp_path: Path) -> None:
    assert isinstance(node_health.load(tmp_path)[0].rules, OwnRules)
    file = tmp_path / "rules.yaml"
    file.write_text("rules: {mine: {metrics: x}}")
    node_health.keep(tmp_path, health.read_rules(file), None)
    file.unlink()
    kept, problems = node_health.load(tmp_path)
    assert isinstance(kept.rules, OwnRules)
    assert [rule.name for rule in kept.rules.rules] == ["mine"]
    assert not problems
    (tmp_path / node_health.FILE).write_text("{}")
    kept, problems = node_health.load(tmp_path)
    assert isinstance(kept.rules, OwnRules)
    assert len(kept.rules.rules) > 1
    assert [problem.message for problem in problems] == ["is not a file that Framebench wrote"]


def test_the_file_that_ships_is_one_of_ours() -> None:
    assert isinstance(health.rules_of(health.read_rules(ROOT / "config/node_rules.yaml")), OwnRules)
