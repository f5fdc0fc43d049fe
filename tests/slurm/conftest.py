"""One cluster for all tests here: they are one group, run in one process."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..workflow.conftest import make_project
from .cluster import Cluster, missing
from .project import OnCluster


@pytest.fixture(scope="session")
def slurm() -> None:
    """Require SLURM's programs."""
    problem = missing()
    if problem:
        pytest.skip(f"needs a SLURM cluster of its own. {problem}")


@pytest.fixture(scope="session")
def shared_cluster(slurm: None) -> Iterator[Cluster]:
    with Cluster() as started:
        if started.shared:
            warnings.warn(f"the nodes of the SLURM cluster share {started.shared}", stacklevel=1)
        yield started


@pytest.fixture
def cluster(shared_cluster: Cluster) -> Iterator[Cluster]:
    """Yield four idle nodes without jobs, whatever the previous test did."""
    yield shared_cluster
    shared_cluster.reset()


@pytest.fixture
def slurm_project(cluster: Cluster, tmp_path: Path) -> Iterator[OnCluster]:
    made = OnCluster(make_project(tmp_path / "a project"), cluster)
    made.describe()
    yield made
    made.project.kill_all()
