"""Nothing measured is lost, nothing partial counts as done, and no process stays behind."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ..processes import wait_for
from .conftest import ONE_RUN, RUNS, Project
from .snakemake_server import SnakemakeCall

ALONE = ("--until", "benchmark")
REPORTED = "tables and report hold them: results/report.html"


def started_after_first_record(project: Project, *arguments: str, **more: str) -> SnakemakeCall:
    """Start a workflow, and return it during its second run, which waits until it is let go."""
    held(project).touch()
    variables = {"toy": "hold_inference=2", "FRAMEBENCH_HOLD": str(held(project)), **more}
    workflow = project.start("--cores", "all", *arguments, **variables)
    wait_for(project.records, "a run to finish")
    wait_for(lambda: project.pids("start_rank"), "a second run to start")
    return workflow


def held(project: Project) -> Path:
    return project.folder / "hold"


def assert_continues(project: Project, before: dict[str, str], tables: bool = False) -> None:
    """Check that the next call runs only missing runs, and changes no earlier record."""
    (project.medians if tables else project.measure)(check=True)
    after = project.records()
    assert project.statuses() == ["ok"] * RUNS
    changed = [name for name in before if after.get(name) != before[name]]
    assert not changed, f"finished records were touched: {changed}"


def repeats_in_the_summary(project: Project) -> list[str]:
    with (project.folder / "results" / "tables" / "summary.csv").open() as file:
        return sorted(row["repeats"] for row in csv.DictReader(file))


@pytest.mark.parametrize(
    ("number", "times", "to_all", "words"),
    [
        (signal.SIGINT, 3, True, ()),
        (signal.SIGTERM, 2, False, (*ALONE, "--config", "frameworks=[toy]")),
    ],
)
def test_a_signal_ends_the_call(
    project: Project, number: signal.Signals, times: int, to_all: bool, words: tuple[str, ...]
) -> None:
    """``to_all``: to the whole process group."""
    workflow = started_after_first_record(project, *words)
    for _ in range(times):
        with contextlib.suppress(ProcessLookupError):  # the process may have ended
            (os.killpg if to_all else os.kill)(workflow.pid, number)
        time.sleep(0.1)
    output, _ = workflow.communicate(timeout=600)
    assert workflow.returncode == 128 + number, output
    project.assert_nothing_left()
    before = project.records()
    assert len(before) == 1
    report = "" if words else f"; {REPORTED}"
    assert output.rstrip().splitlines()[-3:] == [
        f"Measured: 1 of 4 runs{report}",
        "Missing: 3 runs",
        f"To go on: {shlex.join(['snakemake', '--cores', 'all', *words])}",
    ], output
    if not words:
        assert repeats_in_the_summary(project) == ["1"], output
    for noise in ("Traceback", "Error in rule", "CalledProcessError", "At least one job"):
        assert noise not in output, output
    if times == 3:
        assert_continues(project, before)


#: Addition to the rules: Ctrl-C while Snakemake plans on after the first round, when it holds its
#: scheduler's lock.
INTERRUPTION = """
import os

_records_of_call = records_of_call


def records_of_call(wildcards):
    if any(Path("results/logs/rounds").glob("*.txt")):
        os.kill(os.getpid(), 2)
    return _records_of_call(wildcards)
"""


def test_a_signal_ends_the_call_while_snakemake_plans_on(project: Project) -> None:
    project.write_suite({**ONE_RUN, "repeats": 5, "time_budget": 90})
    rules = project.folder / "workflow" / "rules" / "common.smk"
    rules.write_text(rules.read_text() + INTERRUPTION)
    workflow = project.start("--cores", "all")
    output, _ = workflow.communicate(timeout=60)
    assert workflow.returncode == 128 + signal.SIGINT, output
    assert "To go on: snakemake --cores all" in output
    project.assert_nothing_left()


def test_kill_of_a_run(project: Project) -> None:
    workflow = started_after_first_record(project)
    launchers = project.pids("scripts/harness", "--output")
    os.kill(launchers[0], signal.SIGKILL)
    held(project).unlink()
    output, _ = workflow.communicate(timeout=600)
    assert workflow.returncode == 1, "a run without a record went unnoticed"
    assert output.count("failed: ended without a record") == 1, output
    for noise in ("Error in rule", "CalledProcessError", "At least one job", "Exiting because"):
        assert noise not in output, "Snakemake speaks beside it"
    assert len(project.records()) == RUNS - 1, f"the other runs did not go on: {output}"
    project.assert_nothing_left()
    assert repeats_in_the_summary(project) == ["1", "2"], output
    assert "Interrupted" in (project.folder / "results" / "report.html").read_text()
    assert output.rstrip().splitlines()[-3:] == [
        f"Measured: 3 of 4 runs; {REPORTED}",
        "Missing: 1 run",
        "To go on: snakemake --cores all",
    ]
    assert_continues(project, project.records(), tables=True)
    assert repeats_in_the_summary(project) == ["2", "2"], "tables of fewer records were kept"


def test_kill_of_a_rank_is_recorded(project: Project) -> None:
    workflow = started_after_first_record(project, PYTHONIOENCODING="ascii", LC_ALL="C")
    os.kill(project.pids("start_rank")[0], signal.SIGKILL)
    held(project).unlink()
    output, _ = workflow.communicate(timeout=600)
    assert workflow.returncode == 1, output
    assert project.statuses() == ["failed"] + ["ok"] * (RUNS - 1)
    failed = [text for text in project.records().values() if '"failed"' in text]
    assert "SIGKILL" in json.loads(failed[0])["reason"]
    assert "SIGKILL" in (project.folder / "results" / "report.html").read_text()
    assert re.search(r"^Not measured: 1 of 4 runs \(1 failed\), see the report$", output, re.M)
    project.assert_nothing_left()
    before = project.records()
    again = project.all()
    assert again.returncode == 1, "the records are the same, and the status another"
    assert project.records() == before, "failed runs were repeated unasked"
    assert "Not measured: 1 of 4 runs (1 failed)" in again.stdout


def test_retry_runs_failed_runs_again_and_keeps_their_records(project: Project) -> None:
    project.write_suite(ONE_RUN)
    assert project.measure(toy="nan_at=3").returncode == 0
    assert project.statuses() == ["failed"]
    before = project.records()
    project.medians("retry=failed,timeout", check=True)
    after = project.records()
    assert all(after[name] == text for name, text in before.items()), "failed records were changed"
    new = set(after) - set(before)
    assert len(new) == 1
    assert all(name.endswith("-retry1.json") for name in new)
    summary = (project.folder / "results" / "tables" / "summary.csv").read_text()
    assert "failed" not in summary, f"the superseded attempts count: {summary}"


def test_truncated_and_foreign_records_are_named_and_run_again(measured: Project) -> None:
    first, second = list(measured.records())[:2]
    runs = measured.folder / "results" / "runs"
    text = (runs / first).read_text()
    (runs / first).write_text(text[: len(text) // 2])
    (runs / second).write_text('{"benchmark": "of somebody else", "value": NaN}')
    (runs / "notes.json").write_text("[]")
    measured.measure(check=True)
    said = measured.report().stdout
    for name in (first, second, "notes.json"):
        assert name in said, f"{name} was ignored without a word: {said}"
    assert (runs / first).read_text() == text[: len(text) // 2], "the broken file was overwritten"
    names = set(measured.records())
    assert {n.replace(".json", "-retry1.json") for n in (first, second)} <= names
    assert len(names) == RUNS + 2 + 1, "more was run than was missing"


def in_mount(project: Project, options: str, before: str) -> subprocess.CompletedProcess[str]:
    """Run the workflow in a mount namespace in which results is a separate file system."""
    mount = f"mount -t tmpfs -o {options} tmpfs results && {before}"
    script = f"{mount} && exec {sys.executable} -m snakemake --cores all"
    return subprocess.run(
        ["unshare", "--map-root-user", "--mount", "sh", "-c", script],
        cwd=project.folder,
        env={**os.environ, "FRAMEBENCH_TOY": ""},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def test_full_disk(project: Project) -> None:
    project.write_suite(ONE_RUN)
    (project.folder / "results").mkdir()
    full = in_mount(project, "size=300k", "head -c 1M /dev/zero > results/full 2>/dev/null || true")
    output = full.stdout + full.stderr
    assert full.returncode != 0
    assert "No space left" in output, output
    project.assert_nothing_left()
    assert project.measure().returncode == 0, "the next call, with space, does not go through"


def test_read_only_results(project: Project) -> None:
    (project.folder / "results").mkdir()
    refused = in_mount(project, "size=1M", "mount -o remount,ro results")
    output = refused.stdout + refused.stderr
    assert refused.returncode != 0
    assert "results: cannot be written" in output, output
    assert "Make it writable" in output, output


def test_values_reach_no_shell_unquoted(project: Project) -> None:
    project.write_suite(ONE_RUN)
    name = "x'; touch pwned; $(touch pwned) `touch pwned` & y"
    project.run("--cores", "all", "--config", f"results={name}", check=True)
    assert not list(Path(project.folder).rglob("pwned")), "a value of the config was executed"
    assert (project.folder / name / "report.html").exists()
    planned = project.run("--cores", "all", "plan", "--config", f"results={name}", check=True)
    assert "To do: 0 runs" in planned.stdout, planned.stdout
    assert not list(Path(project.folder).rglob("pwned")), "plan executed a value of the config"
