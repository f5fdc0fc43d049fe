"""Everything that Framebench uses of Snakemake's objects exists in the installed Snakemake."""

from __future__ import annotations

import asyncio
import logging
import logging.handlers
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from framebench.driver import internals
from framebench.driver.internals import PUBLISHED, USED, Snakemake
from snakemake.exceptions import WorkflowError
from snakemake_interface_logger_plugins.common import LogEvent

SNAKEFILE = Path(__file__).parents[1] / "programs" / "attributes.smk"


@pytest.mark.parametrize(
    ("arguments", "forces"),
    [
        (["--forcerun", "benchmark"], True),
        (["-R", "tables", "benchmark", "--config", "a=b"], True),
        (["--forceall", "plan"], True),
        (["-R", "tables", "--until", "benchmark"], False),
        (["benchmark"], False),
    ],
)
def test_who_forces_the_rule_measures_again(
    arguments: list[str], forces: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["snakemake", *arguments])
    assert Snakemake(SimpleNamespace(rundir=".")).forces_runs == forces


@pytest.mark.parametrize(
    ("arguments", "starts_nothing", "shows_files"),
    [
        (["-S"], True, True),
        (["--rulegraph"], True, True),
        (["-l"], True, False),
        (["--report", "a.zip"], True, False),
        (["-n"], False, False),
        (["--touch"], False, False),
        (["all"], False, False),
    ],
)
def test_options_that_start_no_job_are_known_by_all_their_names(
    arguments: list[str], starts_nothing: bool, shows_files: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["snakemake", *arguments])
    snakemake = Snakemake(SimpleNamespace(rundir="."))
    assert (snakemake.starts_nothing, snakemake.shows_files) == (starts_nothing, shows_files)


def test_snakemake_has_all_that_is_used(tmp_path: Path) -> None:
    paths = ",".join(sorted({*USED, *PUBLISHED}))
    arguments = ["--snakefile", str(SNAKEFILE), "--config", f"paths={paths}"]
    ran = subprocess.run(
        [sys.executable, "-m", "snakemake", "--cores", "1", *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    lacking = re.findall("lacking: .*", ran.stdout)
    assert not lacking, (
        f"this Snakemake lacks what workflow/framebench/driver/internals.py uses: {lacking}; adapt "
        "it there, and min_version in workflow/Snakefile"
    )


def test_options_of_a_profile_count_wherever_snakemake_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fail if a profile named from the folder of the call is not found with ``--directory``."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "config.yaml").write_text("config: [a=b]\ndry-run: true\n")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    arguments = ["--workflow-profile", "mine", "--directory", "elsewhere", "--mode", "default"]
    monkeypatch.setattr(sys, "argv", ["snakemake", *arguments])
    called = Snakemake(SimpleNamespace(rundir=tmp_path))
    assert called.config_arguments == ["a=b"]
    assert called.is_dry_run
    assert called.is_main_process
    assert not called.is_cluster_job
    assert Path.cwd() == tmp_path / "elsewhere"


def test_jobs_that_started_and_run_no_more_have_failed() -> None:
    jobs = [SimpleNamespace(jobid=number, is_group=lambda: False) for number in range(4)]
    workflow = SimpleNamespace(
        dag=SimpleNamespace(needrun_jobs=lambda: jobs[:3]),
        scheduler=SimpleNamespace(running=[jobs[1]]),
    )
    called = Snakemake(workflow)
    logger = logging.getLogger("snakemake.logging")
    handlers, level = list(logger.handlers), logger.level
    try:
        called.watch_jobs(lambda wildcards: False)
        logger.setLevel(logging.INFO)
        for number in (0, 1, 3):
            logger.info("job", extra={"event": LogEvent.JOB_INFO, "jobid": number})
        assert called.failed_jobs() == [jobs[0]]
    finally:
        logger.handlers[:] = handlers
        logger.setLevel(level)


def test_time_is_counted_without_that_of_jobs_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    called = Snakemake(SimpleNamespace())
    logger = logging.getLogger("snakemake.logging")
    handlers, level = list(logger.handlers), logger.level
    now = 100.0
    monkeypatch.setattr(internals.time, "monotonic", lambda: now)
    assert called.seconds == 0
    try:
        called.watch_jobs(lambda wildcards: "apart" in wildcards)
        logger.setLevel(logging.INFO)
        said = [
            (5, LogEvent.JOB_INFO, {"jobid": 1, "wildcards": {}}),
            (10, LogEvent.JOB_INFO, {"jobid": 2, "wildcards": {"apart": "a"}}),
            (20, LogEvent.JOB_INFO, {"jobid": 3, "wildcards": {"apart": "b"}}),
            (30, LogEvent.JOB_FINISHED, {"job_id": 2}),
            (40, LogEvent.JOB_FINISHED, {"job_id": 1}),
            (50, LogEvent.JOB_ERROR, {"jobid": 3}),
        ]
        for seconds, event, about in said:
            now = 100.0 + seconds
            logger.info("job", extra={"event": event, **about})
        now = 160.0
        assert called.seconds == 10 + 10
    finally:
        logger.handlers[:] = handlers
        logger.setLevel(level)


@pytest.mark.parametrize(
    ("version", "problem"),
    [("9.27.1", ""), ("9.26.9", "not known"), ("10.0", "not known"), ("9.99", "it has no cores")],
)
def test_an_unknown_snakemake_is_named(
    version: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(internals, "VERSION", version)
    attributes = {"cores": None} if version != "9.99" else {}
    monkeypatch.setattr(internals, "USED", {"scheduler.running": ""})
    monkeypatch.setattr(internals, "PUBLISHED", {"cores": ""})
    unknown = Snakemake(SimpleNamespace(**attributes)).why_unknown()
    assert problem in unknown
    assert bool(unknown) == bool(problem)


class Cluster:
    """Remote executor that forgets jobs, as SLURM's does without its controller."""

    def __init__(self) -> None:
        self.said: list[str] = []
        errors = self.said.append
        scheduler = SimpleNamespace(executor_error_callback=lambda error: errors(repr(error)))
        self.workflow = SimpleNamespace(scheduler=scheduler)

    def run_job(self, job: SimpleNamespace) -> None:
        job.submit()
        self.report_job_submission(job)

    def report_job_submission(self, job: SimpleNamespace, register_job: bool = True) -> None:
        self.said.append(f"{job.name} submitted")

    def report_job_success(self, job: SimpleNamespace) -> None:
        self.said.append(f"{job.name} ended")

    def report_job_error(self, job: SimpleNamespace, msg: str | None = None) -> None:
        self.said.append(f"{job.name} failed: {msg}")

    async def check_active_jobs(self, jobs: list[SimpleNamespace]) -> AsyncIterator[object]:
        yield jobs[0]
        self.report_job_success(jobs[1])
        self.report_job_error(jobs[2], msg="a reason")

    def cancel_jobs(self, jobs: list[SimpleNamespace]) -> None:
        self.said.append(" ".join(["cancelled", *(job.name for job in jobs)]))


def submitted(*names: str) -> tuple[Any, list[SimpleNamespace]]:
    """Return an executor that tracks its jobs, and jobs that it has submitted."""
    executor = internals.tracking(Cluster, [])()
    jobs = [SimpleNamespace(name=name, submit=lambda: None) for name in names]
    for job in jobs:
        executor.run_job(job)
    executor.said.clear()
    return executor, jobs


def test_a_job_whose_state_could_not_be_learnt_is_asked_about_again() -> None:
    executor, jobs = submitted("running", "done", "broken", "unknown")

    async def checked() -> list[str]:
        return [job.name async for job in executor.check_active_jobs(jobs)]

    assert asyncio.run(checked()) == ["running", "unknown"]
    assert executor.said == ["done ended", "broken failed: a reason"]


def test_an_interruption_cancels_all_submitted_jobs() -> None:
    """Fail if one is left out, such as those about which Snakemake asks at that moment."""
    executor, jobs = submitted("one", "done", "other")
    executor.report_job_success(jobs[1])
    executor.stop()
    assert executor.said == ["done ended", "cancelled one other", "KeyboardInterrupt()"]


def test_a_job_that_is_being_submitted_is_cancelled_and_none_follows() -> None:
    executor, _ = submitted()
    late = SimpleNamespace(name="late", submit=executor.stop)
    executor.run_job(late)
    assert executor.said[-2:] == ["late submitted", "cancelled late"]
    with pytest.raises(KeyboardInterrupt):
        executor.run_job(late)


def test_a_call_ends_with_the_error_of_a_cluster_that_cancels_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(executor: Cluster, jobs: list[SimpleNamespace]) -> None:
        raise WorkflowError("the controller does not answer")

    monkeypatch.setattr(Cluster, "cancel_jobs", refuse)
    executor, _ = submitted("one")
    executor.stop()
    assert executor.said == ["WorkflowError('the controller does not answer')"]
