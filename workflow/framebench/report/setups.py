"""Environments of the report: each framework with its software, from one record."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..records.run import Run
from ..tables.measured import runs_in
from . import colours
from .record_links import Link

MAX_SETUPS = 12


@dataclass(frozen=True)
class FrameworkSetup:
    """A framework in one environment on one kind of machine."""

    framework: str
    colour: str
    version: str
    source: str
    runs: int
    ok: int
    record: Link


def find_setups(
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
                record=link(run, f"record of repeat {run.repeat}"),
            )
        )
    return setups, len(groups) - len(setups)
