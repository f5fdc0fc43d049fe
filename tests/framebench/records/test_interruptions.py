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

# Two runs that shared a SLURM job, in the output of Snakemake 9.27: each appears twice.
ONE, OTHER = (f"toy/toy/train-fp32-none-2n1g-b{batch}-9affa2ad/r1" for batch in (1, 2))
GROUP = f"""\
Job 8 has been submitted with SLURM jobid 3 (log: /home/me/.snakemake/slurm_logs/peak_flops/3.log).
[Sun Nov 22 10:19:37 2026]
    message: Error in group 2n1g-0
    log: /home/me/.snakemake/slurm_logs/group_2n1g-0_benchmark/1.log (check log file(s) for error details)
    jobs:
        rule benchmark:
            jobid: 3
            output: results/runs/{ONE}.json
            log: results/logs/{ONE}.log (check log file(s) for error details)
        rule benchmark:
            jobid: 2
            output: results/runs/{OTHER}.json
            log: results/logs/{OTHER}.log (check log file(s) for error details)
    [Sun Nov 22 10:19:37 2026]
    Error in rule benchmark:
        message: None
        jobid: 3
        output: results/runs/{ONE}.json
        log: results/logs/{ONE}.log (check log file(s) for error details)
        shell:
            exec  python scripts/harness --output results/runs/{ONE}.json
            (command exited with non-zero exit code)
    [Sun Nov 22 10:19:37 2026]
    Error in rule benchmark:
        message: None
        jobid: 2
        output: results/runs/{OTHER}.json
        log: results/logs/{OTHER}.log (check log file(s) for error details)
        shell:
            exec  python scripts/harness --output results/runs/{OTHER}.json
            (command exited with non-zero exit code)
"""  # noqa: E501
NODE_FAILURE = """\
    message: SLURM-job '6' failed due to a node failure, SLURM status is: 'NODE_FAIL'. Failed \
nodes will be excluded from future job submissions. Consider enabling requeueing.
"""


def noted(tmp_path: Path, log: str = LOG, results: str = "results") -> list[Interruption]:
    folder = tmp_path / results
    sidecars.note_interruptions(log.replace("results/", f"{folder}/"), folder)
    return sidecars.load(folder, Interruption)


def test_a_cancelled_job_is_noted_with_what_slurm_says(tmp_path: Path) -> None:
    (one,) = noted(tmp_path)
    assert (one.run, one.job, one.status) == (RUN, "6", "CANCELLED")
    assert one.noticed.endswith("Z")


def test_a_node_that_failed_is_noted_with_what_slurm_says(tmp_path: Path) -> None:
    message = next(line for line in LOG.splitlines(keepends=True) if "message:" in line)
    (one,) = noted(tmp_path, LOG.replace(message, NODE_FAILURE))
    assert (one.run, one.job, one.status) == (RUN, "6", "NODE_FAIL")


def test_runs_that_shared_a_job_are_noted_each_once(tmp_path: Path) -> None:
    actual = noted(tmp_path, GROUP)
    assert [
        (interruption.run, interruption.job, interruption.status) for interruption in actual
    ] == [(ONE, "", ""), (OTHER, "", "")]


def test_a_run_that_has_its_record_was_not_interrupted(tmp_path: Path) -> None:
    record = tmp_path / "results" / "runs" / f"{RUN}.json"
    record.parent.mkdir(parents=True)
    record.write_text("{}")
    assert noted(tmp_path) == []
