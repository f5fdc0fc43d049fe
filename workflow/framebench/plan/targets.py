"""Checks of a plan before anything starts: ignored keys, missing data, time, no possible run."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping

from core import precisions

from ..config.catalog import Catalog
from ..config.measurements import CONVERGE
from ..config.settings import SOURCE
from ..config.validation import ConfigError
from . import estimates
from .case_settings import variables
from .job import Job
from .plan import Plan


def check_measurement(plan: Plan) -> None:
    """Raise :class:`ConfigError` if ``records`` is set, which a measurement would ignore."""
    if plan.settings.records:
        raise ConfigError(
            f"{SOURCE}: records: found '{plan.settings.records}' for a target that measures; "
            "allowed with the target report: snakemake --cores 1 report --config records=.."
        )


def check_arithmetic(plan: Plan, environment: Mapping[str, str]) -> None:
    """Raise :class:`ConfigError` for a variable that changes the arithmetic of a pending case."""
    for case in dict.fromkeys(run.case for run in plan.pending):
        precision = precisions.known().get(case.precision)
        own = variables(case, plan.settings.suite, plan.capacity.accelerator)
        for name, values in precision.variables.items() if precision else ():
            found = own.get(name, environment.get(name, ""))
            if found and found not in values:
                source = plan.settings.suite.path if name in own else "environment"
                raise ConfigError(
                    f"{source}: {name}: found {found}, which changes what {case.precision} "
                    f"computes; allowed: {' or '.join(['unset', *values])}"
                )


def check_data(plan: Plan, catalog: Catalog) -> None:
    """Raise :class:`ConfigError` for cases that read files without a usable data folder: it is
    unnamed, missing, or lacks files that a training needs. A missing folder is accepted if a
    scheduler chooses the node."""
    settings, data = plan.settings, plan.settings.data
    cases = list(dict.fromkeys(run.case for run in plan.pending))
    if any(case.reads_images for case in cases):
        if data is None:
            raise ConfigError(
                f"{settings.suite.path}: found cases that read data, but no folder is named; "
                "allowed: with data=DIR, such as one that framebench make-data makes"
            )
        if not settings.cluster and not data.is_dir():
            raise ConfigError(
                f"{SOURCE}: data: found '{data}', which is not a folder; allowed: one with "
                "train/CLASS/NAME.JPEG and val/CLASS/NAME.JPEG, or with train.bin and val.bin"
            )
    for case in cases:
        model_config = catalog.models[case.model] if case.mode == CONVERGE else {}
        if model_config.get("reads_files") and estimates.training_folder(case, settings) is None:
            raise ConfigError(
                f"{settings.suite.path}: found {case.model}, which learns from files, but no "
                f"folder is named; allowed: with data=DIR, one with the files of "
                f"{model_config['task']}"
            )
    for count in estimates.count_samples(cases, settings, catalog).values():
        if isinstance(count, str):
            raise ConfigError(f"{SOURCE}: data: {count}")


def check_own_model(plan: Plan) -> None:
    """Raise :class:`ConfigError` if the environment of a user's own model lacks its library."""
    files = [entry.file for entry in plan.software.values() if entry.file]
    for own_model, file in itertools.product(plan.settings.own_models, files):
        library, framework = own_model.library, own_model.framework
        if library and not any(pin.startswith(f"{library}==") for pin in file.packages):
            raise ConfigError(
                f"{SOURCE}: model: found {own_model.source}, but {file.path} has no {library}; "
                f"allowed: {library} among the packages to add (packages: {framework}), a Python "
                f"that has it (interpreters: {framework}), or a suite whose variants have an "
                "environment file with it"
            )


def check_node_hours(plan: Plan, jobs: Iterable[Job]) -> None:
    """Raise :class:`ConfigError` if jobs may use more node hours than ``most_node_hours``."""
    cluster = plan.settings.cluster
    most = cluster.most_node_hours if cluster else None
    if most is not None and (hours := plan.node_hours(jobs)) > most:
        raise ConfigError(
            f"config: cluster.most_node_hours: found jobs that may take {hours:.2f} node hours "
            f"if each uses its whole time limit; allowed: at most {most:g}. Narrow the suite, or "
            "lower time_limit: snakemake plan shows the sum"
        )


def check_runs(plan: Plan) -> None:
    """Raise :class:`ConfigError` with the reasons if no case can be run, or none within the
    budget."""
    if plan.cases and plan.settings.budget and not plan.runs:
        raise ConfigError(
            f"time_budget: found {plan.settings.budget:g} s, which is too short for any run; "
            "allowed: time for a run, its verification and a page"
        )
    if plan.cases:
        return
    reasons = Counter(left_out.reason for left_out in plan.left_out).most_common()
    why = "; ".join(f"{reason} ({count} cases)" for reason, count in reasons)
    raise ConfigError(
        f"{plan.settings.suite.path}: found no case that can be run here, {len(plan.left_out)} are "
        f"left out: {why}; allowed: at least one that fits"
    )
