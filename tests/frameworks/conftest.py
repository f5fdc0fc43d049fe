"""References that all frameworks are compared with."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .blocks import write_block_references
from .cnns import CONNECTED, write_connected_reference
from .fork_server import ForkServers
from .models import references_in, write_references
from .optimizers import write_branch_references
from .transformers import write_decoder_references


@pytest.fixture(scope="session")
def fork_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkServers]:
    servers = ForkServers(tmp_path_factory.mktemp)
    yield servers
    servers.stop()


@pytest.fixture(scope="session")
def references(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return references_in(written_once(tmp_path_factory, "references", write_references))


@pytest.fixture(scope="session")
def connected_reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the reference of the made-up network with all connections."""
    folder = written_once(tmp_path_factory, "connected-reference", write_connected_reference)
    return folder / CONNECTED


@pytest.fixture(scope="session")
def block_references(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written_once(tmp_path_factory, "block-references", write_block_references)


@pytest.fixture(scope="session")
def decoder_references(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written_once(tmp_path_factory, "decoder-references", write_decoder_references)


@pytest.fixture(scope="session")
def branch_references(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written_once(tmp_path_factory, "branch-references", write_branch_references)


def written_once(
    tmp_path_factory: pytest.TempPathFactory, name: str, write: Callable[[Path], object]
) -> Path:
    """Return the folder that ``write`` fills, once for all processes of a test run."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    if run is None:
        folder = tmp_path_factory.mktemp(name)
        write(folder)
        return folder
    shared = tmp_path_factory.getbasetemp().parent / f"{name}-{run}"
    shared.mkdir(exist_ok=True)
    with (shared / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = shared / "done"
        if not done.exists():
            write(shared)
            done.touch()
    return shared
