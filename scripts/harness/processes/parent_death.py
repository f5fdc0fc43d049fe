"""Linux's PR_SET_PDEATHSIG: a signal when the parent dies."""

from __future__ import annotations

import contextlib
import signal

_PR_SET_PDEATHSIG = 1
#: Variable with the id of the process that a launcher must not outlive.
PARENT_VARIABLE = "FRAMEBENCH_DIE_WITH_PARENT"


def signal_when_parent_dies(number: signal.Signals) -> None:
    """Ask the kernel to send ``number`` at the parent's death.

    Where ctypes is missing or refuses, nothing happens."""
    with contextlib.suppress(ImportError, OSError, AttributeError):
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)
