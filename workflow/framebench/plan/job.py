"""A job: a row of the table of all that a call executes, see :mod:`runs.job_table`."""

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
#: Output and log of a job below the results by kind, around its path.
FILES = {
    "environment": ("logs/environments/{}", "logs/environments/{}.log"),
    "reference": ("reference/{}", "logs/reference/{}.log"),
    "run": ("runs/{}.json", "logs/{}.log"),
    "search": (f"{SEARCHES}/{{}}.json", f"logs/{SEARCHES}/{{}}.log"),
    "verification": ("verification/{}.json", "logs/verification/{}.log"),
    "peak_flops": ("peak_flops/{}.json", "logs/peak_flops/{}.log"),
    "checks": ("logs/checks/{}.done", "logs/checks/{}.log"),
}
#: Files below the results that mark what a call has done; the next call removes them.
MARKERS = ("environments/*-????????", "checks/*/*.done", "rounds/*.txt")
#: File in the results that marks a complete call: every run has a record, tables and report are
#: made.
OUTCOME = Path("logs", "outcome")
#: Priority of jobs before all runs; runs follow in the order of the plan, below it.
FIRST = 10_000_000


class Job(NamedTuple):
    """A run, batch search, verification, peak-FLOPS benchmark, several of these checks, reference,
    environment or report.

    ``kind``, ``path``: together its name, which is unique in a call; ``seconds``: expected.
    ``output``, ``log``: files; ``software``: name of what it runs in. ``nodes``, ``devices`` per
    node and ``node``: asked of a cluster; 0 nodes for a job that is never submitted, "" for any
    node. ``is_done``: its output was there before. ``waits_for``: files that it needs.
    ``arguments``: returns those of its program. ``parts``: checks that the job makes, each with its
    own record; its own output is then a marker.
    """

    kind: str
    path: str
    seconds: float
    label: str = ""
    output: str = ""
    log: str = ""
    software: str = ""
    nodes: int = 0
    devices: int = 1
    node: str = ""
    priority: int = 0
    is_done: bool = False
    waits_for: tuple[str, ...] = ()
    arguments: Callable[[], list[str]] = list
    parts: tuple[Job, ...] = ()

    @property
    def name(self) -> str:
        """Kind and path; the rule alone of a job without a path."""
        return f"{self.kind}/{self.path}" if self.path else self.kind

    @property
    def group(self) -> str:
        """Path that jobs share which take equally long: the repeats of a case."""
        return self.path.rpartition("/")[0] if self.kind == "run" else self.path

    @property
    def record(self) -> str:
        """Output that says what came of the job; "" for an environment, a reference or tables."""
        return "" if self.kind in ("environment", "reference", "tables") else self.output

    @property
    def title(self) -> str:
        """Label, with the repeat of a run."""
        named = repeat_and_attempt(Path(self.path).name) if self.kind == "run" else None
        return f"{self.label}  repeat {named[0]}" if named else self.label


def name_of(wildcards: Mapping[str, str], rule: str = "") -> str:
    """Return the name of a job: its kind and wildcards, or its rule if it has no kind."""
    kind = _KINDS.get(frozenset(wildcards))
    return f"{kind}/{PATHS[kind].format(**wildcards)}" if kind else rule


def files_of(results: str | Path, kind: str, path: str) -> tuple[str, str]:
    """Return output and log of a job."""
    output, log = FILES[kind]
    return f"{results}/{output.format(path)}", f"{results}/{log.format(path)}"
