"""Map an error in a rank to the status of its run."""

from __future__ import annotations

import contextlib
from typing import Dict, Optional

from core.text import shorten

from harness.adapter import Adapter, Mismatch, Unsupported
from harness.messages.report import error_text


def describe(error: BaseException, adapter: Optional[Adapter]) -> Dict[str, str]:
    """Return status and reason for an exception that ended the rank."""
    if isinstance(error, Unsupported):
        return {"status": "unsupported", "reason": shorten(str(error))}
    memory = isinstance(error, MemoryError)
    if adapter is not None and not isinstance(error, Mismatch):
        with contextlib.suppress(Exception):  # a framework that was not even imported cannot tell
            memory = memory or adapter.out_of_memory(error)
    if memory:
        return {"status": "oom", "reason": error_text(error)}
    return {"status": "failed", "reason": error_text(error) + shorten(_recompiled(adapter))}


def _recompiled(adapter: Optional[Adapter]) -> str:
    """Return how often and why the compiler compiled anew before a failure, which may be its cause;
    "" if it did not."""
    with contextlib.suppress(Exception):
        if adapter is not None and adapter.case.compiler != "none":
            reasons = adapter.recompilations()
            if reasons:
                return f" (recompiled {len(reasons)} times; last reason: {reasons[-1]})"
    return ""
