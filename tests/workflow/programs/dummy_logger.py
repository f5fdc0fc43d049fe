"""Logger plugin of a third party."""

from __future__ import annotations

import logging

from snakemake_interface_logger_plugins.base import LogHandlerBase


class LogHandler(LogHandlerBase):
    writes_to_stream = True
    writes_to_file = has_filter = has_formatter = needs_rulegraph = False

    def emit(self, record: logging.LogRecord) -> None:
        print("dummy has:", getattr(record, "event", ""), flush=True)
