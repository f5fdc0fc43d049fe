"""Sidecar file of expected cases, written next to the records of a plan."""

from __future__ import annotations

from ..cases import conditions
from ..cases.fitting import LeftOut
from ..records import expected
from ..records.expected import ExpectedCase
from . import case_settings
from .planning import Plan


def note(plan: Plan) -> None:
    """Write the expected cases of the plan next to the records, and those left out at a setting
    at which others are measured. Raises OSError.

    Cases that check another batch are not expected: only those of the leaders are measured."""
    folders = [
        (case, folder, "") for case, folder in plan.folders.items() if case not in plan.larger
    ]
    searched = [(search.case, "", "") for search in plan.unsearched]
    left_out = [(left_out.case, "", left_out.reason) for left_out in _competing(plan)]
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
        for case, folder, why in (*folders, *searched, *left_out)
    ]
    expected.note(plan.settings.results, plan.settings.suite.name, cases, plan.is_whole)


def _competing(plan: Plan) -> list[LeftOut]:
    """Return the cases left out whose setting another case of the plan has."""
    settings = {case.setting for case in plan.folders} if plan.left_out else set()
    return [left_out for left_out in plan.left_out if left_out.case.setting in settings]
