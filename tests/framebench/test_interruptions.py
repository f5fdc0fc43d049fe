"""Runs that ended without a record: found in Snakemake's log, kept, and shown."""

from __future__ import annotations

from pathlib import Path

from framebench import interruptions
from framebench.interruptions import Interruption

RUN = "toy/toy/train-fp32-none-2n1g-b1-3b53b0ff/r2"
LOG = f"""\
[Sat Nov 21 20:56:09 2026]
Error in rule benchmark:
    message: SLURM-job '6' failed, SLURM status is: 'CANCELLED'. No detail.
    jobid: 11
    input: .venvs/toy/environment.json
    output: results/runs/{RUN}.json
    log: results/logs/{RUN}.log, .snakemake/slurm_logs/6.log (check log file(s) for error details)
    shell:
        exec  python scripts/harness --output results/runs/{RUN}.json
        (command exited with non-zero exit code)
    external_jobid: 6
Finished jobid: 7 (Rule: benchmark)
Error in rule probe:
    jobid: 14
    output: results/probes/toy/fp32-20fef12b.json
"""


def noted(tmp_path: Path, log: str = LOG) -> list[Interruption]:
    results = tmp_path / "results"
    text = log.replace("results/", f"{results}/")
    interruptions.note(text, results)
    return interruptions.load(results)


def test_a_cancelled_job_is_noted_with_what_slurm_says(tmp_path: Path) -> None:
    (one,) = noted(tmp_path)
    assert (one.run, one.job, one.status) == (RUN, "6", "CANCELLED")
    assert one.noticed.endswith("Z")


def test_without_slurm_there_is_no_job(tmp_path: Path) -> None:
    log = LOG.replace("    external_jobid: 6\n", "").replace("SLURM-job", "job")
    assert [(one.run, one.job, one.status) for one in noted(tmp_path, log)] == [(RUN, "", "")]


def test_a_run_that_has_its_record_was_not_interrupted(tmp_path: Path) -> None:
    record = tmp_path / "results" / "runs" / f"{RUN}.json"
    record.parent.mkdir(parents=True)
    record.write_text("{}")
    assert noted(tmp_path) == []


def test_a_second_interruption_is_added(tmp_path: Path) -> None:
    assert len(noted(tmp_path)) == 1
    assert [one.run for one in noted(tmp_path)] == [RUN, RUN]


def test_nothing_is_written_where_nothing_was_interrupted(tmp_path: Path) -> None:
    assert noted(tmp_path, "Finished jobid: 7 (Rule: benchmark)\n") == []
    assert not (tmp_path / "results").exists()
