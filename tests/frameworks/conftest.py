"""The references that all frameworks are compared with."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from .models import references_in, write_references


@pytest.fixture(scope="session")
def references(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """For every small model the folder with its reference, computed once for all processes of a
    test run."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    if run is None:
        return write_references(tmp_path_factory.mktemp("references"))
    shared = tmp_path_factory.getbasetemp().parent / f"references-{run}"
    shared.mkdir(exist_ok=True)
    with (shared / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = shared / "done"
        if not done.exists():
            write_references(shared)
            done.touch()
    return references_in(shared)
