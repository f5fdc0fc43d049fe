"""Answers on the fastest framework, its lead and significance, wherever they stand."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pandas as pd
import pytest
from framebench import cli
from framebench.config.catalog import framework_title
from framebench.machine.identities import Identity
from framebench.records import sidecars
from framebench.records.run import MetricValue, Run
from framebench.report import html_report
from framebench.statistics.verdicts import CANNOT_TELL, FASTER, NO_DIFFERENCE
from framebench.tables import frames, setting_answers
from framebench.tables.columns import Row
from framebench.tables.declared import overview
from framebench.tables.ratios import Sides, set_verdicts
from framebench.tables.table import frame_rows

from ...commands import read_rows
from ..made_up_records import write_records
from ..made_up_runs import SEVEN, build, in_markdown, measured, repeats, run, table_of


def by(framework: str, *values: float | None, **changes: Any) -> list[Run]:
    return repeats(*values, framework=framework, framework_version="1", **changes)


def times(factor: float, values: Sequence[float] = SEVEN) -> list[float]:
    return [factor * value for value in values]


def tables(runs: Sequence[Run]) -> dict[str, list[Row]]:
    return {name: frame_rows(frame) for name, frame in build(runs).items()}


def fastest(*runs: Sequence[Run]) -> list[Row]:
    return tables([one for some in runs for one in some])["fastest"]


def test_the_fastest_stands_before_the_next_and_the_lead_is_shown() -> None:
    (row,) = fastest(
        by("jax", *times(1.2), compiler="jit"), by("pytorch", *SEVEN), by("mxnet", *times(0.5)),
    )  # fmt: skip
    assert (row["framework"], row["compiler"], row["next_framework"]) == ("jax", "jit", "pytorch")
    assert row["median"] == pytest.approx(120)
    assert row["lead"] == pytest.approx(1.2)
    assert row["lead_ci_low"] < 1.2 < row["lead_ci_high"]
    assert (row["verdict"], row["reason"]) == (FASTER, "")
    assert (row["compared"], row["tried"]) == (3, 3)


def test_a_tie_is_none_and_noise_is_no_lead() -> None:
    (row,) = fastest(by("jax", *SEVEN), by("pytorch", *times(1.001)))
    assert (row["verdict"], row["reason"]) == (NO_DIFFERENCE, "")
    wide = (60.0, 75.0, 90.0, 100.0, 110.0, 125.0, 140.0)
    (row,) = fastest(by("jax", *wide), by("pytorch", *times(1.03, wide)))
    assert row["verdict"] == CANNOT_TELL
    assert "is possible: more repeats, or less noise" in row["reason"]


def test_too_few_repeats_say_how_many_it_takes() -> None:
    pairs = [
        by("jax", 200.0, 201.0, batch_per_device=batch)
        + by("mxnet", 1.0, 1.1, batch_per_device=batch)
        for batch in range(1, 101)
    ]
    one, *_ = fastest(*pairs[:1])
    assert (one["verdict"], one["lead_ci_low"]) == ("", None)
    assert one["reason"] == "too few repeats: needs 7"
    many = fastest(*pairs)
    assert {row["reason"] for row in many} == {"too few repeats: needs 8"}


def test_of_a_framework_the_fastest_of_compilers_and_variants_counts() -> None:
    ways = [by("pytorch", *times(0.9), suite_variant=f"{number}") for number in range(100)]
    (row,) = fastest(
        by("jax", *SEVEN),
        *ways,
        by("pytorch", *times(1.3), compiler="inductor"),
        by("pytorch", *times(1.5), compiler="inductor", suite_variant="tuned"),
    )
    assert (row["framework"], row["compiler"], row["suite_variant"]) == (
        "pytorch",
        "inductor",
        "tuned",
    )
    assert (row["next_framework"], row["compared"]) == ("jax", 2)
    assert row["repeats_to_show"] == 8, "7 for a fastest that was not chosen from 102"


@pytest.mark.parametrize(("choices", "expected"), [(1, FASTER), (100, CANNOT_TELL)])
def test_a_lead_that_was_chosen_from_many_is_not_called_by_chance(
    choices: int, expected: str
) -> None:
    assert set_verdicts([Sides(SEVEN, times(2), choices)]) == [expected]


def test_other_machines_batches_and_units_are_never_compared() -> None:
    rows = fastest(
        by("jax", *SEVEN), by("pytorch", *times(2), batch_per_device=64),
        by("mxnet", *times(3), unit="tokens/s"), by("paddle", *SEVEN, timed_steps=9),
    )  # fmt: skip
    assert len(rows) == 4
    assert {row["reason"] for row in rows} == {"no other framework has a figure"}
    machines = (Identity("A", host="a"), Identity("B", host="b"))
    here, there = (
        [replace(one, machine=machine, hardware=machine.hardware) for one in by(name, *SEVEN)]
        for name, machine in zip(("jax", "pytorch"), machines, strict=True)
    )
    assert [row["compared"] for row in fastest(here, there)] == [1, 1]
    _, settings = overview.crosstab(tables(here + there)["overview"])
    assert len(settings) == 2


def test_one_framework_alone_and_failures_only_say_so() -> None:
    (row,) = fastest(by("jax", *SEVEN), by("mxnet", None, None))
    assert row["reason"] == "no other framework has a figure: 1 failed"
    assert (row["framework"], row["lead"], row["tried"]) == ("jax", None, 2)
    (row,) = fastest(
        by("jax", None, status="oom"), by("mxnet", None, status="unsupported"), by("paddle", None)
    )
    assert row["reason"] == "no figure: 1 failed, 1 oom, 1 unsupported"
    assert (row["framework"], row["median"], row["compared"]) == ("", None, 0)
    assert tables([])["fastest"] == []


def seconds(framework: str, *values: float, kind: str = "first_token") -> list[Run]:
    """Return runs of a benchmark other than steps, of which less is better."""
    made = [
        measured(kind, [MetricValue("seconds", value, "s", "lower")], size=8) for value in values
    ]
    case = made[0].case._replace(framework=framework)
    return [replace(one, case=case, repeat=repeat) for repeat, one in enumerate(made, 1)]


def test_less_is_better_where_a_kind_says_so_and_a_control_is_no_contest() -> None:
    (row,) = fastest(seconds("jax", *times(0.02)), seconds("mxnet", *times(0.01)))
    assert (row["framework"], row["next_framework"]) == ("mxnet", "jax")
    assert row["lead"] == pytest.approx(2)
    assert (row["parameters"], row["metric"], row["verdict"]) == ("size 8", "seconds", FASTER)
    assert fastest(seconds("jax", 1.0, kind="independent")) == []


def test_failures_are_counted_by_status_and_reason() -> None:
    runs = [
        *by("jax", None, None, reason="no amp"), *by("mxnet", None, reason="no amp"),
        *by("mxnet", None, status="oom", reason="14 GiB", batch_per_device=9),
        *by("paddle", *SEVEN),
    ]  # fmt: skip
    actual = [
        (row["status"], row["failed_runs"], row["failed_cases"], row["failed_in"], row["reason"])
        for row in tables(runs)["failures"]
    ]
    assert actual == [("failed", 3, 2, "jax, mxnet", "no amp"), ("oom", 1, 1, "mxnet", "14 GiB")]


def test_the_overview_has_every_framework_at_every_setting_and_its_part_of_the_best() -> None:
    runs = [
        *by("jax", *times(2), compiler="jit"), *by("pytorch", *SEVEN),
        *by("pytorch", *times(4), compiler="inductor"), *by("mxnet", None, reason="broke"),
    ]  # fmt: skip
    rows = {(row["framework"], row["compilation"]): row for row in tables(runs)["overview"]}
    assert rows["jax", "default"]["part_of_best"] == 1, "nobody trains it without jit"
    case = run().case._replace(framework="jax", mode="converge", compiler="jit")
    assert overview.compilation(case) == "default", "to a target neither"
    assert rows["pytorch", "default"]["part_of_best"] == pytest.approx(0.5)
    assert rows["pytorch", "compiled"]["part_of_best"] == 1
    text = in_markdown("overview", table_of("overview", runs))
    assert "| measured | setting | pytorch | jax | mxnet |" in text
    named = "resnet50_v1.5, train (images/s)"
    assert f"| {named} | fp32 1n1g | 100 (0.50) | 200 (1.00) | - (failed) |" in text
    assert f"| {named} | fp32 1n1g compiled | 400 (1.00) | - (not run) | - (not run) |" in text


def test_a_call_ends_with_the_answer_uncut_and_keeps_it_in_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write_records(tmp_path / "runs")
    sidecars.note_call(tmp_path, "quick", "snakemake --cores all")
    with patch.object(html_report, "draw_table", return_value=[]):  # charts take long
        assert cli.main(["report", "--records", str(source), "--results", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert re.match("quick . ", lines[0])
    start = "ResNet-50 v1.5 training, fp32, 1 core, "
    (training,) = (line for line in lines if line.startswith(start))
    names = [row["framework"] for row in read_rows(tmp_path / "tables" / "overview.csv")]
    for name in {*names} - {"tensorflow1"}:
        assert re.search(framework_title(name), training), (name, training)
    assert re.search(r"JAX, \d+ % ahead of PyTorch", training), training
    assert lines[-1] == f"report: {tmp_path}/report.html"
    kept = (tmp_path / "answer.txt").read_text()
    shown = [word for line in lines[:-1] if not line.startswith("..") for word in line.split()]
    assert not {*shown} - {*kept.split()}, "it has all settings"
    assert "Measured: Example CPU" in (tmp_path / "tables" / "summary.md").read_text()
    with (tmp_path / "tables" / "fastest.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 12


def test_where_figures_are_from() -> None:
    runs = [run(started=0.0, wall_seconds=30.0, commit="abc"), run(started=90000.0, repeat=2)]
    provenance = setting_answers.describe_origin(
        runs, [sidecars.CallEntry("", "quick", "one"), sidecars.CallEntry("", "zoo", "two")]
    )
    assert provenance.caption == "1970-01-01 to 1970-01-02, commit abc"
    assert (provenance.took, provenance.suites, provenance.command) == (
        "30 s",
        ["quick", "zoo"],
        "two",
    )


def test_what_all_cases_of_a_kind_have_stands_once_and_a_case_has_what_is_its_own() -> None:
    metric = MetricValue("time_to_target", 2.0, "s", "lower")
    recipe = {"epochs": 10, "schedule": "one_cycle"}
    runs = [measured("converge", [metric], **recipe, target=target) for target in (0.9, 0.98)]
    runs += [measured("memory", [MetricValue("triad", 1.0, "GB/s")], blocks=5)]
    seen = {name: frames.view_table(frames.known_tables()[name], pd.DataFrame(rows))
            for name, rows in tables(runs).items() if name in ("fastest", "overview")}  # fmt: skip
    shown = {row["parameters"] for of in seen.values() for row in of.rows}
    assert {"blocks 5", "epochs 10, schedule one_cycle, target 0.9"} <= shown
    headings = [cell.text for cell in seen["overview"].fields[0].cells]
    assert headings == ["converge, target 0.9 (s)", "converge, target 0.98 (s)", "memory (GB/s)"]
