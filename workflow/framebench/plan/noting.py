"""Sidecar file of expected cases, written next to the records of a plan."""

from __future__ import annotations

from ..cases import conditions
from ..records.sidecars import expected
from ..records.sidecars.expected import ExpectedCase
from . import planning
from .planning import Plan


def note(plan: Plan) -> None:
    """Write the expected cases of the plan next to the records. Raises OSError."""
    searched = [(search.case, "") for search in plan.unsearched]
    cases = [
        ExpectedCase(
            plan.settings.suite.name,
            folder,
            conditions.Case(
                framework=case.framework,
                framework_version="",
                source=conditions.OURS,
                model=case.model,
                mode=case.mode,
                precision=case.precision,
                compiler=case.compiler,
                nodes=case.nodes,
                devices_per_node=case.devices_per_node,
                batch_per_device=int(case.batch_per_device) if folder else 0,
                parameters=case.parameters,
            ),
            planning.asked_conditions(case, plan.settings, plan.place),
        )
        for case, folder in (*plan.folders.items(), *searched)
    ]
    expected.note(plan.settings.results, plan.settings.suite.name, cases, plan.is_whole)
