"""Nodes judged by each type of SuperBench rule, after its documentation and code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from framebench.features.formats import transfer
from framebench.features.node_health import figures, judging
from framebench.features.node_health.rules import health
from framebench.records import record_sets
from framebench.tables import grouping

LAUNCH, COPY = "kernel-launch/event_time", "mem-bw/h2d_bw"
GOOD = {
    "kernel-launch/return_code": 0, f"{LAUNCH}:0": 0.006, f"{LAUNCH}:1": 0.006,
    f"{COPY}:0": 25.6,
}  # fmt: skip
BASELINE = {LAUNCH: 0.006, COPY: 25.5}
SLOW_LAUNCH = {"function": "variance", "criteria": "lambda x:x>0.05", "metrics": [f"{LAUNCH}:\\d+"]}
SLOW_COPY = {"function": "variance", "criteria": "lambda x:x<-0.05", "metrics": [f"{COPY}:\\d+"]}
COPIES = {"store": True, "metrics": [f"{COPY}:\\d+"]}


def multi(criteria: str) -> dict[str, Any]:
    return {"function": "multi_rules", "criteria": f"lambda label: {criteria}"}


def check(*metrics: str) -> dict[str, Any]:
    return {"function": "failure_check", "criteria": "lambda x:x>0", "metrics": [*metrics]}


def judge(
    folder: Path,
    rules: dict[str, Any],
    baseline: dict[str, float] = BASELINE,
    **nodes: dict[str, Any],
) -> dict[str, judging.JudgedNode]:
    """Judge nodes, each of which has GOOD with some changes; None leaves a metric out."""
    lines = []
    for name, changes in nodes.items():
        options = {"node": name, **GOOD, **changes}
        lines.append(
            json.dumps({key: entry for key, entry in options.items() if entry is not None})
        )
    results = folder / "results-summary.jsonl"
    results.write_text("\n".join(lines) + "\n")
    transfer.import_files("superbench", results, {}, folder / "set")
    runs = record_sets.load(folder / "set" / "runs").runs
    files = folder / "rules.yaml", folder / "baseline.json"
    known = {name: {"categories": name, **rule} for name, rule in rules.items()}
    files[0].write_text(
        yaml.safe_dump({"version": "v0.12", "superbench": {"rules": known}}, sort_keys=False)
    )
    files[1].write_text(json.dumps(baseline))
    options = health.health_of(health.read_rules(files[0]), health.read_baseline(files[1]))
    actual = judging.judge(figures.measured(grouping.group(runs, None)), options)
    return {node.name: node for node in actual}


def defective(nodes: dict[str, judging.JudgedNode]) -> list[str]:
    return sorted(name for name, node in nodes.items() if node.verdict == judging.DEFECTIVE)


@pytest.mark.parametrize(
    "baseline",
    [
        BASELINE,  # without ranks, like SuperBench's own
        {f"{LAUNCH}:0": 0.006, f"{LAUNCH}:1": 0.006, f"{COPY}:0": 25.5},
        {f"{LAUNCH}:0": 0.006, LAUNCH: 0.006, COPY: 25.5},
    ],
)
def test_a_baseline_without_ranks_is_of_all_ranks(
    baseline: dict[str, float], tmp_path: Path
) -> None:
    rules = {"launch": SLOW_LAUNCH, "copy": SLOW_COPY}
    nodes = judge(tmp_path, rules, baseline, a={f"{LAUNCH}:0": 0.1}, b={}, c={f"{COPY}:0": 20.0})
    assert defective(nodes) == ["a", "c"]
    assert nodes["b"].verdict == judging.PASSED
    telling = nodes["a"].telling
    assert telling
    assert (telling.figure.name, telling.reference) == (f"{LAUNCH}:0", 0.006)


def test_a_figure_without_rank_has_the_baseline_of_its_benchmark(tmp_path: Path) -> None:
    rule = {"function": "variance", "criteria": "lambda x:x<0", "metrics": ["cpu-hpl/throughput"]}
    nodes = judge(
        tmp_path, {"hpl": rule}, {"cpu-hpl": 2000.0},
        a={"cpu-hpl/throughput": 1900.0}, b={"cpu-hpl/throughput": 2100.0},
    )  # fmt: skip
    assert defective(nodes) == ["a"]


def test_a_figure_that_no_baseline_has_is_not_recorded(tmp_path: Path) -> None:
    nodes = judge(tmp_path, {"copy": SLOW_COPY}, {LAUNCH: 0.006}, a={})
    assert nodes["a"].verdict == "cannot tell"


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ({"kept": COPIES, "m": multi('bool(min(label["kept"].values())<22)')}, ["c"]),
        ({"kept": COPIES, "m": multi(f'bool(label["kept"]["{COPY}:0"]<22)')}, ["c"]),
        ({"kept": COPIES, "m": multi('bool(max(label["kept"].values())/0>22)')}, []),
        ({"kept": {**COPIES, "metrics": ["nccl-bw/.*"]},
          "m": multi('bool(min(label["kept"].values())<22)')}, []),
        ({"n": {**SLOW_COPY, "store": True}, "m": multi('bool(label["n"]>=1)')}, ["c"]),
        ({"n": {**SLOW_COPY, "store": True}, "m": multi('bool(label["n"]==0)')}, ["a", "b"]),
        ({"n": {**SLOW_COPY, "store": True}}, []),
        ({"n": {**SLOW_COPY, "store": True}, "m": {**multi('bool(label["n"]>=1)'), "store": True},
          "o": multi('bool(label["m"]+label["n"]>=2)')}, ["c"]),
        ({"n": {**SLOW_COPY, "store": True}, "m": {**multi('bool(label["n"]>=1)'), "store": True}},
         []),
        ({"n": {**SLOW_COPY, "store": True}, "m": multi('label["n"]')}, []),
    ],
)  # fmt: skip
def test_rules_of_several_read_what_others_stored(
    rules: dict[str, Any], expected: list[str], tmp_path: Path
) -> None:
    nodes = judge(tmp_path, rules, a={f"{LAUNCH}:0": 0.1}, b={}, c={f"{COPY}:0": 20.0})
    assert defective(nodes) == expected


def test_a_failure_check_finds_codes_and_missing_tests(tmp_path: Path) -> None:
    rules = {"f": check("kernel-launch/return_code", "mem-bw/return_code")}
    nodes = judge(
        tmp_path, rules,
        good={"mem-bw/return_code": 0}, failed={"mem-bw/return_code": 3}, lost={},
        unrun={"mem-bw/return_code": 0, "kernel-launch/return_code": None},
    )  # fmt: skip
    assert defective(nodes) == ["failed", "lost", "unrun"]


def test_a_failure_check_finds_a_benchmark_that_no_node_ran(tmp_path: Path) -> None:
    nodes = judge(tmp_path, {"f": check("nccl-bw/return_code")}, a={}, b={})
    assert defective(nodes) == ["a", "b"]


def test_a_value_rule_sees_the_code_itself(tmp_path: Path) -> None:
    rule = {"function": "value", "criteria": "lambda x:x>30", "metrics": ["nccl-bw/return_code"]}
    nodes = judge(
        tmp_path, {"v": rule}, a={"nccl-bw/return_code": 36}, b={"nccl-bw/return_code": 3}
    )
    assert defective(nodes) == ["a"]


@pytest.mark.parametrize(
    ("metrics", "matches"),
    [
        ("nccl-bw/allreduce_8_busbw:0", False),
        ("nccl-bw:nvlink/.*busbw", True),
        ("nccl-bw:ib/.*busbw", False),
        ("bw/allreduce_8_busbw", False),  # the benchmark's whole name must match
        ("rccl-bw/.*", False),
    ],
)
def test_metrics_are_of_their_benchmark(metrics: str, matches: bool, tmp_path: Path) -> None:
    rule = {"function": "value", "criteria": "lambda x:x<10", "metrics": [metrics]}
    nodes = judge(tmp_path, {"v": rule}, a={"nccl-bw:nvlink/allreduce_8_busbw:0": 5.0})
    assert bool(defective(nodes)) is matches


def test_a_name_may_be_written_as_it_is(tmp_path: Path) -> None:
    """Fail if a literal metric name is not matched because it looks like a regular expression."""
    name = "gpcnet-network-test/rr_two-sided+sync_bw_avg"
    rule = {"function": "value", "criteria": "lambda x:x<10", "metrics": [name]}
    assert defective(judge(tmp_path, {"v": rule}, a={name: 5.0}, b={name: 15.0})) == ["a"]


def test_each_run_of_a_benchmark_is_judged(tmp_path: Path) -> None:
    name = "model-benchmarks/pytorch-bert-base/{}/fp16_train_throughput"
    rule = {"function": "variance", "criteria": "lambda x:x<-0.05",
            "metrics": ["model-benchmarks/pytorch-bert-base/.*train_throughput"]}  # fmt: skip
    given = {name.format(run): rate for run, rate in enumerate((100.0, 100.0, 80.0))}
    baseline = {name.format(run): 100.0 for run in range(3)}
    nodes = judge(tmp_path, {"v": rule}, baseline, a=given, b=dict.fromkeys(given, 99.0))
    assert defective(nodes) == ["a"]
    telling = nodes["a"].telling
    assert telling
    assert telling.figure.name == name.format(2)
    assert telling.figure.middle == 80.0


def test_metrics_that_no_figure_has_are_named(tmp_path: Path) -> None:
    rules = {"a": check("mem-bw/return_code"), "b": {**SLOW_COPY, "metrics": ["mem-bw/d2h.*"]}}
    judge(tmp_path, rules, a={})
    runs = record_sets.load(tmp_path / "set" / "runs").runs
    read = health.rules_of(health.read_rules(tmp_path / "rules.yaml"))
    assert not isinstance(read, health.OwnRules)
    assert judging.unmatched(read, figures.measured(grouping.group(runs, None))) == [
        "rule a: mem-bw/return_code", "rule b: mem-bw/d2h.*",
    ]  # fmt: skip
