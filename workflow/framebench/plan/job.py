"""A job: a row of the table of everything that a call executes, see :mod:`runs.job_table`."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from core.case import Case

from ..cases import names
from ..records.record_sets import SEARCHES

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
#: Output and log of a job by kind, below the results; ``{}`` stands for its path.
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
#: Singular and plural of each kind of job, in the order of the status line.
NOUNS = {
    "run": ("run", "runs"),
    "search": ("largest batch", "largest batches"),
    "environment": ("environment", "environments"),
    "peak_flops": ("peak benchmark", "peak benchmarks"),
    "verification": ("verification", "verifications"),
    "reference": ("reference", "references"),
}
#: Priority of jobs before all runs; runs follow in the order of the plan, below it.
FIRST = 10_000_000
#: Case of a job that measures nothing and is never submitted.
NO_CASE = Case("", "", "", 0, 1, 0, "", "")


class Job(NamedTuple):
    """A run, batch search, verification, peak-FLOPS benchmark, several of these checks, reference
    or environment.

    ``kind``, ``path``: together its name, which is unique in a call; ``seconds``: expected
    duration; ``case``: the measured case, whose nodes and devices are requested from a cluster;
    ``status``: status of the existing record, "" for a pending job; ``software``: name of its
    software; ``waits_for``: files that it needs; ``arguments``: function that returns its program's
    arguments; ``parts``: checks that the job makes, each with its own record; its own output is
    then a marker.
    """

    kind: str
    path: str
    seconds: float
    output: str = ""
    log: str = ""
    case: Case = NO_CASE
    repeat: int = 0
    status: str = ""
    software: str = ""
    label: str = ""
    priority: int = 0
    waits_for: tuple[str, ...] = ()
    arguments: Callable[[], list[str]] = list
    parts: tuple[Job, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.kind}/{self.path}"

    @property
    def nodes(self) -> int:
        """Nodes requested from a cluster; 0 for a job that is never submitted."""
        return self.case.nodes

    @property
    def record(self) -> str:
        """Record that the job writes; "" for an environment or a reference."""
        return "" if self.kind in ("environment", "reference") else self.output

    @property
    def title(self) -> str:
        """Label, with the repeat of a run."""
        return f"{self.label}  repeat {self.repeat}" if self.repeat else self.label


def count_of(number: int, kind: str) -> str:
    """Return a count with its noun, such as ``84 runs``."""
    return f"{number} {NOUNS[kind][number != 1]}"


def name_of(wildcards: Mapping[str, str]) -> str:
    """Return the name of a job by its wildcards; "" for other wildcards."""
    kind = _KINDS.get(frozenset(wildcards))
    return f"{kind}/{PATHS[kind].format(**wildcards)}" if kind else ""


def files_of(results: str | Path, kind: str, path: str) -> tuple[str, str]:
    """Return output and log of a job."""
    output, log = FILES[kind]
    return f"{results}/{output.format(path)}", f"{results}/{log.format(path)}"


def label_cases(cases: Iterable[Case]) -> dict[Case, str]:
    """Return labels such as ``pytorch  ResNet-50 training  fp32``. Cases with equal labels also get
    the axes in which they differ."""
    alike: dict[str, list[Case]] = defaultdict(list)
    for case in dict.fromkeys(cases):
        parts = (case.framework, names.workload(case), names.in_words(case.precision))
        alike["  ".join(filter(None, parts))].append(case)
    results = {}
    for common, group in alike.items():
        words = {case: _further_words(case) for case in group}
        differing = [
            name
            for name in dict.fromkeys(name for entry in words.values() for name in entry)
            if len({entry.get(name, "") for entry in words.values()}) > 1
        ]
        for case, entry in words.items():
            texts = [entry.get(name, "") for name in differing]
            results[case] = "  ".join(filter(None, [common, *texts]))
    return results


def _further_words(case: Case) -> dict[str, str]:
    """Return the words of all further axes, without the total batch, which follows from others."""
    words = {**case.value_texts(), "topology": names.devices(case) if case.devices else ""}
    words["compiler"] = "" if case.compiler == "none" else case.compiler
    return {
        name: text for name, text in words.items() if name not in ("mode", "precision", "total")
    }
