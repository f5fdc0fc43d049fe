"""Files of rules, refusals with their messages, and figures from SuperBench."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from framebench import cli
from framebench.config.validation import ConfigError
from framebench.features.node_health import rules

from ...table_rows import rows_of


def test_nodes_of_superbench_are_judged_by_our_rules(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [
        {"node": node, "kernel-launch/return_code": 3 * (node == "d"),
         "kernel-launch/event_time:0": 0.006 if node != "d" else None}
        for node in "abcd"
    ]  # fmt: skip
    results = tmp_path / "results-summary.jsonl"
    lines[3].pop("kernel-launch/event_time:0")
    results.write_text("".join(json.dumps(line) + "\n" for line in lines))
    words = ["import", "--format", "superbench", "--from", str(results), "--results"]
    assert cli.main([*words, str(tmp_path / "sb")]) == 0
    file = tmp_path / "rules.yaml"
    file.write_text("rules: {launch: {metrics: 'kernel-launch/event_time:0'}}")
    nodes = ["nodes", "--results", str(tmp_path / "sb"), "--rules", str(file)]
    assert cli.main(nodes) == 4
    rows = rows_of(tmp_path / "sb", "nodes")
    assert [(row["node"], row["node_verdict"]) for row in rows] == [
        ("d", "failed"), ("a", "cannot tell"), ("b", "cannot tell"), ("c", "cannot tell"),
    ]  # fmt: skip
    file.write_text("superbench: {rules: {}}")
    assert cli.main(nodes) == 1
    assert "unknown key superbench; allowed: false_alarms, rules" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (
            {"rules": {"a": {"metrics": "("}}},
            r"rules.a.metrics.*found '\('.*a valid regular expression",
        ),
        ({"rules": {"a": {"metrics": ".*", "worse_by": 5}}}, "rules.a.worse_by: found 5"),
        ({"rule": {"a": {"metrics": ".*"}}}, r"unknown key rule \(did you mean rules"),
    ],
)
def test_a_file_of_ours_is_refused_by_the_place_that_is_wrong(
    written: dict[str, Any], message: str, tmp_path: Path
) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump(written))
    with pytest.raises(ConfigError, match=f"rules.yaml: .*{message}"):
        rules.read(file)
