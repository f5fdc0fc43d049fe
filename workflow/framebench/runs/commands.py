"""Arguments of the harness for runs, searches and checks."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence

from core.case import Case
from core.limits import parse_limit

from ..config.catalog import Catalog
from ..plan.case_settings import data_of, is_beside, steps_of
from ..plan.case_settings import variables as variables_of
from ..plan.job import Job
from ..plan.plan import Plan
from ..records.record_sets import SEARCHES

#: Warm-up and timed steps of a run that tries a batch. From the second step on, the optimizer state
#: is in memory.
SEARCH_STEPS = 1, 2


def origin(plan: Plan, catalog: Catalog, name: str) -> str:
    """Return shell-quoted arguments with which the harness checks the software ``name``."""
    software = plan.software[name]
    method = ["--install-method", software.install_method]
    if software.image:
        digest = ["--image-digest", software.image_digest] if software.image_digest else []
        return shlex.join([*method, "--image", software.image, *digest])
    if software.file is None:
        return shlex.join(method)
    pin = software.file.pin(catalog.frameworks[name.partition("@")[0]]["package"])
    # Only the shell that activated a conda environment knows its prefix.
    prefix = shlex.quote(str(software.folder)) if software.folder else '"$CONDA_PREFIX"'
    return f"{shlex.join(method)} --prefix {prefix} --pin {shlex.quote(pin)}"


def arguments(plan: Plan, run: Job) -> list[str]:
    """Return the arguments of the harness for a run."""
    case, suite = run.case, plan.settings.suite
    own = {**steps_of(case, suite), "repeat": run.repeat}
    return harness_options(plan, case, dict(case.parameters), own)


def search_arguments(plan: Plan, case: Case) -> list[str]:
    """Return the arguments of the harness for a search for the largest batch of a case."""
    parameters = {"mode": case.mode, **dict(plan.settings.suite.largest_batch)}
    own = {
        "kind": SEARCHES,
        "batch_per_device": None,
        "warmup_steps": SEARCH_STEPS[0],
        "timed_steps": SEARCH_STEPS[1],
    }
    return harness_options(plan, case, parameters, own)


def check_arguments(checks: Sequence[Job]) -> list[str]:
    """Return the arguments of the harness for several checks in one process."""
    words: list[str] = []
    for check in checks:
        own = [*check.arguments(), "--output", check.output, "--log", check.log]
        words += ["--check", shlex.join(own)]
    return words


def harness_options(
    plan: Plan,
    case: Case,
    parameters: Mapping[str, object],
    own: Mapping[str, object],
    variables: Iterable[tuple[str, str]] | None = None,
) -> list[str]:
    """Return the arguments of the harness for a measurement of a case with ``parameters`` of its
    benchmark. ``own``: options by name, in addition to or in place of those of the case; None
    omits an option. ``variables``: variables of the ranks; None for those of the case's variant."""
    settings, capacity, memory = plan.settings, plan.capacity, plan.settings.memory_limit
    if settings.cluster and memory and memory.endswith("%"):
        memory = f"{parse_limit(memory).bytes_of(settings.cluster.memory_mib * 2**10)}KiB"
    named = {
        "kind": case.mode,
        "kinds": settings.kinds if not case.is_step else None,
        **case.arguments(),
        "framework": f"{plan.scripts}/frameworks/{case.framework}" if case.framework else None,
        "model": model_of(plan, case.model) if case.model else None,
        "variant": case.variant or None,
        **data_of(case, settings),
        "node": case.node or None,
        "accelerator": capacity.accelerator,
        "emulated": "skip" if capacity.accelerator == "cpu" else None,
        "cores_per_device": capacity.cores_per_device,
        "time_limit": settings.run_limit,
        "memory_limit": memory,
        "cores": capacity.machine.most_cores,
        "side_by_side": is_beside(case.devices, settings) or None,
        "seed": settings.seed,
        **own,
    }
    words: list[str] = []
    for key, value in named.items():
        if value is not None:
            words += [f"--{key.replace('_', '-')}", *([] if value is True else [str(value)])]
    for name, value in parameters.items():
        words += ["--parameter", f"{name}={value}"]
    if variables is None:
        variables = variables_of(case, settings.suite, capacity.accelerator).items()
    for name, value in variables:
        words += ["--variable", f"{name}={value}"]
    return words


def model_of(plan: Plan, name: str) -> str:
    """Return the path of a model config, or the source of the user's own model."""
    sources = {own_model.name: own_model.source for own_model in plan.settings.own_models}
    return sources.get(name, f"{plan.scripts}/models/{name}.json")
