"""Tables from runs: medians, ratios, failures, and their files."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from core import precisions
from framebench.records.run import Flag, Run
from framebench.statistics import intervals
from framebench.tables import frames

from ..made_up_runs import build, in_markdown, repeats, run, write
from ..table_rows import only, row, shown

# ---- summary ------------------------------------------------------------------------------------


def test_columns_are_those_of_the_interface_even_without_runs() -> None:
    empty, full = build([]), build([run()])
    for name, table in frames.known_tables().items():
        if not table.always:
            continue
        assert tuple(empty[name].columns) == tuple(full[name].columns) == table.names
        assert list(empty[name].dtypes) == list(full[name].dtypes), name


def test_the_median_stands_with_its_extremes_and_interval() -> None:
    actual = only(build(repeats(7.0, 1.0, 6.0, 2.0, 5.0, 3.0, 4.0))["summary"])
    assert (actual["repeats"], actual["status"], actual["reason"]) == (7, "ok", "")
    assert [actual[f"throughput_{what}"] for what in ("min", "median", "max")] == [1.0, 4.0, 7.0]
    assert [actual[f"throughput_ci_{end}"] for end in ("low", "high")] == [1.0, 7.0]
    assert actual["flags"] == "noisy"


def test_a_flag_of_a_repeat_is_explained() -> None:
    steady = (100.0, 100.1, 99.9, 100.2, 99.8, 100.0)
    quiet = only(build(repeats(*steady))["summary"])
    assert (quiet["flags"], quiet["remarks"], quiet["repeats_needed"]) == ("", "", 6)
    assert quiet["throughput_spread"] == pytest.approx(0.004)
    assert only(build(repeats(*steady, 90.0))["summary"])["repeats_needed"] > 7
    doubted = [
        replace(repeat, flags=(Flag("unsteady", "the steps took longer"),) * (repeat.repeat > 4))
        for repeat in repeats(*steady)
    ]
    actual = only(build(doubted)["summary"])
    assert actual["flags"] == "unsteady"
    assert actual["remarks"] == "unsteady: in repeat 5 the steps took longer (and in 1 more)"


def test_five_repeats_have_no_95_percent_interval() -> None:
    actual = only(build(repeats(1.0, 2.0, 3.0, 4.0, 5.0))["summary"])
    assert math.isnan(actual["throughput_ci_low"])
    assert math.isnan(actual["throughput_ci_high"])
    assert actual["flags"] == "", "the suite asks for no more"


@pytest.mark.parametrize(("width", "is_noisy"), [(0.049, False), (0.051, True)])
def test_noisy_begins_at_five_percent_from_end_to_end(width: float, is_noisy: bool) -> None:
    offsets = np.array([-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0])
    ends = intervals.median_interval((100 + offsets).tolist())
    assert ends
    values = 100 + 100 * width / (ends[1] - ends[0]) * offsets
    assert ("noisy" in only(build(repeats(*values))["summary"])["flags"]) is is_noisy


def verdicts_of(factors: Sequence[float], table: str, **candidate: Any) -> list[str]:
    """Return the verdicts on cases of seven repeats, with a batch size and a true factor each."""
    random = np.random.default_rng(0)
    runs = []
    for batch, factor in enumerate(factors, 1):
        for sped, keys in ((1.0, {}), (factor, candidate)):
            values = sped * random.normal(100, 1, 7)
            runs += repeats(*values.tolist(), batch_per_device=batch, **keys)
    actual = build(runs)[table]
    changed = np.logical_and.reduce([actual[name] == value for name, value in candidate.items()])
    return actual[changed].sort_values("batch_per_device")["verdict"].tolist()


def test_every_precision_has_a_speedup_over_its_own_baseline() -> None:
    others = {
        name: precision.baseline
        for name, precision in precisions.known().items()
        if precision.baseline
    }
    assert {*others} == {name for name in precisions.known() if name != "fp32"}
    runs = [run(10.0, precision=name) for name in {*others.values()}]
    runs += [run(10.0 * n, precision=name) for n, name in enumerate(others, 2)]
    actual = build(runs)["precision_speedup"].set_index("precision")["speedup"]
    assert actual.to_dict() == {name: n for n, name in enumerate(others, 2)}


def test_a_ratio_has_a_verdict() -> None:
    compiled = {"compiler": "inductor"}
    assert verdicts_of((1.1, 0.9, 1.0), "compiler_speedup", **compiled) == [
        "faster", "slower", "no difference shown"
    ]  # fmt: skip
    assert verdicts_of((1.1,), "precision_speedup", precision="amp") == ["faster"]
    few = build(repeats(100.0, 101.0, 102.0) + repeats(200.0, 201.0, 202.0, **compiled))
    assert only(few["compiler_speedup"])["verdict"] == ""


def test_a_verdict_of_scaling_is_against_as_many_single_devices() -> None:
    two = {"devices_per_node": 2}
    assert verdicts_of((1.8, 2.0), "weak_scaling", **two) == ["slower", "no difference shown"]
    alone = build(repeats(*range(100, 107)))["weak_scaling"]
    assert only(alone)["verdict"] == "", "nothing is compared with itself"


def test_verdicts_are_adjusted_for_all_ratios_of_the_table() -> None:
    """Some intervals of 40 equal cases exclude 1."""
    random = np.random.default_rng(3)
    runs = []
    for batch in range(1, 41):
        for compiler in ("none", "inductor"):
            figures = random.normal(100, 1, 20).tolist()
            runs += repeats(*figures, batch_per_device=batch, compiler=compiler)
    actual = build(runs)["compiler_speedup"]
    assert ((actual["speedup_ci_low"] > 1) | (actual["speedup_ci_high"] < 1)).any()
    assert set(actual["verdict"]) == {"no difference shown"}


def test_a_failed_repeat_does_not_enter_the_median_as_zero() -> None:
    # DLPerf: an unfinished log counts as 0.0. The median of 0, 0, 90 and 100 would be 45.
    runs = repeats(None, 100.0, None, 90.0)
    runs[0] = run(None, status="oom", reason="12 GB are too few")
    actual = only(build(runs)["summary"])
    assert (actual["status"], actual["repeats"], actual["throughput_median"]) == ("ok", 2, 95.0)
    assert actual["reason"] == (
        "1 of 4 repeats out of memory: 12 GB are too few; 1 failed: broke; median of the other 2"
    )


def test_a_case_without_a_good_repeat_has_a_reason_and_no_number() -> None:
    runs = [
        run(None, repeat=1, status="timeout", reason="600 s are over"),
        run(None, repeat=2, status="oom", reason="too big"),
        run(None, repeat=3, status="oom", reason="too big"),
    ]
    actual = only(build(runs)["summary"])
    assert (actual["status"], actual["repeats"]) == ("oom", 3)
    assert actual["reason"] == "2 of 3 repeats out of memory: too big; 1 timed out: 600 s are over"
    numbers = [actual[name] for name in actual if name.startswith("throughput")]
    assert all(math.isnan(number) for number in numbers), "missing is missing, never zero"
    each_once = [run(None, status=status, reason="") for status in ("failed", "timeout", "oom")]
    assert only(build(each_once)["summary"])["status"] == "oom", "the most telling of them"


def test_cases_that_differ_in_one_key_share_no_row() -> None:
    # DLPerf keys results by model alone, so results with and without XLA overwrite each other.
    changes: list[dict[str, Any]] = [
        {},
        {"compiler": "xla"},
        {"precision": "amp"},
        {"framework_version": "2.9.0"},
        {"source": "DLPerf"},
        {"warmup_steps": 20, "timed_steps": 100},
        {"mode": "inference"},
        {"batch_per_device": 64},
        {"unit": "tokens/s"},
    ]
    runs = [run(10.0 + n, **change) for n, change in enumerate(changes)]
    summary = build(runs)["summary"]
    assert sorted(summary["throughput_median"]) == [10.0 + n for n in range(len(changes))]
    assert set(summary["repeats"]) == {1}


# ---- ratios -------------------------------------------------------------------------------------


def test_weak_scaling_divides_unrounded_medians_and_shows_throughput_beside() -> None:
    runs = repeats(3.0, 3.0) + repeats(20.0, 21.0, nodes=2, devices_per_node=4)
    scaling = build(runs)["weak_scaling"]
    one = row(scaling, devices=1)
    assert (one["speedup"], one["efficiency"], one["throughput_median"]) == (1.0, 1.0, 3.0)
    eight = row(scaling, devices=8)
    assert (eight["throughput_median"], eight["unit"]) == (20.5, "images/s")
    assert eight["speedup"] == 20.5 / 3.0
    assert eight["efficiency"] == 20.5 / 3.0 / 8


def test_without_1n1g_there_is_no_speedup_and_not_1() -> None:
    # DLPerf: a missing 1n1g silently makes the speed-up 1.0.
    actual = only(build([run(20.0, devices_per_node=8)])["weak_scaling"])
    assert math.isnan(actual["speedup"])
    assert math.isnan(actual["efficiency"])
    assert (actual["throughput_median"], actual["reason"]) == (20.0, "no 1n1g run")


def test_a_failed_1n1g_is_named_in_the_cells_that_miss_it() -> None:
    runs = [run(None, status="oom", reason="too big"), run(20.0, devices_per_node=8)]
    scaling = build(runs)["weak_scaling"]
    assert row(scaling, devices=8)["reason"] == "1n1g is oom: too big"
    assert row(scaling, devices=1)["reason"] == "oom: too big"
    assert scaling["speedup"].isna().all()


@pytest.mark.parametrize(
    "other",
    [
        {"batch_per_device": 64},
        {"machine_label": "123456"},
        {"unit": "tokens/s"},
    ],
)
def test_a_1n1g_of_another_case_is_no_baseline(other: dict[str, Any]) -> None:
    runs = [run(1.0, **other), run(20.0, devices_per_node=8)]
    assert math.isnan(row(build(runs)["weak_scaling"], devices=8)["speedup"])


def test_amp_is_compared_with_fp32_of_the_same_batch_only() -> None:
    runs = [
        run(10.0),
        run(25.0, precision="amp"),
        run(40.0, precision="amp", batch_per_device=64),
        run(30.0, precision="amp", batch_per_device=96),
        run(None, batch_per_device=96, status="oom", reason="too big"),
    ]
    amp = build(runs)["precision_speedup"]
    both = row(amp, batch_per_device=32)
    assert (both["throughput_baseline"], both["throughput"], both["speedup"]) == (10.0, 25.0, 2.5)
    alone = row(amp, batch_per_device=64)
    assert math.isnan(alone["speedup"])
    assert math.isnan(alone["throughput_baseline"])
    assert (alone["throughput"], alone["reason"]) == (40.0, "no fp32 run at batch 64")
    assert row(amp, batch_per_device=96)["reason"] == "fp32 is oom: too big"


def test_a_compiler_is_compared_with_none_at_the_same_precision() -> None:
    runs = [
        run(10.0),
        run(12.0, compiler="inductor"),
        run(99.0, precision="amp"),
        run(None, compiler="xla", status="unsupported", reason="not built in"),
    ]
    compiled = build(runs)["compiler_speedup"]
    actual = row(compiled, compiler="inductor")
    assert (actual["throughput_baseline"], actual["throughput"]) == (10.0, 12.0)
    assert actual["speedup"] == 1.2
    assert row(compiled, compiler="xla")["reason"] == "unsupported: not built in"
    assert len(compiled) == 2


def test_a_baseline_says_how_it_runs_and_what_nobody_does_is_none() -> None:
    frameworks = {"tensorflow": "xla", "pytorch": "inductor", "jax": "jit"}
    runs = [
        run(value, framework=name, compiler=compiler)
        for name, native in frameworks.items()
        for value, compiler in ((10.0, "none"), (12.0, native))
    ]
    compiled = build(runs)["compiler_speedup"]
    actual = {name: row(compiled, framework=name) for name in frameworks}
    natures = {name: entry["baseline_runs"] for name, entry in actual.items()}
    assert natures == {"tensorflow": "graph", "pytorch": "eager", "jax": "op by op"}
    assert (actual["pytorch"]["speedup"], actual["tensorflow"]["speedup"]) == (1.2, 1.2)
    assert math.isnan(actual["jax"]["speedup"])
    assert actual["jax"]["throughput_baseline"] == 10.0, "the figure itself is no secret"
    assert actual["jax"]["reason"] == "no ratio: it runs op by op without jit, as nobody does"


def test_an_imported_baseline_is_what_its_source_says() -> None:
    theirs = {"framework": "jax", "source": "another lab"}
    actual = only(
        build([run(10.0, **theirs), run(12.0, **theirs, compiler="jit")])["compiler_speedup"]
    )
    assert (actual["speedup"], actual["baseline_runs"]) == (1.2, "")
    unknown = [run(10.0, **theirs), run(12.0, **theirs, compiler="")]
    assert build(unknown)["compiler_speedup"].empty, "of which nobody says whether it was compiled"


def test_the_dtypes_behind_amp_stand_beside_it() -> None:
    ours = {"record": Path("r1.json"), "precision": "amp"}
    runs = [
        run(10.0, **ours, matmul_dtypes=("bfloat16", "float32")),
        run(20.0, **ours, framework="mxnet"),
        run(30.0, record=Path("r1.json"), framework="jax", matmul_dtypes=("float32",)),
    ]
    rows = {row["framework"]: row for row in shown(in_markdown("summary", build(runs)["summary"]))}
    told = {name: (row["matmul dtypes"], row["uncompiled"]) for name, row in rows.items()}
    assert told["pytorch"] == ("bfloat16, float32", "eager")
    assert told["mxnet"][0] == "dtype not recorded"
    assert told["jax"] == ("-", "op by op"), "fp32 is one dtype"


def test_a_case_has_tokens_of_sequences_and_the_most_memory_of_a_repeat() -> None:
    runs = [
        run(2.0, model="bert_base", sequence_length=128, peak_host_memory=3 * 2**30),
        run(4.0, model="bert_base", sequence_length=128, peak_host_memory=2**30, repeat=2),
        run(7.0, peak_device_memory=2**29),
        run(None, batch_per_device=64),
    ]
    made = build(runs)["summary"]
    bert = row(made, model="bert_base")
    assert bert["tokens_per_second"] == 3.0 * 128
    assert bert["peak_host_memory_bytes"] == 3 * 2**30
    resnet = row(made, model="resnet50_v1.5", batch_per_device=32)
    assert math.isnan(resnet["tokens_per_second"])
    assert resnet["peak_device_memory_bytes"] == 2**29
    text = in_markdown("summary", made)
    assert "its samples are no sequences" in text
    assert "not known" in text, "of the run whose memory on the host nobody knows"


# ---- step time of inference ---------------------------------------------------------------------


def test_step_time_is_the_median_over_the_good_repeats_in_milliseconds() -> None:
    steps = [n / 1000 for n in range(1, 1001)]
    runs = [
        run(1.0, repeat=1, mode="inference", waited_apart=tuple(steps)),
        run(1.0, repeat=2, mode="inference", waited_apart=tuple(2 * step for step in steps)),
        run(1.0, repeat=3, mode="inference", waited_apart=tuple(50 * step for step in steps)),
        run(None, repeat=4, mode="inference", waited_apart=(9.0,)),
        run(1.0, mode="train", waited_apart=(9.0,)),
    ]
    actual = only(build(runs)["inference_step_time"])
    assert (actual["samples"], actual["note"]) == (3000, "1000 steps in a repeat: p99.9 needs 6636")
    names = ("mean_ms", "p50_ms", "p90_ms", "p95_ms", "p99_ms")
    assert [actual[name] for name in names] == pytest.approx([1001, 1000, 1800, 1900, 1980])


def test_one_step_in_a_thousand_needs_thousands_of_steps() -> None:
    steps = (0.1,) * 6630 + (0.2,) * 6
    actual = only(build([run(1.0, mode="inference", waited_apart=steps)])["inference_step_time"])
    assert (actual["p99_ms"], actual["p99_9_ms"], actual["note"]) == (100, 100, "")
    fewer = only(build([run(1.0, mode="inference", waited_apart=steps[1:])])["inference_step_time"])
    assert math.isnan(fewer["p99_9_ms"])
    assert fewer["note"] == "6635 steps in a repeat: p99.9 needs 6636"


def test_steps_of_other_repeats_are_no_samples_of_a_percentile() -> None:
    runs = [run(1.0, repeat=n, mode="inference", waited_apart=(0.1,) * 63) for n in range(1, 21)]
    actual = only(build(runs)["inference_step_time"])
    assert (actual["samples"], actual["p50_ms"]) == (1260, 100.0)
    assert math.isnan(actual["p90_ms"]), "63 steps of each of 20 repeats are not 1260 of one"
    assert actual["note"].startswith("63 steps in a repeat: p90 needs 64,")
    mixed = [replace(runs[0], waited_apart=(0.1,) * 1000), runs[1]]
    assert math.isnan(only(build(mixed)["inference_step_time"])["p90_ms"]), "one repeat has too few"


def test_the_interval_of_a_percentile_is_that_of_repeats() -> None:
    tails = (0.20, 0.21, 0.22, 0.23, 0.24, 0.25)
    runs = [
        run(1.0, repeat=n, mode="inference", waited_apart=(0.1,) * 50 + (tail,) * 20)
        for n, tail in enumerate(tails, 1)
    ]
    actual = only(build(runs)["inference_step_time"])
    assert actual["p90_ms"] == pytest.approx(225)
    assert 200 <= actual["p90_ms_ci_low"] < 210 < 240 < actual["p90_ms_ci_high"] <= 250
    assert (actual["p50_ms_ci_low"], actual["p50_ms_ci_high"]) == (100, 100)
    assert math.isnan(actual["p95_ms_ci_low"]), "without the figure"
    five = only(build(runs[:5])["inference_step_time"])
    assert math.isnan(five["p90_ms_ci_low"]), "without the repeats"


def test_failed_and_imported_inference_says_why_it_has_no_step_time() -> None:
    runs = [
        run(None, mode="inference"),
        run(5.0, mode="inference", framework="mxnet"),
    ]
    times = build(runs)["inference_step_time"]
    assert row(times, framework="pytorch")["note"] == "failed: broke"
    assert row(times, framework="mxnet")["note"] == "no step times in these records"
    assert times["mean_ms"].isna().all()


# ---- files --------------------------------------------------------------------------------------


def some_runs() -> list[Run]:
    return [
        *repeats(1 / 3, 2 / 3, 0.7, 0.1 + 0.2),
        *repeats(5.0, 6.0, devices_per_node=2, machine_label="abcdef"),
        run(None, reason='a "quoted" | piped\nreason, with <b>', framework="tensorflow"),
        run(1.0, mode="inference", waited_apart=(0.5, 0.25), precision="amp", compiler="inductor"),
    ]


def test_the_order_of_runs_does_not_matter(tmp_path: Path) -> None:
    written = []
    for seed in range(4):
        runs = some_runs()
        random.Random(seed).shuffle(runs)
        folder = tmp_path / str(seed)
        write(build(runs), folder)
        written.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert all(files == written[0] for files in written)
    always = [table.name for table in frames.known_tables().values() if table.always]
    files = {f"{name}.{kind}" for name in always for kind in ("csv", "md")}
    assert set(written[0]) >= files


def test_csv_keeps_every_digit_and_leaves_missing_cells_empty(tmp_path: Path) -> None:
    made = build(some_runs())
    write(made, tmp_path)
    for name, table in made.items():
        text = (tmp_path / f"{name}.csv").read_bytes()
        assert b"\r" not in text
        assert b"nan" not in text.lower()
        again = pd.read_csv(tmp_path / f"{name}.csv", keep_default_na=False, na_values={
            column: [""] for column in table.columns if table[column].dtype in ("float64", "Int64")
        }).astype(dict(table.dtypes))  # fmt: skip
        pd.testing.assert_frame_equal(again, table, check_exact=True)


def test_markdown_says_in_words_what_is_missing() -> None:
    text = in_markdown("summary", build(some_runs())["summary"])
    assert ", source framebench, " in text
    assert "accelerator cpu, warm-up steps 1, timed steps 2" in text
    rows = shown(text)
    assert "abcdef" in {row["machine"] for row in rows}, "only what differs stands in the rows"
    failed = next(row for row in rows if row["status"] == "failed")
    assert failed["median"] == "- (failed)"
    assert failed["reason"] == r'a "quoted" \| piped reason, with &lt;b>'
    assert "- (needs 6 repeats)" in {row["95 % interval from"] for row in rows}
    assert "nan" not in text.lower()


@pytest.mark.parametrize(
    ("reason", "safe"),
    [
        ("MemoryError", "MemoryError"),
        ("![](http://example.org/a.png)", r"!\[\](http://example.org/a.png)"),
        ("see [this](x) `a` *now*", r"see \[this\](x) \`a\` \*now\*"),
    ],
)
def test_a_reason_makes_no_markup(reason: str, safe: str) -> None:
    failed = run(None, status="failed", reason=reason, model=reason)
    (row,) = shown(in_markdown("summary", build([failed])["summary"]))
    assert (row["reason"], row["model"]) == (safe, safe)
