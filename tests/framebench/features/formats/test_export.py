"""Results in formats of other tools, each read by the tool itself where installable."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from framebench.features.formats import file_formats
from framebench.features.formats.declared import superbench
from framebench.features.formats.file_formats import ExportedFile, Results
from framebench.records import record_sets, tidy_csv
from framebench.records.run import Flag, MetricValue, RecordsError, Run
from framebench.statistics.descriptive import median
from framebench.statistics.intervals import median_interval
from framebench.tables.results import CaseResults, group
from junitparser import JUnitXml
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from pylatexenc.latexwalker import LatexWalker

from ....conftest import ROOT
from ...made_up_runs import changed, measured, repeats, run

#: Throughputs of a case without flags.
CLEAN = (100.0, 101.0, 102.0, 103.0, 104.0, 105.0)
#: Reason with characters that formats must escape.
ODD = 'ran <out> of "memory" & 100 % of $_{x}^2'
#: Exported name of the case of CLEAN.
CASE_NAME = "pytorch/resnet50_v1.5/train/1n1g/b32/fp32"


def with_step_times(one: Run, steps: int = 4) -> Run:
    """Return a run with start time, and step times consistent with its throughput."""
    seconds = one.case.batch_per_device / (one.throughput or 1.0)
    times = tuple(seconds * factor for factor in (0.5, 1.5) * (steps // 2))
    steps = {"step_seconds": times, "waited_apart": times}
    return changed(one, **steps, started=1.7e9 + one.repeat, wall_seconds=30.0)


def runs_of_all_kinds() -> list[Run]:
    flag = (Flag("disturbed", "somebody compiled"),)
    return [
        *map(with_step_times, repeats(*CLEAN)),
        *(with_step_times(repeat) for repeat in repeats(50.0, 52.0, precision="amp", flags=flag)),
        run(None, batch_per_device=512, status="oom", reason=ODD),
        run(None, compiler="xla", status="unsupported", reason="has no xla"),
        measured("peak_flops", [MetricValue("peak", 1.5, "TFLOP/s")], size=2048),
        measured("copy", [MetricValue("latency", 2.5, "ms", "lower")], bytes=64),
    ]


def grouped(runs: list[Run] | None = None) -> CaseResults:
    return group(runs or runs_of_all_kinds(), None)


def exported(name: str, runs: list[Run] | None = None) -> ExportedFile:
    write = file_formats.writer(name).write
    assert write
    return write(Results(grouped(runs)))


def save_export(name: str, folder: Path, runs: list[Run] | None = None) -> Path:
    path = folder / f"results{file_formats.writer(name).suffix}"
    content = exported(name, runs).content
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


WRITTEN = [name for name, form in file_formats.known().items() if form.write]
MIDDLE = median(CLEAN)
INTERVAL = median_interval(CLEAN)
assert INTERVAL
LOW, HIGH = INTERVAL


def text(name: str, runs: list[Run] | None = None) -> str:
    content = exported(name, runs).content
    return content if isinstance(content, str) else content.decode()


# ---- by the tools --------------------------------------------------------------------------------


def test_bencher_has_intervals_and_no_alert_for_flagged_figures() -> None:
    document = json.loads(text("bencher"))
    measure = document[CASE_NAME]["throughput (images/s)"]
    assert measure == {"value": MIDDLE, "lower_value": LOW, "upper_value": HIGH}
    marked = document["pytorch/resnet50_v1.5/train/1n1g/b32/amp-bencher-ignore"]
    assert marked == {"throughput (images/s)": {"value": 51.0}}
    assert document["peak_flops/1n1g/size=2048"] == {"peak (TFLOP/s)": {"value": 1.5}}
    for measures in document.values():
        for entry in measures.values():
            assert {*entry} <= {"value", "lower_value", "upper_value"}
            assert all(isinstance(value, float) for value in entry.values())


def test_github_action_benchmark_has_one_direction_a_file() -> None:
    bigger = {load["name"]: load for load in json.loads(text("github-action-benchmark"))}
    smaller = json.loads(text("github-action-benchmark-smaller"))
    assert bigger[f"{CASE_NAME} throughput"] == {
        "name": f"{CASE_NAME} throughput",
        "unit": "images/s",
        "value": MIDDLE,
        "range": f"{LOW:.6g} to {HIGH:.6g}",
        "extra": "no flags",
    }
    assert "flags: disturbed" in bigger[f"{CASE_NAME[:-4]}amp throughput"]["extra"]
    assert [entry["name"] for entry in smaller] == ["copy/1n1g/bytes=64 latency"]
    assert any(
        "latency: lower is better" in text for text in exported("github-action-benchmark").left_out
    )


def test_pyperf_reads_and_compares_our_steps(tmp_path: Path) -> None:
    path = save_export("pyperf", tmp_path)
    for command in (["check", path], ["compare_to", path, path]):
        done = subprocess.run(
            [sys.executable, "-m", "pyperf", *map(str, command)], capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
    import pyperf

    suite = pyperf.BenchmarkSuite.load(str(path))
    benchmark = suite.get_benchmark(CASE_NAME)
    assert benchmark.get_nrun() == len(CLEAN)
    assert benchmark.get_unit() == "second"
    assert benchmark.mean() == pytest.approx(sum(32 / value for value in CLEAN) / len(CLEAN))
    marked = suite.get_benchmark(CASE_NAME[:-4] + "amp")
    assert marked.get_metadata()["framebench_flags"] == "disturbed"
    waited = changed(with_step_times(run(352.0)), waited_apart=(0.09, 0.1))
    (steps,) = json.loads(text("pyperf", [waited]))["benchmarks"]
    assert [one["values"] for one in steps["runs"]] == [[0.09, 0.1]], "steps in flight are none"


def test_prometheus_reads_openmetrics() -> None:
    families = {entry.name: entry for entry in text_string_to_metric_families(text("openmetrics"))}
    throughput = families["framebench_throughput_images_per_second"]
    assert throughput.unit == "images_per_second"
    assert {sample.labels["case"]: sample.value for sample in throughput.samples}[
        CASE_NAME
    ] == MIDDLE
    ends = families["framebench_throughput_ci_low_images_per_second"].samples
    assert [(end.labels["case"], end.value) for end in ends] == [(CASE_NAME, LOW)]
    flags = {
        (sample.labels["case"], sample.labels["flag"])
        for sample in families["framebench_flag"].samples
    }
    assert (CASE_NAME[:-4] + "amp", "disturbed") in flags
    assert CASE_NAME not in {case for case, _ in flags}
    counted = {
        (sample.labels["batch_per_device"], sample.labels["status"]): sample.value
        for sample in families["framebench_repeats"].samples
        if sample.labels["status"] in ("ok", "oom") and "batch_per_device" in sample.labels
    }
    assert counted["512", "oom"] == 1
    (latency,) = families["framebench_latency_ms"].samples
    assert (latency.labels["better"], latency.labels["unit"]) == ("lower", "ms")


def test_junit_counts_failures_by_status(tmp_path: Path) -> None:
    actual = JUnitXml.fromfile(str(save_export("junit", tmp_path)))
    found_counts = (actual.tests, actual.failures, actual.errors, actual.skipped)
    assert found_counts == (6, 1, 0, 1)
    (suite,) = actual
    failed = [case for case in suite if case.is_failure]
    assert [case.result[0].message for case in failed] == [ODD]
    marked = next(case for case in suite if case.name.startswith(CASE_NAME[:-4] + "amp"))
    properties = {entry.get("name"): entry.get("value") for entry in marked._elem.iter("property")}
    assert properties["flags"] == "disturbed"
    assert properties["median"] == "51.0"


def test_pandas_reads_parquet_as_the_table_of_runs(tmp_path: Path) -> None:
    frame = pd.read_parquet(save_export("parquet", tmp_path))
    assert frame["value"].dropna().tolist() == [
        1.0 * value for value in (2.5, 1.5, 50.0, 52.0, *CLEAN)
    ]
    assert str(frame["nodes"].dtype) == "Int64"
    copies = [one for one in runs_of_all_kinds() if one.case.mode == "copy"]
    without = pd.read_parquet(save_export("parquet", tmp_path, copies))
    assert str(without["batch_per_device"].dtype) == "Int64", "though none is known"
    assert set(frame.loc[frame["precision"] == "amp", "flags"]) == {"disturbed"}


def test_latex_is_a_table_with_everything_escaped(tmp_path: Path) -> None:
    table = text("latex", [run(1.0, model=ODD), run(None, model="a\\b")])
    nodes, _, _ = LatexWalker(table, tolerant_parsing=False).get_latex_nodes()
    environments = [node for node in nodes if getattr(node, "environmentname", "")]
    assert [node.environmentname for node in environments] == ["longtable"]
    rows = [line for line in table.splitlines() if line.endswith(r"\\")]
    assert {line.replace(r"\&", "").count("&") for line in rows} - {0} == {6}
    assert r"a\textbackslash b" in table.replace("{}", "").replace("  ", " ")
    assert r"\$\_\{x\}" in table


def test_superbench_tells_failed_cases_apart() -> None:
    actual = json.loads(text("superbench"))
    codes = {key: value for key, value in actual.items() if key.endswith("return_code")}
    assert sorted(codes.values()) == [0, 0, 1, 1]
    clean = [key for key in actual if key.startswith(f"{superbench.CLEAN}:train-1n1g-b32-fp32/")]
    assert len(clean) == 1 + 2 * len(CLEAN), "a return code, and two figures of each repeat"


def test_google_benchmark_has_a_row_for_each_repeat() -> None:
    document = json.loads(text("google-benchmark"))
    rows = [row for row in document["benchmarks"] if row["run_name"] == CASE_NAME]
    assert [row["repetition_index"] for row in rows] == [*range(6)]
    assert {row["repetitions"] for row in rows} == {6}
    assert [row["items_per_second"] for row in rows] == [*CLEAN]
    assert rows[0]["real_time"] == pytest.approx(1_000_000 * 32 / CLEAN[0])
    assert {row["time_unit"] for row in document["benchmarks"]} == {"us"}
    read_by_compare = {"name", "run_type", "real_time", "cpu_time", "time_unit"}
    assert all(read_by_compare <= {*row} for row in document["benchmarks"])
    labels = {row["run_name"]: row.get("label") for row in document["benchmarks"]}
    assert labels[CASE_NAME] is None
    assert labels[CASE_NAME[:-4] + "amp"] == "disturbed"
    assert any(ODD in text for text in exported("google-benchmark").left_out)


# ---- back and forth ------------------------------------------------------------------------------


def cells(one: Run) -> list[dict[str, str]]:
    return tidy_csv.rows_of(one, {flag.name for flag in one.flags})


def test_what_is_exported_and_imported_again_is_the_same(tmp_path: Path) -> None:
    file_formats.import_files("csv", save_export("csv", tmp_path), tmp_path / "again")
    actual = record_sets.load(tmp_path / "again" / "runs")
    assert not actual.problems
    again = [row for one in actual.runs for row in cells(one)]
    before = [row for one in runs_of_all_kinds() for row in cells(one)]
    assert sorted(again, key=repr) == sorted(before, key=repr)


# ---- all of them ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WRITTEN)
def test_a_flagged_figure_is_exported_with_its_flag_or_not_at_all(name: str) -> None:
    flag = (Flag("disturbed", "somebody compiled"),)
    clean = [*map(with_step_times, repeats(*CLEAN))]
    if name == "github-action-benchmark-smaller":
        metric = MetricValue("latency", 2.5, "ms", "lower")
        clean = [replace(measured("copy", [metric]), repeat=number) for number in range(1, 7)]
    doubted = [replace(one, flags=flag) for one in clean]
    assert exported(name, clean).content != exported(name, doubted).content


@pytest.mark.parametrize("name", WRITTEN)
def test_every_case_is_in_the_file_or_said_not_to_be(name: str) -> None:
    file = exported(name)
    content = file.content.encode() if isinstance(file.content, str) else file.content
    said = "\n".join(file.left_out)
    for word in ("xla", "peak", "amp", "b512/"):
        # In typed columns numbers are not exported as text.
        word = "oom" if name == "parquet" and word == "b512/" else word
        is_mentioned = word in said or word.strip("b/").encode() in content
        assert is_mentioned, f"{word} is neither in the file nor among what is not"


@pytest.mark.parametrize("name", WRITTEN)
def test_an_export_of_nothing_is_an_error_without_a_file(name: str, tmp_path: Path) -> None:
    failed = replace(
        measured("copy", [MetricValue("share", None, "%")]), status="failed", reason=ODD
    )
    sets: list[CaseResults] = [{}]
    if exported(name, [failed]).is_empty:
        sets.append(grouped([failed]))
    for cases in sets:
        with pytest.raises(RecordsError, match="export: nothing of these results") as error:
            file_formats.export_cases(cases, name, tmp_path / "x", tmp_path / "results")
        assert not cases or "not in it: copy/1n1g" in str(error.value)
        assert not [*tmp_path.rglob("*")]
    with_no_place = {"bencher", "github-action-benchmark", "google-benchmark", "pyperf"}
    assert len(sets) == 2 or name not in with_no_place


def points() -> list[Run]:
    metrics = [
        MetricValue("time", 1.0 * size, "us", "lower", (("bytes", size),)) for size in (64, 128)
    ]
    return [replace(measured("collective", metrics), repeat=repeat) for repeat in (1, 2)]


@pytest.mark.parametrize("name", sorted({*WRITTEN} - {"parquet"}))
def test_no_format_overwrites_one_point_by_another(name: str) -> None:
    file = exported(name, points())
    everything = "\n".join([str(file.content), *file.left_out])
    for size in ("64", "128"):
        assert re.search(rf"bytes\W+{size}\b", everything), size


def test_names_are_the_same_from_set_to_set_and_differ_within_one() -> None:
    one, other = run(1.0), run(1.0, framework_version="3.0")
    keys = [one.key, other.key]
    assert file_formats.names_of([one.key]) == {one.key: CASE_NAME}
    both = file_formats.names_of(keys)
    assert len({*both.values()}) == 2
    assert all(name.startswith(f"{CASE_NAME}/") for name in both.values())
    own = [run(1.0, model=f"net@{version * 8}").key for version in "01"]
    assert file_formats.names_of(own[:1])[own[0]] == file_formats.names_of(own[1:])[own[1]]
    assert len({*file_formats.names_of(own).values()}) == 2, "two versions of a model in one set"
    units = file_formats.names_of([one.key, run(1.0, unit="samples/s").key])
    assert len({*units.values()}) == 2, "figures in two units are of two cases"
    assert file_formats.names_of([run(1.0, warmup_steps=7).key]).popitem()[1] == CASE_NAME


def test_the_documentation_has_a_row_for_each_format() -> None:
    page = (ROOT / "docs" / "formats.md").read_text()
    out, _, read = page.partition("\n### In\n")
    for name, form in file_formats.known().items():
        row = f"docs/formats.md: a row for {name}"
        assert (f"\n| `{name}` |" in out) == bool(form.write), row
        assert (f"\n| `{name}` |" in read) == bool(form.read), row
