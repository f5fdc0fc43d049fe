"""Sidecar file of expected cases, written next to the records of a plan."""

from __future__ import annotations

from ..cases import conditions
from ..records import expected
from ..records.expected import ExpectedCase
from . import case_settings
from .plan import Plan


def note(plan: Plan) -> None:
    """Write the expected cases of the plan next to the records, and excluded cases of settings at
    which others are measured. Raises OSError.

    Cases that check another batch are not expected: only those of the leaders are measured."""
    competing = {case.setting for case in plan.folders}
    noted = [(case, folder, "") for case, folder in plan.folders.items() if case not in plan.larger]
    noted += [(search.case, "", "") for search in plan.unsearched]
    noted += [(out.case, "", out.reason) for out in plan.left_out if out.case.setting in competing]
    cases = [
        ExpectedCase(
            plan.settings.suite.name,
            folder,
            case._replace(
                source=conditions.OURS,
                batch_per_device=int(case.batch_per_device) if folder or why else 0,
            ),
            case_settings.asked_conditions(case, plan.settings, plan.capacity),
            plan.settings.budget is not None,
            why,
        )
        for case, folder, why in noted
    ]
    expected.note(plan.settings.results, plan.settings.suite.name, cases, plan.is_whole)
