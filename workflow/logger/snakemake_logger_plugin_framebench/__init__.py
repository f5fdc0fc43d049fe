"""``--logger framebench``: what a call of Framebench says while it runs.

A part of the interface of Snakemake's logger plugins, and of nothing else: it leaves out what
Snakemake says of its own work, and hands the rest to the view that the workflow sends as a log
record (``framebench.terminal``), so that plugin and workflow need not be of the same version. Where
no view was sent, it prints a line for each job, and errors and warnings as Snakemake words them.
Dry runs, ``--verbose`` and ``--debug-dag`` are Snakemake's own text, all of it.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import sys
from typing import Any

from snakemake_interface_logger_plugins.base import LogHandlerBase

#: The attribute of the log record with which the workflow sends its view.
VIEW = "framebench_view"
#: Events of Snakemake's own work. Results and the status line say what these would.
_SILENT = frozenset({"run_info", "resources_info", "job_started", "job_finished", "progress"})
#: How the text of a command begins that has ended by itself, behind a message of its own.
_COMMAND = "RuleException:\nCalledProcessError in file "
_TRACEBACK = "Traceback (most recent call last)"
#: Where a traceback leads to without a home folder.
_CACHE = "sourcecache.py"
#: What Snakemake says besides on the way, by how it begins.
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
    "Will exit after finishing currently running jobs",
)
_RED, _PLAIN = "\033[31m", "\033[0m"


class LogHandler(LogHandlerBase):
    """Called by the thread of Snakemake's queue, one record after the other."""

    def __post_init__(self) -> None:
        asked = self.common_settings
        self._stream = sys.stdout if asked.stdout else sys.stderr
        if isinstance(self._stream, io.TextIOWrapper):  # what an encoding lacks stops nothing
            self._stream.reconfigure(errors="backslashreplace")
        self._all = bool(asked.dryrun or asked.verbose or asked.debug_dag)
        self._view: Any = None
        self._is_terminal = self._stream.isatty() and os.environ.get("TERM") != "dumb"
        without = asked.nocolor or os.environ.get("NO_COLOR")
        self._is_coloured = self._is_terminal and not without

    def emit(self, record: logging.LogRecord) -> None:
        """Print what is to be seen of it. A terminal that is gone stops no measurement."""
        with contextlib.suppress(OSError):
            try:
                self._emit(record)
            except OSError:
                raise
            except Exception:
                self.handleError(record)

    def _emit(self, record: logging.LogRecord) -> None:
        event = str(getattr(record, "event", None) or "")
        if view := getattr(record, VIEW, None):
            self._view = None if self._all else view
            if self._view:
                self._view.attach(self._stream, self._is_terminal, self._is_coloured)
        elif self._view and self._view.takes(event, record):
            return
        text = self._text(event, record)
        if not text:
            return
        if self._is_coloured and record.levelno >= logging.ERROR:
            text = f"{_RED}{text}{_PLAIN}"
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
                if _CACHE in message:
                    return (
                        f"framebench: Snakemake cannot keep its cache in the home folder ({last}); "
                        "allowed: a folder that can be written, named by XDG_CACHE_HOME"
                    )
                return f"framebench: Snakemake has ended with {last} (--verbose says where)"
        text = self.format(record)
        return "" if text == "None" else text

    def close(self) -> None:
        """Leave nothing behind but what was said."""
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
        """Snakemake's, which knows ``--quiet``."""
        return False

    @property
    def has_formatter(self) -> bool:
        """Snakemake's."""
        return False

    @property
    def needs_rulegraph(self) -> bool:
        return False
