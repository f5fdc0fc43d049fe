"""Snakemake, as ``python -m snakemake``, that looks at the queue twice a second.

Its plugin looks ten seconds later each time nothing has ended, for which there is no setting: most
of a test's time would be that. How jobs are submitted, watched and judged is as it is.
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
