"""Runs that ended without a record: found in Snakemake's log, kept, and shown."""

from __future__ import annotations

from pathlib import Path

from framebench.records import sidecars
from framebench.records.sidecars import Interruption

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
Error in rule peak_flops:
    jobid: 14
    output: results/peak_flops/toy/fp32-20fef12b.json
"""


def noted(tmp_path: Path, log: str = LOG, results: str = "results") -> list[Interruption]:
    folder = tmp_path / results
    sidecars.note_interruptions(log.replace("results/", f"{folder}/"), folder)
    return sidecars.load(folder, Interruption)


def test_a_cancelled_job_is_noted_with_what_slurm_says(tmp_path: Path) -> None:
    (one,) = noted(tmp_path)
    assert (one.run, one.job, one.status) == (RUN, "6", "CANCELLED")
    assert one.noticed.endswith("Z")


def test_a_run_that_has_its_record_was_not_interrupted(tmp_path: Path) -> None:
    record = tmp_path / "results" / "runs" / f"{RUN}.json"
    record.parent.mkdir(parents=True)
    record.write_text("{}")
    assert noted(tmp_path) == []
