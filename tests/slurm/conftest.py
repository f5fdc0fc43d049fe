"""One cluster for all tests here: they are one group, run in one process."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from ..workflow.conftest import ONE_RUN, Project, make_project
from .cluster import Cluster, missing

OPTIONS = (
    *("--workflow-profile", "profiles/slurm", "--latency-wait", "10"),
    *("--slurm-init-seconds-before-status-checks", "1"),
)


class OnCluster:
    """Project whose suites run on the cluster."""

    def __init__(self, project: Project, cluster: Cluster) -> None:
        self.project, self.cluster = project, cluster
        # Frequent queries of jobs, because tests wait for them.
        project.snakemake = str(Path(__file__).with_name("impatient.py"))

    @property
    def folder(self) -> Path:
        return self.project.folder

    def describe(self, **other: Any) -> None:
        options = {"nodes": 4, "gpus_per_node": 0, "cores_per_node": 2, "memory_gib": 3, **other}
        path = self.folder / "profiles" / "slurm" / "cluster.yaml"
        path.write_text(yaml.safe_dump({"cluster": options}))

    def suite(self, repeats: int, variants: Mapping[str, Any] | None = None, **axes: Any) -> None:
        axes = {**ONE_RUN["axes"], **axes}
        more = {"repeats": repeats, "axes": axes, "variants": variants or {}}
        self.project.write_suite({**ONE_RUN, **more})

    def start(self, *arguments: str, toy: str = "", **more: str) -> Any:
        variables = {**self.cluster.environment, **more}
        return self.project.start(*OPTIONS, *arguments, toy=toy, **variables)

    def run(self, *arguments: str, toy: str = "", **more: str) -> Any:
        variables = {**self.cluster.environment, **more}
        return self.project.run(*OPTIONS, *arguments, toy=toy, **variables)

    def records(self) -> list[dict[str, Any]]:
        actual = [json.loads(text) for text in self.project.records().values()]
        return sorted(actual, key=lambda record: record["started"])

    def table(self, name: str) -> pd.DataFrame:
        path = self.folder / "results" / "tables" / f"{name}.csv"
        return pd.read_csv(path, keep_default_na=False)


def span(record: dict[str, Any]) -> tuple[float, float]:
    """Return start and end of a run, in seconds since the epoch."""
    start = datetime.fromisoformat(record["started"]).timestamp()
    return start, start + record["wall_seconds"]


def hosts(record: dict[str, Any]) -> set[str]:
    return {rank["host"] for rank in record["ranks"]}


def overlap(entry: dict[str, Any], other: dict[str, Any]) -> bool:
    (start, end), (from_, to) = span(entry), span(other)
    return start < to and from_ < end


@pytest.fixture(scope="session")
def slurm() -> None:
    problem = missing()
    if problem:
        pytest.skip(f"needs a SLURM cluster of its own. {problem}")


@pytest.fixture(scope="session")
def shared_cluster(slurm: None) -> Iterator[Cluster]:
    with Cluster() as started:
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
