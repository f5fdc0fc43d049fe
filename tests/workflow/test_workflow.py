"""User commands, and their effects."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import signal
import sys
import time
import zipfile
from datetime import datetime
from pathlib import Path

from ..commands import framebench, read_rows
from ..processes import wait_for
from .conftest import CASES, ONE_RUN, RUNS, SUITE, Project


def test_everything_then_nothing(measured: Project) -> None:
    ran = measured.first
    assert ran is not None
    summary = read_rows(measured.folder / "results" / "tables" / "summary.csv")
    assert [row["status"] for row in summary] == ["ok"] * CASES
    assert [row["repeats"] for row in summary] == ["2"] * CASES
    end = ran.stdout.rstrip().splitlines()[-15:]
    assert end[-1] == "report: results/report.html", "no answers at the end"
    assert any(line.startswith("toy ") and f"{RUNS} runs in " in line for line in end), end
    for name in ("training", "inference"):
        assert any(re.match(rf"Toy: .* {name}, .*Toy \S+ samples/s", line) for line in end), end
    results = re.findall(r"^\d:\d\d  toy  Toy: .*  fp32  \S+ samples/s", ran.stdout, re.M)
    assert len(results) == RUNS, "not a line for each result"
    begins = rf"^Measuring Toy: .*: {RUNS} runs, 1 peak benchmark, .*about \d+ s$"
    assert re.search(begins, ran.stdout, re.M), ran.stdout
    assert "Tables and report written" in ran.stdout
    assert "rule benchmark" not in ran.stdout, "Snakemake speaks beside it"
    assert "steps (" not in ran.stdout, "Snakemake speaks beside it"
    assert "s in all" not in ran.stdout, "the harness speaks beside it"
    again = measured.all()
    assert again.returncode == 0
    assert "Nothing to be done" in again.stdout, again.stdout
    plan = measured.run("--cores", "all", "plan")
    assert "To do: 0 runs" in plan.stdout, plan.stdout
    assert f"from {RUNS} cached records" in plan.stdout
    before = measured.records()
    measured.write_suite({**SUITE, "repeats": 1, "axes": {**SUITE["axes"], "mode": ["train"]}})
    measured.run("--cores", "all", "--until", "benchmark", "--forcerun", "benchmark", check=True)
    new = {name: text for name, text in measured.records().items() if name not in before}
    assert [Path(name).name for name in new] == ["r1-retry1.json"]
    assert measured.records() == {**before, **new}, "a record was overwritten"


def test_runs_never_overlap_and_repeats_are_interleaved(finished: Project) -> None:
    actual = sorted(finished.parsed(), key=lambda record: record["started"])
    for earlier, later in itertools.pairwise(actual):
        start = [datetime.fromisoformat(record["started"]) for record in (earlier, later)]
        gap = (start[1] - start[0]).total_seconds() - earlier["wall_seconds"]
        assert gap > -0.01, f"two runs overlap by {-gap} s"
    repeats = [record["repeat"] for record in actual]
    assert repeats == sorted(repeats), f"repeats are not interleaved in rounds: {repeats}"
    orders = [[json.dumps(r["case"]) for r in actual if r["repeat"] == number] for number in (1, 2)]
    assert sorted(orders[0]) == sorted(orders[1])
    folder = finished.folder / "results" / "logs" / "toy"
    logs = [path.read_text() for path in folder.rglob("r?.log")]
    processes = {number for log in logs for number in re.findall(r"toy in process (\d+)", log)}
    assert len(processes) == len(actual) == RUNS, "two runs shared a process"


def test_the_driver_rests_while_a_run_is_measured(project: Project) -> None:
    batches = list(range(1, 101))
    project.write_suite({**SUITE, "axes": {**SUITE["axes"], "batch_per_device": batches}})
    workflow = project.start("--cores", "all", toy="hang")
    wait_for(lambda: project.pids("start_rank"), "a run to start")

    def wakeups() -> int:
        # Not CPU time, which on a shared machine includes stolen time.
        threads = Path(f"/proc/{workflow.pid}/task").glob("*/status")
        counts = re.findall(r"^voluntary_.*:\s+(\d+)", "".join(map(Path.read_text, threads)), re.M)
        return sum(map(int, counts))

    def rests() -> bool:
        before = wakeups()
        time.sleep(10)
        return wakeups() - before < 5

    wait_for(rests, "the driver to leave the waiting runs alone while one is measured")
    os.killpg(workflow.pid, signal.SIGINT)
    workflow.communicate(timeout=600)


def test_plan_runs_nothing(project: Project) -> None:
    suite = {**SUITE, "axes": {**SUITE["axes"], "devices_per_node": [1, 512], "nodes": [1, 2]}}
    project.write_suite(suite)
    plan = project.run("--cores", "all", "plan", check=True)
    assert f"{CASES} cases x 2 repeats = {RUNS} runs" in plan.stdout, plan.stdout
    assert "needs 512 devices per node" in plan.stdout
    assert "needs 2 nodes" in plan.stdout
    assert "rough" in plan.stdout
    dry = project.run("--cores", "all", "--dry-run", check=True)
    assert "This was a dry-run" in dry.stdout, "a dry run is Snakemake's own"
    assert "training  fp32" in dry.stdout
    assert not (project.folder / "results").exists(), "plan or dry run wrote something"


def test_weak_and_strong_scaling_share_their_runs(project: Project) -> None:
    axes = {**SUITE["axes"], "mode": "train", "devices_per_node": [1, 2], "batch_per_device": 4}
    project.write_suite({**SUITE, "repeats": 1, "axes": axes, "include": [{"batch_total": [4, 3]}]})
    plan = project.run("--cores", "all", "plan")
    assert "4 cases x 1 repeats = 4 runs" in plan.stdout, plan.stdout
    assert "a total batch of 3 is not divisible by 2 devices" in plan.stdout
    tables = ("--until", "weak_scaling", "strong_scaling")
    project.run("--cores", "all", *tables, toy="sleep=0.01", check=True)
    measured = [json.loads(text)["case"] for text in project.records().values()]
    actual = sorted((case["devices_per_node"], case["batch_per_device"]) for case in measured)
    assert actual == [(1, 3), (1, 4), (2, 2), (2, 4)]
    folder = project.folder / "results" / "tables"
    series = {
        name: [
            (row["devices"], row["batch_per_device"])
            for row in read_rows(folder / f"{name}_scaling.csv")
            if row["speedup"]
        ]
        for name in ("weak", "strong")
    }
    assert series["weak"] == [("1", "3"), ("1", "4"), ("2", "4")]
    assert series["strong"] == [("1", "4"), ("2", "2")]


def test_what_a_framework_cannot_do_is_kept(project: Project) -> None:
    axes = {**ONE_RUN["axes"], "compiler": ["none", "native"]}
    project.write_suite({**ONE_RUN, "axes": axes})
    project.medians(check=True)
    summary = read_rows(project.folder / "results" / "tables" / "summary.csv")
    native = [row for row in summary if row["compiler"] == "native"]
    assert [row["status"] for row in native] == ["unsupported"]
    assert all(row["reason"] and not row["throughput_median"] for row in native)
    project.write_suite({**ONE_RUN, "axes": {**axes, "compiler": ["native"]}})
    ran = project.all()
    assert ran.returncode == 1, "a call that measures nothing"
    assert "Not measured: 1 of 1 run (1 unsupported)" in ran.stdout


def test_a_changed_setting_is_another_case(measured: Project) -> None:
    before = measured.records()
    measured.write_suite({**ONE_RUN, "steps": {"warmup": 1, "timed": 4}})
    assert measured.medians().returncode == 0
    after = measured.records()
    assert len(after) == RUNS + 1, "runs with other steps were taken for these, or were overwritten"
    assert all(after[name] == text for name, text in before.items())
    summary = read_rows(measured.folder / "results" / "tables" / "summary.csv")
    assert len(summary) == CASES + 1, "windows of 3 and of 4 steps share a row"


def test_report_from_records_alone(measured: Project, tmp_path: Path) -> None:
    before = measured.records()
    cached = tmp_path / "cached"
    shutil.copytree(measured.folder / "results" / "runs", cached)
    shutil.rmtree(measured.folder / "results" / "runs")
    for path in [*measured.folder.glob("scripts/**/*.py"), *measured.folder.glob("envs/*")]:
        os.utime(path)  # newer than every record
    (measured.folder / "scripts/frameworks/toy/adapter.py").write_text("changed = True\n")
    made = measured.run(
        "--cores", "1", "report", "--config", f"records={cached}", f"results={tmp_path}/out"
    )
    assert made.returncode == 0, made.stdout
    assert "benchmark" not in made.stdout, f"a benchmark was started: {made.stdout}"
    assert len(read_rows(tmp_path / "out" / "tables" / "summary.csv")) == CASES
    assert (tmp_path / "out" / "report.html").exists()
    assert not (measured.folder / "results" / "runs").exists()
    assert len(before) == RUNS


def test_variants_run_interleaved_and_are_compared(project: Project) -> None:
    """One variable differs, which slows the toy."""
    sides = {"default": None, "slow": {"variables": {"FRAMEBENCH_TOY": "exact,sleep=0.08"}}}
    project.write_suite({**ONE_RUN, "repeats": 7, "variants": sides})
    project.measure(toy="exact,sleep=0.02", check=True)
    actual = [json.loads(text) for text in project.records().values()]
    actual.sort(key=lambda record: record["started"])
    names = [record["settings"]["variant"] for record in actual]
    rounds = [*zip(names[::2], names[1::2], strict=True)]
    assert [sorted(item) for item in rounds] == [["default", "slow"]] * 7
    assert len({*rounds}) == 2, "always in the same order"

    results = project.folder / "results"
    sides = ["--base", f"{results}@default", "--candidate", f"{results}@slow"]
    compared = framebench("compare", *sides, "--results", str(results))
    assert compared.returncode == 0, compared.stderr
    table = read_rows(results / "tables" / "compare.csv")
    assert [row["verdict"] for row in table] == ["slower"], compared.stdout
    for row in table:
        assert float(row["ratio_ci_low"]) <= float(row["ratio"]) <= float(row["ratio_ci_high"]) < 1
        assert re.search(r"given.FRAMEBENCH_TOY none -> sha256:\w+", row["differences"])
        # Two runs with a stall in between do not form a pair: checks follow the very first run.
        assert 6 <= int(row["pairs"]) <= 7
        assert row["order"] == "interleaved"
    unknown = framebench("compare", "--base", f"{results}@x", *sides[2:])
    assert unknown.returncode == 1
    assert "no run is of variant 'x'; there are: default, slow" in unknown.stderr


def test_bad_input_ends_before_any_job(project: Project) -> None:
    """Fail if bad input does not end with one message before any job.
    It is the last line. Input for another target or --sdm is not ignored."""
    # other messages: tests/framebench/config/test_config
    for config, target in {"suite=nosuch": "all", "records=config": "plan"}.items():
        refused = project.run("--cores", "all", target, "--config", config)
        assert refused.returncode == 1, f"{config} was accepted"
        last = refused.stdout.splitlines()[-1]
        assert last.startswith("framebench: config"), refused.stdout
        assert "allowed" in last, refused.stdout
        assert config.partition("=")[0] in last
        assert "rule benchmark" not in refused.stdout
        assert "Traceback" not in refused.stdout, refused.stdout
    assert not project.records()


def test_snakemake_report(measured: Project, tmp_path: Path) -> None:
    measured.run("--report", str(tmp_path / "archive.zip"), check=True)
    with zipfile.ZipFile(tmp_path / "archive.zip") as archive:
        names = archive.namelist()
        (page,) = (name for name in names if "/raw/" in name and name.endswith("/report.html"))
        html = archive.read(page).decode()
        texts = [archive.read(name) for name in names if "/raw/" not in name]
    assert any(b"Weak scaling" in text for text in texts), "the tables have no titles"
    assert 'href="tables/summary.csv"' in (measured.folder / "results/report.html").read_text()
    assert 'title="tables/summary.csv"' in html
    assert not re.findall(r'href="[^#"][^"]*"', html), "links that lead to nothing in the archive"


FILE = 'FRAMEWORK = "pytorch"\ndef make(batch_size): ...\n'


def test_a_file_is_measured_alone_and_verified_behind_its_runs(project: Project) -> None:
    project.configure(interpreters={"pytorch": sys.executable})
    arguments = ("--cores", "all", "-n", "-p", "--config", "model=my model.py")
    refused = project.run(*arguments)
    assert refused.returncode
    assert "allowed: a name of letters, digits" in refused.stdout
    (project.folder / "my_model.py").write_text(FILE)
    dry = project.run(*arguments[:-1], "model=my_model.py", check=True)
    commands = [line for line in dry.stdout.splitlines() if "/harness " in line]
    kinds = {
        kind: [command for command in commands if f"/harness --kind {kind} " in command]
        for kind in ("train", "inference", "verification", "peak_flops", "memory")
    }
    assert [len(some) for some in kinds.values()] == [2, 2, 2, 1, 0], dry.stdout
    assert all("--model my_model.py " in text for text in commands)
    assert all("/frameworks/pytorch " in text for text in commands)
    for text in kinds["verification"]:
        assert "'scale=own float64 run'" in text
        assert "reference=" not in text
    assert not re.search(r"rule reference|frameworks/toy", dry.stdout)
