"""Defects of other benchmarks' figures: the peer's figure from data that show the defect, and ours.
Defects of measuring are in tests/harness/machine/test_peers.py; errors in published tables are in
test_lint.py."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from framebench.config.validation import ConfigError
from framebench.machine.local import Machine
from framebench.plan.planning import Plan, make_plan
from framebench.records import record_sets
from framebench.records.run import Run
from framebench.statistics import descriptive, intervals

from ..made_up_runs import build, in_markdown, repeats, run
from ..saved_records import ROW, failed, messages, metrics, record, save, save_csv
from ..settings import CATALOG, ROOT, SUITE, changed, settings
from ..table_rows import only, row
from ..watched import as_suite_asks

# ---- DLPerf -------------------------------------------------------------------------------------

# PaddlePaddle, fp32, 1n1g: printed as 352.72
PADDLE = [354.32, 352.08, 354.71, 353.04, 352.39, 352.07]
# bert_base, amp, batch 64: 1n1g, 4n8g and the speed-up as printed
BERT_AMP = {
    "oneflow": (534.72, 9911.78, "18.54"),
    "tensorflow1": (183.25, 5189.07, "28.32"),
    "tensorflow1 xla": (422.53, 9409.20, "22.27"),
    "pytorch": (444.51, 9331.72, "20.99"),
    "paddle": (289.23, 3406.36, "11.78"),
    "mxnet": (473.76, 11269.14, "23.79"),
}


def test_an_unfinished_log_is_no_zero_in_the_median(tmp_path: Path) -> None:
    """DLPerf: an unfinished log counts as 0.0. A seventh, unfinished run makes 352.39 of 352.72."""
    peers = sorted([*PADDLE, 0.0])[3]
    assert peers == 352.39
    rows = [{**ROW, "repeat": str(n), "throughput": str(v)} for n, v in enumerate(PADDLE, 1)]
    done = [{**entry, "status": "ok", "reason": ""} for entry in rows]
    lost = {**ROW, "repeat": "7", "throughput": "", "status": "timeout", "reason": "unfinished"}
    actual = record_sets.load(save_csv(tmp_path / "runs.csv", [*done, lost]))
    summary = only(build(actual.runs)["summary"])
    assert summary["throughput_median"] == pytest.approx(352.715)
    assert summary["throughput_min"] == 352.07
    assert summary["reason"].startswith("1 of 7 repeats timed out: unfinished")
    zero = {**ROW, "repeat": "7", "throughput": "0.0"}
    actual = record_sets.load(save_csv(tmp_path / "runs.csv", [*rows, zero]))
    assert len(actual.runs) == 6
    assert "found '0.0' beside status ok" in messages(actual)


@pytest.mark.parametrize(
    ("base", "default", "reason"),
    [([], 1.0, "no 1n1g run"), (repeats(None), 0.0, "1n1g is failed: broke")],
    ids=["missing", "failed"],
)
def test_a_missing_1n1g_makes_no_speedup(base: list[Run], default: float, reason: str) -> None:
    """DLPerf: a missing 1n1g silently counts as 1.0, one without a result as 0.0."""
    one = [found.throughput for found in base]
    peers = 3130.34 / one[0] if any(one) else float(not one)
    assert peers == default
    made = build([*base, run(3130.34, devices_per_node=8)])["weak_scaling"]
    actual = row(made, devices=8)
    assert math.isnan(actual["speedup"])
    assert actual["reason"] == reason
    assert f"]: {reason}" in in_markdown("weak_scaling", made)


def test_results_with_and_without_xla_do_not_overwrite_each_other(tmp_path: Path) -> None:
    """DLPerf: results are keyed by the model's name; of 183.25 without XLA and 422.53 with it, one
    is lost."""
    options = {"none": 183.25, "xla": 422.53}
    peers = dict(zip(["bert_base"] * 2, options.values(), strict=True))
    assert peers == {"bert_base": 422.53}
    rows = [
        {**ROW, "model": "bert_base", "compiler": name, "throughput": str(value)}
        for name, value in options.items()
    ]
    made = build(record_sets.load(save_csv(tmp_path / "runs.csv", rows)).runs)
    actual = made["summary"].set_index("compiler")["throughput_median"]
    assert actual.to_dict() == options
    assert only(made["compiler_speedup"])["speedup"] == 422.53 / 183.25


@pytest.mark.parametrize("definition", ["mean of rates", "100 steps for 99 intervals"])
def test_a_throughput_by_another_definition_is_refused(tmp_path: Path, definition: str) -> None:
    """DLPerf: throughput has a different definition in each framework.
    The mean of per-step rates reads +1 % for steps of 0.9 s and 1.1 s in turn; an off-by-one error
    reads +1.01 % for any steps."""
    steps = (0.9, 1.1) * 50
    peers = {
        "mean of rates": sum(8 / step for step in steps) / 100,
        "100 steps for 99 intervals": 8 * 100 / (sum(steps) * 99 / 100),
    }[definition]
    assert peers / 8 - 1 == pytest.approx(0.0101, abs=5e-5)
    save(tmp_path, "c/r1.json", record(seconds=steps, metrics=metrics(peers)))
    actual = record_sets.load(tmp_path)
    assert not actual.runs
    assert "800 samples in" in messages(actual)


MIXED = {
    "ResNet-50 v1b": {"model": "resnet50_v1b"},
    "static loss scale": {"variant": "static_loss_scale"},
    "no clip": {"variant": "no_clip"},
    "another batch": {"batch_per_device": "64"},
    "another input pipeline": {"input_pipeline": "dali"},
}


@pytest.mark.parametrize("name", MIXED)
def test_what_is_not_the_same_has_a_row_of_its_own(tmp_path: Path, name: str) -> None:
    """DLPerf: tables mix conditions; one row of 1n1g, whatever it was, is the baseline of all."""
    one = {**ROW, "devices_per_node": "1", "throughput": "400"}
    other = {**one, **MIXED[name], "throughput": "500"}
    eight = {**ROW, "throughput": "3000"}
    peers = 3000 / {row["devices_per_node"]: float(row["throughput"]) for row in (one, other)}["1"]
    assert peers == 6.0
    listed = record_sets.load(save_csv(tmp_path / "runs.csv", [one, other, eight])).runs
    actual = build(listed)["weak_scaling"]
    assert sorted(actual["throughput_median"]) == [400, 500, 3000]
    assert row(actual, devices=8)["speedup"] == 7.5
    listed = record_sets.load(save_csv(tmp_path / "runs.csv", [other, eight])).runs
    assert math.isnan(row(build(listed)["weak_scaling"], devices=8)["speedup"])


def test_runs_with_other_nccl_settings_have_a_row_of_their_own(tmp_path: Path) -> None:
    """DLPerf: tables mix NCCL settings. A setting that only adds NCCL's log makes no difference."""
    given = [{}, {"NCCL_ALGO": "Tree"}, {"NCCL_DEBUG": "INFO"}]
    for repeat, variables in enumerate(given, 1):
        environment = {
            **record()["environment"],
            "variables": {"OMP_NUM_THREADS": "1", **variables},
        }
        save(tmp_path, f"c/r{repeat}.json", record(repeat, environment=environment))
    peers = {json.loads(path.read_text())["case"]["model"] for path in tmp_path.glob("c/*")}
    assert len(peers) == 1
    summary = build(record_sets.load(tmp_path).runs)["summary"]
    assert sorted(summary["repeats"]) == [1, 2]


def test_throughput_stands_next_to_every_ratio() -> None:
    """DLPerf: a slow 1n1g improves the speed-up.
    The best speed-up of BERT, 28.32, has the second-lowest throughput."""
    peers = max(BERT_AMP, key=lambda name: float(BERT_AMP[name][2]))
    ranked = sorted(BERT_AMP, key=lambda name: BERT_AMP[name][1])
    assert ranked.index(peers) == 1
    runs = []
    for name, (value, most, _) in BERT_AMP.items():
        runs += [run(value, framework=name), run(most, framework=name, nodes=4, devices_per_node=8)]
    made = build(runs)["weak_scaling"]
    text = in_markdown("weak_scaling", made)
    for name, (_, most, speedup) in BERT_AMP.items():
        actual = row(made, framework=name, devices=32)
        assert f"{actual['speedup']:.2f}" == speedup
        assert actual["throughput_median"] == most
        assert f"{most:.2f} ({speedup})" in text, "a ratio stands alone"


def test_no_host_address_and_no_home_folder_is_hard_coded() -> None:
    """DLPerf: 98 shell scripts have hard-coded addresses and home folders."""
    wrong = re.compile(r"\b(?!127\.0\.0\.1\b)(?:\d{1,3}\.){3}\d{1,3}\b|/(home|root|Users)/")
    peers = wrong.search("NODE2='10.11.0.3'; cd /home/somebody/oneflow")
    assert peers is not None
    for folder in ("scripts", "workflow", "config", "profiles"):
        for path in (ROOT / folder).rglob("*.*"):
            if path.suffix in (".py", ".smk", ".yaml", ".json", ".sh"):
                assert not wrong.search(path.read_text()), path


def test_every_package_is_pinned() -> None:
    """DLPerf has no lock file."""

    def pins(parts: Sequence[Any]) -> Iterator[str]:
        for part in parts:
            yield from pins(part["pip"]) if isinstance(part, dict) else [part]

    exact = re.compile(r"[A-Za-z0-9._\[\]-]+={1,2}[0-9][A-Za-z0-9.+!_-]*")
    assert not exact.fullmatch("torch"), "as the peer asks for it"
    for path in sorted((ROOT / "envs").glob("*.yaml")):
        for pin in pins(yaml.safe_load(path.read_text())["dependencies"]):
            assert exact.fullmatch(pin) or pin.startswith("--"), f"{path.name}: {pin}"


def test_two_modes_are_named_and_their_median_is_not_believed() -> None:
    """DLPerf: five runs near 2830 and three near 690 give 2830."""
    values = [2831.0, 692.0, 2829.0, 688.0, 2834.0, 2826.0, 690.0, 2830.0]
    peers = sorted(values, reverse=True)[3]
    assert peers == 2829
    actual = only(build(repeats(*values))["summary"])
    assert actual["remarks"] == "two modes: 3 near 690 and 5 near 2830"
    assert "noisy" in actual["flags"].split()


def test_two_modes_within_a_narrow_interval_are_noisy() -> None:
    values = [2831.0, 2732.0, 2829.0, 2728.0, 2834.0, 2826.0, 2730.0, 2830.0]
    actual = only(build(repeats(*values))["summary"])
    assert actual["remarks"] == "two modes: 3 near 2730 and 5 near 2830"
    assert actual["flags"] == "noisy"


def test_the_spread_stands_next_to_the_median() -> None:
    """DLPerf: only the median is printed, of groups whose (max - min) / median is up to 17.9 %."""
    values = [100.0, 91.0, 108.9, 95.0, 104.0, 98.0, 102.0]
    peers = f"{sorted(values)[3]:.2f}"
    assert peers == "100.00"
    summary = build(repeats(*values))["summary"]
    actual = only(summary)
    assert actual["throughput_spread"] == pytest.approx(0.179)
    assert (actual["throughput_min"], actual["throughput_max"]) == (91.0, 108.9)
    assert actual["flags"] == "noisy"
    assert "100.00 *noisy*" in in_markdown("summary", summary)


# ---- SuperBench ---------------------------------------------------------------------------------


def test_the_99th_percentile_is_a_bad_case() -> None:
    """SuperBench: percentiles are of throughputs, so ``_99`` is the best case."""
    steps = ([0.005] * 2 + [0.01] * 95 + [0.1] * 3) * 7
    peers = np.percentile([1 / step for step in steps], 99, method="nearest")
    assert peers == pytest.approx(1 / min(steps))
    made = build([run(1.0, mode="inference", waited_apart=tuple(steps))])
    actual = only(made["inference_step_time"])
    assert actual["p99_ms"] == pytest.approx(1000 * max(steps))
    assert actual["p50_ms"] == pytest.approx(10)


def test_ten_steps_have_no_high_percentiles() -> None:
    """SuperBench: p95 = p99 = p99.9 = the maximum of ten steps, without a flag."""
    steps = [0.1 + 0.001 * step for step in range(9)] + [0.9]
    peers = [np.percentile(steps, p, method="nearest") for p in (95, 99, 99.9)]
    assert peers == [0.9] * 3
    made = build([run(1.0, mode="inference", waited_apart=tuple(steps))])["inference_step_time"]
    actual = only(made)
    assert [math.isnan(actual[name]) for name in ("p95_ms", "p99_ms")] == [True, True]
    assert math.isnan(actual["p50_ms"])
    assert actual["note"].endswith("p90 needs 64, p95 needs 130, p99 needs 662, p99.9 needs 6636")
    assert "few" in actual["flags"].split()
    assert descriptive.percentile(steps, 0.999) is None


def test_failures_stay_in_the_table_with_their_reasons(tmp_path: Path) -> None:
    """SuperBench: with three of five failed, it exits 0, and the summary has only return codes."""
    ends = ["ok", "oom", "failed", "ok", "timeout"]
    for batch, status in enumerate(ends, 1):
        case = {"batch_per_device": batch}
        content = record(case=case) if status == "ok" else failed(status, f"b{batch}", case=case)
        save(tmp_path, f"b{batch}/r1.json", content)
    peers = [0 if status == "ok" else 4 for status in ends]
    assert peers == [0, 4, 4, 0, 4]
    tables = build(record_sets.load(tmp_path).runs)
    assert list(tables["summary"]["status"]) == ends
    assert list(tables["summary"]["reason"]) == ["", "b2", "b3", "", "b5"]
    counted = tables["failures"][["status", "failed_runs", "reason"]].values.tolist()
    assert counted == [["failed", 1, "b3"], ["oom", 1, "b2"], ["timeout", 1, "b5"]]


def test_an_unknown_model_is_refused(tmp_path: Path) -> None:
    """SuperBench: an unknown model vanishes from the summary."""
    asked = ["resnet50_v1.5", "resnet999"]
    peers = [name for name in asked if name in CATALOG.models]
    assert peers == ["resnet50_v1.5"]
    with pytest.raises(
        ConfigError, match=r"found 'resnet999'.*allowed: .*bert_base, .*resnet50_v1.5"
    ):
        settings(tmp_path, changed(model=asked))


def test_a_precision_that_nothing_measures_is_refused(tmp_path: Path) -> None:
    """SuperBench: an unknown precision is dropped with exit 0. Here it is ``unsupported``."""
    peers = [name for name in ("fp32", "int8") if name in ("fp32", "amp")]
    assert peers == ["fp32"]
    with pytest.raises(ConfigError, match=r"precision\[1\]: found 'int8'.*allowed: fp32, amp"):
        settings(tmp_path, changed(precision=["fp32", "int8"]))


def test_scaling_is_computed() -> None:
    """SuperBench: throughputs of every number of ranks are given, but never their ratio."""
    peers = {"1n1g": 397.64, "1n8g": 3130.34}
    assert not [name for name in peers if "speedup" in name]
    runs = [run(peers["1n1g"]), run(peers["1n8g"], devices_per_node=8)]
    actual = row(build(runs)["weak_scaling"], devices=8)
    assert actual["speedup"] == pytest.approx(7.872, abs=1e-3)
    assert actual["efficiency"] == pytest.approx(0.984, abs=1e-3)


# ---- optimum-benchmark --------------------------------------------------------------------------


def test_fifty_times_too_much_is_refused(tmp_path: Path) -> None:
    """optimum-benchmark: throughput is the samples of all steps over the mean time of one."""
    steps = (0.125,) * 50
    peers = 8 * len(steps) / (sum(steps) / len(steps))
    assert peers == 50 * 64
    save(tmp_path, "wrong/r1.json", record(seconds=steps, metrics=metrics(peers)))
    save(tmp_path, "right/r1.json", record(seconds=steps, metrics=metrics(64.0)))
    actual = record_sets.load(tmp_path)
    assert [one.throughput for one in actual.runs] == [64.0]
    assert "wrong/r1.json: states a throughput of 3200.0, but 400 samples" in messages(actual)


def planned(tmp_path: Path, **suite: Any) -> Plan:
    """Return the plan with the existing records."""
    loaded = settings(tmp_path, {**SUITE, "repeats": 1, **suite}, results=str(tmp_path / "out"))
    runs = tmp_path / "out" / "runs"
    cached = record_sets.load(runs) if runs.is_dir() else None
    return make_plan(loaded, CATALOG, Machine(2, 0), cached)


def measured(timed: int = 2, **case: Any) -> dict[str, Any]:
    """Return a record of what SUITE requests, except for its steps and keys of the case."""
    content = as_suite_asks()
    return {
        **content,
        "case": {**content["case"], **case},
        "settings": {**content["settings"], "timed_steps": timed},
    }


def test_a_changed_configuration_does_not_take_over_an_old_result(tmp_path: Path) -> None:
    """optimum-benchmark: any report in the run's folder counts as its result."""
    before = planned(tmp_path, steps={"warmup": 1, "timed": 3})
    save(tmp_path / "out" / "runs", f"{before.runs[0].name}.json", measured(timed=3))
    assert not planned(tmp_path, steps={"warmup": 1, "timed": 3}).pending
    peers = [path.name for path in (tmp_path / "out").rglob("r1.json")]
    assert peers == ["r1.json"]
    after = planned(tmp_path)
    assert [Path(planned_run.name).name for planned_run in after.pending] == ["r1"]
    assert after.folders != before.folders


@pytest.mark.parametrize(
    "other", [{"timed": 3}, {"batch_per_device": 4}, {"precision": "amp"}, {"model": "bert_base"}]
)
def test_a_record_of_another_configuration_in_the_folder_is_not_taken(
    tmp_path: Path, other: dict[str, Any]
) -> None:
    """optimum-benchmark: configurations are not compared. Here somebody copied a record."""
    name = planned(tmp_path).runs[0].name
    content = measured(**other)
    save(tmp_path / "out" / "runs", f"{name}.json", content)
    peers = content["status"]
    assert peers == "ok"
    (actual,) = planned(tmp_path).runs
    assert (actual.name, actual.status) == (f"{name}-retry1", "")
    save(tmp_path / "out" / "runs", f"{name}-retry1.json", measured())
    (actual,) = planned(tmp_path).runs
    assert (actual.name, actual.status) == (f"{name}-retry1", "ok")


# ---- milabench ----------------------------------------------------------------------------------


def test_an_interval_does_not_take_steps_that_hang_together_for_independent() -> None:
    """milabench: the standard error is over all steps of a run.
    With an autocorrelation of 0.9, its 95 % interval covers the truth in a third of cases. Ours is
    over runs."""
    random, draws, repeats, steps = np.random.default_rng(0), 1000, 7, 60
    noise = random.normal(0, 0.01, (steps, draws, repeats))
    for step in range(1, steps):
        noise[step] = 0.9 * noise[step - 1] + math.sqrt(1 - 0.9**2) * noise[step]
    seconds = 1 + noise  # a true throughput of 1
    one = seconds[:, :, 0]
    error = one.std(axis=0, ddof=1) / math.sqrt(steps)
    peers = float(np.mean(np.abs(one.mean(axis=0) - 1) <= 1.96 * error))
    assert peers < 0.5
    throughputs = (1 / seconds.mean(axis=0)).tolist()
    actual = [intervals.median_interval(values) for values in throughputs]
    ours = sum(low <= 1 <= high for low, high in filter(None, actual)) / draws
    assert abs(ours - 0.95) <= 0.02 + 3 * math.sqrt(0.95 * 0.05 / draws)


# ---- NVIDIA benchmark.py ------------------------------------------------------------------------


def test_a_bare_nan_is_reported_and_never_a_figure(tmp_path: Path) -> None:
    """NVIDIA: a failed cell becomes a bare ``NaN`` in the JSON."""
    report = {"ngpus": [1], "bs": [192], "metrics": {"1": {"192": {"train.ips": math.nan}}}}
    peers = json.dumps(report)
    assert '"train.ips": NaN' in peers
    save(tmp_path, "theirs.json", peers)
    save(tmp_path, "ours/r1.json", json.dumps(record(metrics=metrics(math.nan))))
    save(tmp_path, "good/r1.json", record())
    actual = record_sets.load(tmp_path)
    assert [one.origin for one in actual.runs] == ["good/r1.json"]
    for name in ("theirs.json", "ours/r1.json"):
        assert f"{name}: holds the number NaN, which JSON does not have" in messages(actual)


def test_no_timed_steps_have_no_throughput_of_zero(tmp_path: Path) -> None:
    """NVIDIA: throughput is 0 if all iterations are warm-up."""
    iterations, warmup = 20, 20
    peers = 192 * (iterations - warmup) / 2.0
    assert peers == 0.0
    with pytest.raises(ConfigError, match=r"steps.timed: found 0; allowed: a whole number"):
        settings(tmp_path, {**SUITE, "steps": {"warmup": 20, "timed": 0}})
    save(tmp_path, "c/r1.json", record(metrics=metrics(peers)))
    actual = record_sets.load(tmp_path)
    assert not actual.runs
    assert "is ok, but its throughput is 0.0; allowed: a number above 0" in messages(actual)


# ---- NVIDIA ELECTRA -----------------------------------------------------------------------------


def test_a_percentile_is_no_mean_of_the_fastest() -> None:
    """NVIDIA: "Latency 90 %" is the mean of the fastest 90 %, without the two slowest steps.
    It is below the average in every printed row."""
    steps = ([0.006] * 85 + [0.008] * 15) * 7
    fastest = sorted(steps)[:-2]
    peers = np.mean(fastest[: round(0.9 * len(fastest))])
    assert peers < np.mean(steps)
    made = build([run(1.0, mode="inference", waited_apart=tuple(steps))])
    actual = only(made["inference_step_time"])
    assert actual["p90_ms"] == pytest.approx(8) != pytest.approx(1000 * peers)
    assert actual["mean_ms"] == pytest.approx(6.3)


# ---- every peer ---------------------------------------------------------------------------------


def test_a_window_that_is_not_steady_is_marked(tmp_path: Path) -> None:
    """All peers: a fixed number of steps is dropped, and whatever follows is timed.
    Here 40 of a hundred steps are slow, and the throughput is 17 % too low."""
    steps = tuple(0.15 + 0.001 * (n % 3) if n < 40 else 0.1 + 0.001 * (n % 3) for n in range(100))
    peers = 8 * 100 / sum(steps)
    assert peers / (8 / 0.101) == pytest.approx(0.83, abs=0.01)
    for repeat in range(1, 8):
        save(tmp_path, f"c/r{repeat}.json", record(repeat, seconds=steps))
    summary = build(record_sets.load(tmp_path).runs)["summary"]
    actual = only(summary)
    assert actual["throughput_median"] == pytest.approx(peers)
    assert actual["flags"] == "unsteady"
    assert "from step 41 of 100 on" in actual["remarks"]
    assert f"{peers:.2f} *unsteady*" in in_markdown("summary", summary)


def test_the_figures_of_the_peers_are_those_that_they_published() -> None:
    """Fail if the data of DLPerf above are not in its published tables."""
    with (ROOT / "results/published/dlperf-v1.0/published.csv").open(newline="") as file:
        printed = {line["printed"] for line in csv.DictReader(file)}
    for value, most, speedup in BERT_AMP.values():
        assert {f"{value:.2f}", speedup} <= printed
        assert {f"{most:.2f}", f"{most:g}"} & printed
