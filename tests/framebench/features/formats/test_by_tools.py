"""Import reads files that the other tools wrote, and their programs read ours."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from framebench.statistics.descriptive import median
from mlperf_logging import mllog

from ....debian import install_debian_packages
from ...made_up_runs import repeats
from .exporting import CASE_NAME, CLEAN, save_export, with_step_times
from .importing import brought, one

#: Test files of google-benchmark, in its Debian package.
TOOLS = Path("/usr/share/benchmark")


@pytest.fixture(scope="module")
def google_benchmark() -> Path:
    if not TOOLS.exists():
        why = install_debian_packages("libbenchmark-tools")
        if why:
            pytest.skip(why)
    return TOOLS


def test_google_benchmarks_compare_py_tests_ours_against_each_other(
    google_benchmark: Path, tmp_path: Path
) -> None:
    paths = []
    for name, factor in (("base", 1.0), ("slower", 0.8)):
        (tmp_path / name).mkdir()
        runs = [*map(with_step_times, repeats(*(factor * value for value in CLEAN)))]
        paths.append(str(save_export("google-benchmark", tmp_path / name, runs)))
    file = str(tmp_path / "told.json")
    arguments = [str(google_benchmark / "compare.py"), "-d", file, "benchmarks", *paths]
    ran = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    actual = {load["name"]: load for load in json.loads(Path(file).read_text())}[CASE_NAME]
    assert [measurement["time"] for measurement in actual["measurements"]] == pytest.approx(
        [0.25] * len(CLEAN)
    )
    # All values of one side exceed the other's, 2 of 924 ways to draw 6 of 12.
    assert actual["utest"]["time_pvalue"] == pytest.approx(2 / 924)


def test_files_of_google_benchmark_are_read(google_benchmark: Path, tmp_path: Path) -> None:
    for number in (1, 2):
        text = (google_benchmark / f"gbench/Inputs/test1_run{number}.json").read_text()
        rows = [row for row in json.loads(text)["benchmarks"] if "aggregate" not in row.values()]
        actual = brought("google-benchmark", text, tmp_path, at=f"results{number}")
        taken = {run.case.model: (run.figure, run.unit) for run in actual.runs}
        assert taken == {row["name"]: (row["real_time"], row["time_unit"]) for row in rows}


def test_a_file_that_pyperf_measures_is_read(tmp_path: Path) -> None:
    path = tmp_path / "measured.json"
    few = ["--processes", "2", "--values", "3", "--warmups", "1", "--loops", "10"]
    arguments = [sys.executable, "-m", "pyperf", "timeit", *few, "--name", "nothing", "--output"]
    subprocess.run([*arguments, str(path), "pass"], capture_output=True, check=True)
    import pyperf

    measured = pyperf.BenchmarkSuite.load(str(path)).get_benchmark("nothing")
    actual = brought("pyperf", path.read_text(), tmp_path)
    taken = [run.figure for run in sorted(actual.runs, key=lambda run: run.repeat)]
    assert taken == pytest.approx([median(run.values) for run in measured.get_runs()])
    assert {(run.case.model, run.unit) for run in actual.runs} == {("nothing", "s")}


def test_a_log_that_mlperfs_logger_writes_is_read(tmp_path: Path) -> None:
    path = tmp_path / "written.log"
    mllog.config(filename=str(path))
    logger: Any = mllog.get_mllogger()
    logger.event(key="submission_benchmark", value="resnet")
    logger.event(key="global_batch_size", value=64)
    logger.start(key="run_start", time_ms=1_000)
    logger.end(key="run_stop", metadata={"status": "success"}, time_ms=61_500)
    actual = brought("mllog", path.read_text(), tmp_path)
    run = one(actual, metric="time_to_train")
    assert (run.figure, run.unit, run.case.model) == (60.5, "s", "resnet")
    assert dict(run.case.parameters) == {"global_batch_size": 64}
