"""What a framework lacks by its own declaration, so that no process need be started to learn it.

The harness says the same of a run that is asked for by hand: ``request/declaration.py``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..config.catalog import Catalog
from ..config.parallelism import DATA, names_of
from ..config.suite import Suite

if TYPE_CHECKING:
    from .matrix import Case


def lacking(case: Case, suite: Suite, catalog: Catalog) -> str:
    """Why a framework cannot measure the case; "" where nothing speaks against it."""
    if not case.framework:
        return ""
    measured = suite.measurements.get(case.mode)
    if measured and case.framework in measured.lacking:
        return measured.lacking[case.framework]
    facts = catalog.frameworks[case.framework]
    if case.parallelism != DATA:
        hyper = catalog.models[case.model].get("hyperparameters", {})
        if "heads" not in hyper:
            return f"{case.model} is no transformer: its devices share a step by {DATA} alone"
        ways = [DATA, *facts.get("parallelism", ())]
        # a product is the same in any order
        if not any(set(names_of(case.parallelism)) == set(names_of(way)) for way in ways):
            asked = "x".join(names_of(case.parallelism))
            return f"{case.framework} has no parallelism {asked} (it has: {', '.join(ways)})"
    if case.compiler == "native":
        return f"{case.framework} has no graph compiler"
    if case.compiler and case.compiler not in facts["compilers"]:
        known = ", ".join(facts["compilers"])
        return f"{case.framework} has no compiler {case.compiler} (it has: {known})"
    if case.precision and case.precision not in facts["precisions"]:
        known = ", ".join(facts["precisions"])
        return f"{case.framework} has no precision {case.precision} (it has: {known})"
    return ""
