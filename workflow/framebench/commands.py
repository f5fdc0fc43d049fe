"""The command line of a run: what the harness is told, and which interpreter must be told it.

``name`` is that of some software, see :func:`plan.software`.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

from . import searches
from .catalog import Catalog
from .cluster import START_NODES
from .matrix import Case
from .plan import Plan, PlannedRun
from .searches import Search

#: Steps that are timed part by part behind the window of a training run's first repeat: what a step
#: consists of does not change from repeat to repeat.
SPLIT_STEPS = 3


def environment_marker(plan: Plan, name: str, conda: bool) -> list[str]:
    """What a run must wait for: the venv's marker; nothing where conda or the user brings the
    interpreter."""
    if conda or name in plan.interpreters:
        return []
    return [plan.environments[name].marker]


def conda_file(plan: Plan, name: str) -> Path | None:
    """The environment file for ``--sdm conda``; None where the user brings the interpreter."""
    if name in plan.interpreters:
        return None
    return plan.environments[name].path


def interpreter(plan: Plan, name: str, conda: bool) -> str:
    """The Python to start: the user's, that of the activated conda environment, or the venv's."""
    if name in plan.interpreters:
        return plan.interpreters[name]
    return "python" if conda else f"{plan.environments[name].folder}/bin/python"


def origin(plan: Plan, catalog: Catalog, name: str, conda: bool) -> str:
    """Arguments, quoted for the shell, by which the harness checks that it runs where it should."""
    if name in plan.interpreters:
        return "--way interpreter"
    file = plan.environments[name]
    pin = shlex.quote(file.pin(catalog.frameworks[name.partition("@")[0]]["package"]))
    if conda:
        # Only the shell that activated it knows the prefix.
        return f'--way conda --prefix "$CONDA_PREFIX" --pin {pin}'
    return f"--way venv --prefix {shlex.quote(file.folder)} --pin {pin}"


def attempts(plan: Plan, framebench: list[str]) -> list[str]:
    """What runs the harness again where the run was disturbed; nothing if that is not wanted."""
    most = plan.settings.rerun_disturbed
    return [*framebench, "attempts", "--most", str(most), "--"] if most else []


def arguments(plan: Plan, run: PlannedRun) -> list[str]:
    """What to measure, as arguments of the harness."""
    suite = plan.settings.suite
    return _arguments(
        {
            **_case(plan, run.case),
            "warmup-steps": suite.warmup_steps,
            "warmup-limit": suite.warmup_limit,
            "timed-steps": suite.timed_steps,
            "repeat": run.repeat,
            "split-steps": SPLIT_STEPS if run.case.mode == "train" and run.repeat == 1 else None,
            "time-limit": run_limit(plan, run.seconds),
        }
    ) + _variables(plan, run.case)


def run_limit(plan: Plan, seconds: float) -> float:
    """The time limit of a run that is expected to take so many seconds: on a cluster it ends with
    a record before its job's time is up."""
    limit = plan.settings.time_limit
    cluster = plan.settings.cluster
    return min(limit, cluster.run_limit(seconds)) if cluster else limit


def search_bounds(plan: Plan) -> list[str]:
    """Where to search for a largest batch, as arguments of the search."""
    bounds = plan.settings.suite.largest_batch
    return _arguments({"multiple-of": bounds.multiple_of, "at-most": bounds.at_most})


def search_arguments(plan: Plan, search: Search) -> list[str]:
    """What each run of a search has in common, as arguments of the harness: all but the batch."""
    words = {
        **_case(plan, search.case),
        "batch-per-device": None,
        "warmup-steps": searches.WARMUP_STEPS,
        "timed-steps": searches.TIMED_STEPS,
    }
    return [*_arguments(words), *_variables(plan, search.case), "--spare-memory"]


def _case(plan: Plan, case: Case) -> dict[str, object]:
    place = plan.place
    return {
        "framework": f"scripts/frameworks/{case.framework}",
        "model": f"scripts/models/{case.model}.json",
        "mode": case.mode,
        "nodes": case.nodes,
        "devices-per-node": case.devices_per_node,
        "batch-per-device": case.batch_per_device,
        "precision": case.precision,
        "compiler": case.compiler,
        "sequence-length": case.sequence_length,
        "accelerator": place.accelerator,
        "cores-per-device": place.cores_per_device,
        "time-limit": plan.settings.time_limit,
        "memory-limit": plan.settings.memory_limit,
        "start-nodes": START_NODES if case.nodes > 1 else None,
        "seed": plan.settings.seed,
        **({"variant": case.variant} if case.variant else {}),
    }


def _arguments(words: Mapping[str, object]) -> list[str]:
    given = {key: value for key, value in words.items() if value is not None}
    return [word for key, value in given.items() for word in (f"--{key}", str(value))]


def _variables(plan: Plan, case: Case) -> list[str]:
    if not case.variant:
        return []
    variables = plan.settings.suite.variants[case.variant].variables
    return [word for name, value in variables.items() for word in ("--variable", f"{name}={value}")]
