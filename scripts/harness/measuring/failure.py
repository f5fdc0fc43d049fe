"""Map an error in a rank to the status of its run."""

from __future__ import annotations

import contextlib
import re
from typing import Dict, Optional

from core.text import shorten

from harness.adapter import Adapter, Mismatch, Unsupported
from harness.report import error_text

#: Faults of the machine that a framework's refusal may quote. They say nothing about the framework.
_NO_MEMORY = re.compile(r"out of memory|cannot allocate memory|bad_alloc", re.IGNORECASE)
_FAULT = re.compile(
    r"no space left|disk quota exceeded|permission denied|operation not permitted|"
    r"read-only file system|input/output error|too many open files|name resolution|"
    r"name or service not known|temporarily unavailable",
    re.IGNORECASE,
)


def describe(error: BaseException, adapter: Optional[Adapter]) -> Dict[str, str]:
    """Return status and reason for an exception that ended the rank."""
    if isinstance(error, Unsupported):
        reason, status = str(error), "unsupported"
        if _NO_MEMORY.search(reason):
            status = "oom"
        elif _FAULT.search(reason):
            status = "failed"
        return {"status": status, "reason": shorten(reason)}
    memory = isinstance(error, MemoryError)
    if adapter is not None and not isinstance(error, Mismatch):
        with contextlib.suppress(Exception):  # a framework that was not imported cannot answer
            memory = memory or adapter.out_of_memory(error)
    if memory:
        return {"status": "oom", "reason": error_text(error)}
    return {"status": "failed", "reason": error_text(error)}
