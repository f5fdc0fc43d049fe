"""Jobs: everything that a call executes, each named by its kind and the wildcards of its rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from ..records.searches import FOLDER as SEARCHES

#: Wildcards of a job by kind, in the order of its path.
WILDCARDS = {
    "environment": ("name", "digest"),
    "reference": ("reference", "digest"),
    "run": ("framework", "model", "case", "run"),
    "search": ("framework", "model", "search"),
    "verification": ("framework", "reference", "verification"),
    "peak_flops": ("framework", "peak_flops"),
}
_KINDS = {frozenset(names): kind for kind, names in WILDCARDS.items()}
#: Folders of records and of logs below the results, by kind of job that the harness carries out.
FOLDERS = {
    "run": ("runs", "logs"),
    "search": (SEARCHES, f"logs/{SEARCHES}"),
    "verification": ("verification", "logs/verification"),
    "peak_flops": ("peak_flops", "logs/peak_flops"),
}


class JobRequest(NamedTuple):
    """Nodes, devices per node, minutes and required node of a job; "" for any node."""

    nodes: int
    devices: int
    minutes: int
    node: str = ""

    @property
    def node_hours(self) -> float:
        """Largest number of node hours that the job uses."""
        return self.nodes * self.minutes / 60


class Job(NamedTuple):
    """A run, batch search, verification, peak-FLOPS benchmark, reference, environment or report.

    ``name``: unique in a call; ``group``: shared by jobs that take equally long, such as the
    repeats of a case; ``seconds``: expected; ``is_measured``: ``seconds`` come from records.
    ``record``: file whose status is the job's, "" without one; ``log``: its log, "" without one.
    ``software``: name of what it runs in. ``request``: asked of a cluster, None for a job that is
    never submitted. ``arguments``: returns those of the harness.
    """

    name: str
    kind: str
    group: str
    seconds: float
    is_measured: bool = False
    label: str = ""
    record: str = ""
    log: str = ""
    software: str = ""
    request: JobRequest | None = None
    arguments: Callable[[], list[str]] = list

    @property
    def path(self) -> str:
        """Path of the record in the folder of its kind, without ``.json``."""
        return self.name.partition("/")[2]


def name_of(wildcards: Mapping[str, str], rule: str = "") -> str:
    """Return the name of a job: its kind and wildcards, or its rule if it has no kind."""
    kind = kind_of(wildcards)
    return "/".join([kind, *(wildcards[name] for name in WILDCARDS[kind])]) if kind else rule


def kind_of(wildcards: Mapping[str, str]) -> str:
    """Return the kind of a job; "" for a job without a known set of wildcards."""
    return _KINDS.get(frozenset(wildcards), "")


def path_of(kind: str) -> str:
    """Return the path of the records of a kind, without ``.json``, with its wildcards."""
    return "/".join(f"{{{name}}}" for name in WILDCARDS[kind])


def record_of(results: str | Path, kind: str, path: str) -> str:
    """Return the file of a record."""
    return f"{results}/{FOLDERS[kind][0]}/{path}.json"


def beside_run(results: str | Path, kind: str, path: str) -> str:
    """Return the file in which a run leaves the record of a check that it made behind its own, for
    the job of that check."""
    return f"{results}/logs/checks/{FOLDERS[kind][0]}/{path}.json"


def log_of(results: str | Path, kind: str, path: str) -> str:
    """Return the log of a job that the harness carries out."""
    return f"{results}/{FOLDERS[kind][1]}/{path}.log"
