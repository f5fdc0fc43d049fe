"""Arguments of the harness for runs, searches and checks."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence

from core.case import Case

from ..config.catalog import Catalog
from ..config.values import bytes_of
from ..plan import batch_searches, repeats
from ..plan.case_settings import data_of, steps_of, variables
from ..plan.estimates import run_limit
from ..plan.job import Job
from ..plan.planning import Plan
from ..records.searches import KIND

#: Steps of the step breakdown, after the timed region of a training run.
BREAKDOWN_STEPS = 3
#: Option for a variable of the ranks; behind all others, see :func:`check_arguments`.
VARIABLE = "--variable"


def origin(plan: Plan, catalog: Catalog, name: str) -> str:
    """Return shell-quoted arguments with which the harness checks its environment, the software
    ``name``."""
    software = plan.software[name]
    method = ["--install-method", software.install_method]
    if software.image:
        digest = ["--image-digest", software.image.digest] if software.image.digest else []
        return shlex.join([*method, "--image", software.image.name, *digest])
    if software.modules:
        modules = (word for module in software.modules for word in ("--module", module))
        return shlex.join([*method, *modules])
    if software.file is None:
        return shlex.join(method)
    pin = software.file.pin(catalog.frameworks[name.partition("@")[0]]["package"])
    # Only the shell that activated a conda environment knows its prefix.
    prefix = shlex.quote(str(software.folder)) if software.folder else '"$CONDA_PREFIX"'
    return f"{shlex.join(method)} --prefix {prefix} --pin {shlex.quote(pin)}"


def arguments(plan: Plan, run: Job) -> list[str]:
    """Return the arguments of the harness for a run."""
    case, suite = run.case, plan.settings.suite
    named = {
        **axis_options(plan, case),
        **steps_of(case, suite),
        "repeat": run.repeat,
        **common(plan, case.devices),
    }
    parameters = dict(case.parameters)
    if repeats.has_breakdown(case, run.repeat, suite):
        parameters["breakdown_steps"] = BREAKDOWN_STEPS
    return words(named) + of_kind(parameters) + variant_options(plan, case)


def check_arguments(checks: Sequence[Job]) -> list[str]:
    """Return the arguments of the harness for checks with equal variables, which come first."""
    variables: list[str] = []
    options: list[str] = []
    for check in checks:
        words = check.arguments()
        kept = words[: words.index(VARIABLE)] if VARIABLE in words else words
        variables = words[len(kept) :]
        options += ["--check", shlex.join([*kept, "--output", check.output, "--log", check.log])]
    return [*variables, *options]


def search_arguments(plan: Plan, case: Case) -> list[str]:
    """Return the arguments of the harness for a search for the largest batch of a case."""
    bounds = plan.settings.suite.largest_batch
    named = {
        **axis_options(plan, case),
        "kind": KIND,
        "batch_per_device": None,
        "warmup_steps": batch_searches.WARMUP_STEPS,
        "timed_steps": batch_searches.TIMED_STEPS,
        **common(plan, case.devices),
    }
    parameters = of_kind({"mode": case.mode, **dict(bounds)})
    return [*words(named), *parameters, *variant_options(plan, case)]


def model_of(plan: Plan, name: str) -> str:
    """Return the model argument of the harness: path of the model config, or the user's own
    model."""
    sources = {own_model.name: own_model.source for own_model in plan.settings.own_models}
    return sources.get(name, f"{plan.scripts}/models/{name}.json")


def axis_options(plan: Plan, case: Case) -> dict[str, object]:
    """Return arguments of the harness for benchmark, axes, variant and data of a case, by name."""
    return {
        "kind": case.mode,
        "kinds": plan.settings.kinds if not case.is_step else None,
        **case.arguments(),
        "framework": f"{plan.scripts}/frameworks/{case.framework}" if case.framework else None,
        "model": model_of(plan, case.model) if case.model else None,
        "variant": case.variant or None,
        **data_of(case, plan.settings),
        "node": case.node or None,
    }


def common(plan: Plan, devices: int) -> dict[str, object]:
    """Return arguments of the harness for every measurement, by name; None for an absent one.

    ``devices``: of the measurement.
    """
    settings, memory = plan.settings, plan.settings.memory_limit
    if settings.cluster and memory and memory.endswith("%"):
        memory = f"{bytes_of(memory, settings.cluster.memory_mib * 2**10)}KiB"
    return {
        "accelerator": plan.capacity.accelerator,
        "emulated": settings.emulated if plan.capacity.accelerator == "cpu" else None,
        "cores_per_device": plan.capacity.cores_per_device,
        "time_limit": run_limit(settings),
        "memory_limit": memory,
        "cores": plan.capacity.cores,
        "side_by_side": plan.is_beside(devices) or None,
        "seed": settings.seed,
    }


def words(named: Mapping[str, object]) -> list[str]:
    """Return options of a command line: without a value for True, none for None."""
    result: list[str] = []
    for key, value in named.items():
        if value is not None:
            result += [f"--{key.replace('_', '-')}", *([] if value is True else [str(value)])]
    return result


def of_kind(parameters: Mapping[str, object]) -> list[str]:
    """Return options for the parameters of a benchmark."""
    return [
        word for name, value in parameters.items() for word in ("--parameter", f"{name}={value}")
    ]


def variant_options(plan: Plan, case: Case) -> list[str]:
    """Return options for the variables that a variant sets for the ranks."""
    suite, capacity = plan.settings.suite, plan.capacity
    variables_of = variables(case, suite, capacity.accelerator, capacity.vendor)
    return given(variables_of.items())


def given(named: Iterable[tuple[str, str]]) -> list[str]:
    """Return options for environment variables of the ranks."""
    return [word for name, value in named for word in (VARIABLE, f"{name}={value}")]
