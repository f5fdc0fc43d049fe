"""Environments of the report: each framework with its software, from one record."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..files.problem import cause
from ..records import record_files
from ..records.run import Run
from ..tables.measured import runs_in
from . import colours
from .record_links import Link

MAX_SETUPS = 12
#: How an environment was built, in words.
_WAYS = {
    "venv": "a venv that the workflow built",
    "conda": "a conda environment that Snakemake built",
    "interpreter": "an interpreter named in the config",
    "modules": "environment modules",
    "container": "a container",
    "hand": "by hand, outside the workflow",
}


@dataclass(frozen=True)
class FrameworkSetup:
    """A framework in one environment on one kind of machine. ``made``: how it was built."""

    framework: str
    colour: str
    version: str
    source: str
    runs: int
    ok: int
    made: str
    record: Link


def of_runs(
    runs: Sequence[Run], link: Callable[[Run, str], Link]
) -> tuple[list[FrameworkSetup], int]:
    """Return a setup per framework, version, source, machine and environment.

    At most MAX_SETUPS; the second value is the number left out."""
    groups: dict[tuple[str, ...], list[Run]] = defaultdict(list)
    for run in runs:
        case = run.case
        key = (case.framework, case.framework_version, case.source)
        groups[(*key, str(run.machine), run.environment)].append(run)
    setups = []
    for group_key in sorted(groups)[:MAX_SETUPS]:
        group = groups[group_key]
        # A successful run has the most complete environment.
        run = next((run for run in group if run.status == "ok"), group[0])
        setups.append(
            FrameworkSetup(
                framework=runs_in(run.case),
                colour=colours.variable(runs_in(run.case)),
                version=run.case.framework_version or "not known",
                source=run.case.source,
                runs=len(group),
                ok=sum(other.status == "ok" for other in group),
                made=_made(run),
                record=link(run, f"record of repeat {run.repeat}"),
            )
        )
    return setups, len(groups) - len(setups)


def _made(run: Run) -> str:
    if run.record is None:
        return "imported: no environment recorded"
    try:
        environment: Mapping[str, Any] = record_files.read(run.record)["environment"]
    except (OSError, ValueError) as error:
        return f"not known: the record could not be read again ({cause(error)})"
    named = " ".join([environment.get("image", ""), *environment.get("modules", [])]).strip()
    way = _WAYS[environment["install_method"]] + (f" ({named})" if named else "")
    return f"{way}, Python {environment['python']}"
