"""Jobs: everything that a call executes, each named by its kind and the wildcards of its rule."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from ..files.attempt_names import repeat_and_attempt
from ..records.searches import FOLDER as SEARCHES

#: Path of a job by kind, with the wildcards of its rule.
PATHS = {
    "environment": "{environment}-{digest}",
    "reference": "{reference}-{digest}",
    "run": "{framework}/{model}/{case}/r{repeat}",
    "search": "{framework}/{model}/{case}",
    "verification": "{framework}/{reference}/{verification}",
    "peak_flops": "{framework}/{peak_flops}",
    "checks": "{framework}/{checks}",
}
_KINDS = {frozenset(re.findall(r"{(\w+)}", path)): kind for kind, path in PATHS.items()}
#: Folders of records and of logs below the results, by kind of job that the harness carries out.
FOLDERS = {
    "run": ("runs", "logs"),
    "search": (SEARCHES, f"logs/{SEARCHES}"),
    "verification": ("verification", "logs/verification"),
    "peak_flops": ("peak_flops", "logs/peak_flops"),
}


#: File in the results that marks a complete call: every run has a record, tables and report are
#: made.
OUTCOME = Path("logs", "outcome")


class JobRequest(NamedTuple):
    """Nodes, devices per node, minutes and required node of a job; "" for any node."""

    nodes: int
    devices: int
    minutes: int
    node: str = ""


class Job(NamedTuple):
    """A run, batch search, verification, peak-FLOPS benchmark, several of these checks, reference,
    environment or report.

    ``name``: unique in a call; ``group``: shared by jobs that take equally long, such as the
    repeats of a case; ``seconds``: expected. ``record``: file whose status is the job's, ""
    without one; ``log``: its log, "" without one.
    ``software``: name of what it runs in. ``request``: asked of a cluster, None for a job that is
    never submitted. ``arguments``: returns those of the harness.
    ``reference``: folder that a verification compares with. ``parts``: checks that the job
    makes, each with its own record; its own ``record`` is then a marker.
    """

    name: str
    kind: str
    group: str
    seconds: float
    label: str = ""
    record: str = ""
    log: str = ""
    software: str = ""
    request: JobRequest | None = None
    arguments: Callable[[], list[str]] = list
    reference: str = ""
    parts: tuple[Job, ...] = ()

    @property
    def path(self) -> str:
        """Path of the record in the folder of its kind, without ``.json``."""
        return self.name.partition("/")[2]

    @property
    def title(self) -> str:
        """Label, with the repeat of a run."""
        named = repeat_and_attempt(Path(self.record).stem) if self.kind == "run" else None
        return f"{self.label}  repeat {named[0]}" if named else self.label


def name_of(wildcards: Mapping[str, str], rule: str = "") -> str:
    """Return the name of a job: its kind and wildcards, or its rule if it has no kind."""
    kind = kind_of(wildcards)
    return f"{kind}/{PATHS[kind].format(**wildcards)}" if kind else rule


def kind_of(wildcards: Mapping[str, str]) -> str:
    """Return the kind of a job; "" for a job without a known set of wildcards."""
    return _KINDS.get(frozenset(wildcards), "")


def record_of(results: str | Path, kind: str, path: str) -> str:
    """Return the file of a record."""
    return f"{results}/{FOLDERS[kind][0]}/{path}.json"


def marker_of(results: str | Path, path: str) -> str:
    """Return the file that marks a job of several checks as done."""
    return f"{results}/logs/checks/{path}.done"


def log_of(results: str | Path, kind: str, path: str) -> str:
    """Return the log of a job that the harness carries out."""
    return f"{results}/{FOLDERS[kind][1]}/{path}.log"
