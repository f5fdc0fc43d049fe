"""Set up the process before OneFlow is imported. The import joins the ranks by itself."""

from __future__ import annotations

import os
import socket
import time

from harness.adapter import Case, RankContext

#: Seconds that a rank waits for rank 0 to listen; then OneFlow itself tries, and reports errors.
_SECONDS = 120.0


#: The import starts threads, which forks do not have.
CAN_BE_FORKED = False


def prepare(case: Case, rank_context: RankContext) -> None:
    """Set variables that OneFlow reads when it is imported; wait for the rank that the import
    connects to."""
    os.environ["ONEFLOW_EP_CUDA_ENABLE_TF32_EXECUTION"] = "0"
    # otherwise a CUDA build prints long warnings without a GPU
    os.environ.setdefault("GLOG_minloglevel", "3")
    if rank_context.rank > 0:
        wait_for_listener(rank_context.addresses[0])


def wait_for_listener(address: str) -> None:
    """Return when something listens at ``address`` (``host:port``). OneFlow itself would retry only
    after ten seconds."""
    host, _, port = address.rpartition(":")
    end = time.monotonic() + _SECONDS
    while time.monotonic() < end:
        try:
            socket.create_connection((host, int(port)), timeout=1.0).close()
            return
        except OSError:
            time.sleep(0.02)
