"""Snakemake, like ``python -m snakemake``, that queries the queue twice a second.

Its plugin waits ten seconds longer after each query without an ended job, with no setting for it,
which would dominate tests. Submission, watching and judging of jobs are unchanged.
"""

import sys


def main() -> None:
    del sys.path[0]  # this file's folder
    from snakemake.cli import main as snakemake
    from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor

    seconds = property(lambda executor: 0.5, lambda executor, wanted: None)
    RemoteExecutor.next_seconds_between_status_checks = seconds
    snakemake()


main()
