"""Verdicts on nodes in a report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...report.report_part import ReportPart
from . import command, figures, judging

if TYPE_CHECKING:
    from ...records.record_sets import RecordSet
    from ...tables.results import CaseResults
    from ...tables.table import Inputs


class NodeVerdicts(ReportPart):
    """Judged nodes, and the baseline of the healthy ones."""

    def inputs(self, record_set: RecordSet, cases: CaseResults, results: Path) -> Mapping[str, Any]:
        """Return the judged nodes of runs that name one."""
        return {"nodes": command.judged(cases, results)[0]}

    def files(self, inputs: Inputs, folder: Path) -> Mapping[Path, str]:
        """Return the baseline of nodes that are not named; {} without nodes."""
        measured = figures.measured({**inputs.cases, **inputs.others})
        baseline = judging.baseline_text(inputs.of_features.get("nodes", ()), measured)
        return {folder / command.BASELINE: baseline} if baseline else {}

    def lines(self, inputs: Inputs) -> Iterator[str]:
        """Yield a line for each named node, and the number of nodes."""
        return command.lines(inputs.of_features.get("nodes", ()))


PART = NodeVerdicts()
