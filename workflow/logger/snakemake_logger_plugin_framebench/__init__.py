"""``--logger framebench``: Snakemake logger plugin for the output of a Framebench call.

It uses only the interface of Snakemake's logger plugins. It drops messages about Snakemake's own
work, and passes the rest to the view that the workflow sends in a log record
(``framebench.terminal``), so that plugin and workflow may have different versions. Without a view,
it prints a line for each job, and Snakemake's errors and warnings. Dry runs, ``--verbose`` and
``--debug-dag`` show all of Snakemake's text.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from typing import Any

from snakemake_interface_logger_plugins.base import LogHandlerBase

#: Attribute of the log record with which the workflow sends its view.
VIEW = "framebench_view"
#: Events of Snakemake's own work, replaced by results and the status line.
_SILENT = frozenset({"run_info", "resources_info", "job_started", "job_finished", "progress"})
#: Start of the message about a failed command, which printed its own message.
_COMMAND = "RuleException:\nCalledProcessError in file "
_TRACEBACK = "Traceback (most recent call last)"
#: Starts of Snakemake's progress messages.
_NOISE = (
    "Assuming unrestricted shared filesystem usage",
    "Building DAG of jobs",
    "Conda environments: ignored",
    "DAG of jobs will be updated",
    "Elapsed time:",
    "Exiting because a job execution failed",
    "Group jobs: inactive",
    "Handing over execution",
    "Job failed, going on with independent jobs",
    "Select jobs to execute",
    "Shutting down, this might take some time",
    "Singularity containers: ignored",
    "Terminating processes on user request",
    "Touching output file",
    "Updating checkpoint dependencies",
    "Using shell:",
    "Warning: the following output files of rule",  # the page of an earlier round
    "Will exit after finishing currently running jobs",
)


class LogHandler(LogHandlerBase):
    """Log handler, called by the thread of Snakemake's queue for one record after the other."""

    def __post_init__(self) -> None:
        asked = self.common_settings
        self._stream = sys.stdout if asked.stdout else sys.stderr
        self._all = bool(asked.dryrun or asked.verbose or asked.debug_dag)
        self._view: Any = None
        self._is_terminal = self._stream.isatty() and os.environ.get("TERM") != "dumb"

    def emit(self, record: logging.LogRecord) -> None:
        """Print the visible part of a record."""
        try:
            self._emit(record)
        except OSError:
            pass  # a vanished terminal stops no measurement
        except Exception:
            self.handleError(record)

    def _emit(self, record: logging.LogRecord) -> None:
        event = str(getattr(record, "event", None) or "")
        if view := getattr(record, VIEW, None):
            self._view = None if self._all else view
            if self._view:
                self._view.attach(self._stream, self._is_terminal)
        elif self._view and self._view.takes(event, record):
            return
        text = self._text(event, record)
        if not text:
            return
        if self._view:
            self._view.say(text)
        else:
            self._stream.write(f"{text}\n")
            self._stream.flush()

    def _text(self, event: str, record: logging.LogRecord) -> str:
        if not self._all:
            if event in _SILENT:
                return ""
            if event == "job_info":
                said = vars(record)
                return str(said.get("rule_msg") or f"rule {said.get('rule_name')}")
            message = record.getMessage()
            if message.startswith((_COMMAND, *_NOISE)):
                return ""
            if not event and record.levelno == logging.INFO:
                return "" if message == "None" else message
            if hasattr(record, "exception") and _TRACEBACK in message:
                last = message.strip().splitlines()[-1]
                return f"framebench: Snakemake has ended with {last} (--verbose says where)"
        text = self.format(record)
        return "" if text == "None" else text

    def close(self) -> None:
        """Remove the status line at the end."""
        if self._view:
            with contextlib.suppress(OSError, ValueError):
                self._view.close()
        super().close()

    @property
    def writes_to_stream(self) -> bool:
        return True

    @property
    def writes_to_file(self) -> bool:
        return False

    @property
    def has_filter(self) -> bool:
        """Return False: Snakemake's filter handles ``--quiet``."""
        return False

    @property
    def has_formatter(self) -> bool:
        """Return False: Snakemake's formatter is used."""
        return False

    @property
    def needs_rulegraph(self) -> bool:
        return False
