"""Sidecar file of expected cases, written next to the records of a plan."""

from __future__ import annotations

from ..cases import conditions
from ..records.sidecars import expected
from ..records.sidecars.expected import ExpectedCase
from . import case_settings
from .planning import Plan


def note(plan: Plan) -> None:
    """Write the expected cases of the plan next to the records. Raises OSError."""
    searched = [(search.case, "") for search in plan.unsearched]
    cases = [
        ExpectedCase(
            plan.settings.suite.name,
            folder,
            case._replace(
                source=conditions.OURS,
                batch_per_device=int(case.batch_per_device) if folder else 0,
            ),
            case_settings.asked_conditions(case, plan.settings, plan.place),
            plan.settings.budget is not None,
        )
        for case, folder in (*plan.folders.items(), *searched)
    ]
    expected.note(plan.settings.results, plan.settings.suite.name, cases, plan.is_whole)
