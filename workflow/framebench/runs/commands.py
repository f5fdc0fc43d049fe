"""Command lines of runs: arguments of the harness, and the interpreter that runs it.

``name`` is the name of some software, see :func:`plan.software`.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from core.case import Case

from ..config.catalog import Catalog
from ..config.values import bytes_of
from ..environments.soundness import is_sound
from ..plan import batch_searches, repeats
from ..plan.batch_searches import BatchSearch
from ..plan.case_settings import counts_steps, data_of, variables, variant_settings
from ..plan.estimates import run_limit
from ..plan.job import Job
from ..plan.planning import Plan, PlannedRun
from ..records.searches import KIND

#: Steps of the step breakdown, after the timed region of a training run.
BREAKDOWN_STEPS = 3
#: Option for a variable of the ranks; behind all others, see :func:`check_arguments`.
VARIABLE = "--variable"


def to_build(plan: Plan) -> set[str]:
    """Return the names of software whose venv is missing or damaged."""
    markers = {name: software.marker for name, software in plan.software.items()}
    return {name for name, marker in markers.items() if marker and not is_sound(marker)}


def conda_file(plan: Plan, name: str) -> Path | None:
    """Return the environment file for ``--sdm conda``; None if none is needed."""
    file = plan.software[name].file
    return file.path if file else None


def image(plan: Plan, name: str) -> str | None:
    """Return the image for ``--sdm apptainer``; None if none is needed."""
    found = plan.software[name].image
    return found.name if found else None


def hashing(plan: Plan) -> list[str]:
    """Return arguments of an environment's build: whether package hashes are checked."""
    return [] if plan.settings.require_hashes else ["--without-hashes"]


def interpreter(plan: Plan, name: str) -> list[str]:
    """Return the words that start the run's Python."""
    return list(plan.software[name].python)


def origin(plan: Plan, catalog: Catalog, name: str) -> str:
    """Return shell-quoted arguments with which the harness checks its environment."""
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


def arguments(plan: Plan, run: PlannedRun) -> list[str]:
    """Return the arguments of the harness for a run."""
    suite = plan.settings.suite
    steps = {
        "warmup-steps": suite.warmup_steps,
        "warmup-limit": suite.warmup_limit,
        "timed-steps": suite.timed_steps,
        "timed-seconds": suite.timed_seconds if run.case.is_step else None,
    }
    measured = words(
        {
            **_case(plan, run.case),
            **(steps if counts_steps(run.case, suite) else {}),
            "repeat": run.repeat,
            **common(plan, run.case.devices),
        }
    )
    breakdown = (
        {"breakdown_steps": BREAKDOWN_STEPS}
        if repeats.has_breakdown(run.case, run.repeat, suite)
        else {}
    )
    parameters = of_kind({**breakdown, **dict(run.case.parameters)})
    return measured + parameters + variant_options(plan, run.case)


def check_arguments(checks: Sequence[Job]) -> list[str]:
    """Return the arguments of the harness for checks with equal variables, which come first."""
    variables: list[str] = []
    options: list[str] = []
    for check in checks:
        words = check.arguments()
        kept = words[: words.index(VARIABLE)] if VARIABLE in words else words
        variables = words[len(kept) :]
        options += ["--check", shlex.join([*kept, "--output", check.record, "--log", check.log])]
    return [*variables, *options]


def search_arguments(plan: Plan, search: BatchSearch) -> list[str]:
    """Return the arguments of the harness for a search for the largest batch."""
    case, bounds = search.case, plan.settings.suite.largest_batch
    named = {
        **_case(plan, case),
        "kind": KIND,
        "batch-per-device": None,
        "warmup-steps": batch_searches.WARMUP_STEPS,
        "timed-steps": batch_searches.TIMED_STEPS,
        **common(plan, case.devices),
    }
    parameters = of_kind(batch_searches.parameters_of(case, bounds))
    return [*words(named), *parameters, *variant_options(plan, case), "--spare-memory"]


def model_of(plan: Plan, name: str) -> str:
    """Return the model argument of the harness: path of the model config, or the user's own
    model."""
    sources = {own_model.name: own_model.source for own_model in plan.settings.own_models}
    return sources.get(name, f"{plan.scripts}/models/{name}.json")


def axis_options(plan: Plan, case: Case) -> dict[str, object]:
    """Return arguments of the harness for benchmark, axes and variant of a case, by name."""
    return {
        "kind": case.mode,
        "kinds": plan.settings.kinds if not case.is_step else None,
        **{name.replace("_", "-"): value for name, value in case.arguments().items()},
        "framework": f"{plan.scripts}/frameworks/{case.framework}" if case.framework else None,
        "model": model_of(plan, case.model) if case.model else None,
        "variant": case.variant or None,
    }


def _case(plan: Plan, case: Case) -> dict[str, object]:
    return {
        **axis_options(plan, case),
        **{key.replace("_", "-"): value for key, value in data_of(case, plan.settings).items()},
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
        "cores-per-device": plan.capacity.cores_per_device,
        "time-limit": run_limit(settings),
        "memory-limit": memory,
        "cores": plan.capacity.cores,
        "side-by-side": plan.is_beside(devices) or None,
        "seed": settings.seed,
    }


def words(named: Mapping[str, object]) -> list[str]:
    """Return options of a command line: without a value for True, none for None."""
    given = {key: value for key, value in named.items() if value is not None}
    pairs = (
        [f"--{key}"] if item is True else [f"--{key}", str(item)] for key, item in given.items()
    )
    return [word for pair in pairs for word in pair]


def of_kind(parameters: Mapping[str, object]) -> list[str]:
    """Return options for the parameters of a benchmark."""
    return [
        word for name, value in parameters.items() for word in ("--parameter", f"{name}={value}")
    ]


def variant_options(plan: Plan, case: Case) -> list[str]:
    """Return options that a variant sets for the ranks: variables, allocator and model source."""
    suite = plan.settings.suite
    options = {
        name.replace("_", "-"): value for name, value in variant_settings(case, suite).items()
    }
    capacity = plan.capacity
    variables_of = variables(case, suite, capacity.accelerator, capacity.vendor)
    return [*given(variables_of.items()), *words(options)]


def given(named: Iterable[tuple[str, str]]) -> list[str]:
    """Return options for environment variables of the ranks."""
    return [word for name, value in named for word in (VARIABLE, f"{name}={value}")]
