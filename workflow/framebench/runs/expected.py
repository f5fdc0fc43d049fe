"""What each job of a call is expected to take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..config.suite import Suite
from ..environments.soundness import is_sound
from ..plan import estimates, repeats
from ..plan.batch_searches import BatchSearch
from ..plan.planning import Plan, PlannedRun
from ..plan.tasks import Guess, Task, Traits, name_of
from . import certify, probes
from .certify import Verification
from .probes import Probe

#: Rough seconds of tables and report.
TABLES_SECONDS = 3.0


def of_run(run: PlannedRun, suite: Suite, is_measured: bool) -> Task:
    """``is_measured``: its case has records."""
    case, folder, guess = run.case, run.name.rpartition("/")[0], run.guess
    if not is_measured and repeats.is_split(case, run.repeat, suite):
        more = estimates.of_parts(guess, case, suite)
        guess = Guess(guess.start + more.start, guess.work + more.work)
    traits = Traits(
        "run", case.framework, case.model, case.mode, case.precision, case.compiler, case.topology,
        folder,
    )  # fmt: skip
    name = _name(run.name, "framework", "model", "case", "run")
    return Task(name, traits, guess, is_measured)


def of_search(plan: Plan, search: BatchSearch) -> Task:
    case = search.case
    traits = Traits(
        "search", case.framework, case.model, case.mode, case.precision, case.compiler,
        case.topology, search.name,
    )  # fmt: skip
    name = _name(search.name, "framework", "model", "search")
    return Task(name, traits, Guess(0.0, plan.seconds_of(search)))


def of_comparison(name: str, one: Verification) -> Task:
    """``name``: of its file."""
    traits = Traits(
        "comparison", one.framework, one.reference, one.mode, one.precision, one.compiler,
        f"1n{one.devices}g", name,
    )  # fmt: skip
    return Task(
        _name(name, "framework", "reference", "comparison"), traits, Guess(certify.seconds_of(one))
    )


def of_probe(name: str, one: Probe) -> Task:
    """``name``: of its file."""
    devices = f"1n{one.devices}g"
    traits = Traits("probe", one.framework, precision=one.precision, devices=devices, case=name)
    return Task(_name(name, "framework", "probe"), traits, probes.guess_of(one))


def of_reference(name: str) -> Task:
    traits = Traits("reference", case=name)
    return Task(f"reference/{name}", traits, Guess(certify.REFERENCE_SECONDS))


def of_environment(name: str) -> Task:
    traits = Traits("environment", case=name)
    return Task(f"environment/{name}", traits, Guess(estimates.ENVIRONMENT_SECONDS))


def of_tables() -> Task:
    return Task("tables", Traits("tables"), Guess(TABLES_SECONDS))


def of_all(
    plan: Plan, probes_of: Mapping[str, Probe], comparisons: Mapping[str, Verification]
) -> list[Task]:
    """Of all that a call for the plan has to do. What a search makes known later is not counted."""
    tasks = [*_measuring(plan, probes_of, comparisons)]
    return [*tasks, of_tables()] if tasks else []


def _measuring(
    plan: Plan, probes_of: Mapping[str, Probe], comparisons: Mapping[str, Verification]
) -> Iterator[Task]:
    results = plan.settings.results
    for one in plan.needed.values():
        if one.file and one.marker and not is_sound(one.marker):
            yield of_environment(one.file.name)
    for search in plan.unsearched:
        yield of_search(plan, search)
    measured = plan.measured
    for run in plan.pending:
        yield of_run(run, plan.settings.suite, run.case in measured)
    for name in probes.missing(results, probes_of):
        yield of_probe(name, probes_of[name])
    to_make = certify.missing(results, comparisons)
    for name, comparison in to_make.items():
        yield of_comparison(name, comparison)
    for reference in certify.references(results, to_make.values()):
        yield of_reference(reference)


def _name(path: str, *wildcards: str) -> str:
    return name_of(dict(zip(wildcards, path.split("/"), strict=True)), "")
