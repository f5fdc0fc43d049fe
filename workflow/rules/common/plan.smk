# Validation, and the helpers that keep the rules declarative.
import fcntl
import hashlib
import itertools
import os
import shlex
import shutil
import sys
import time
from pathlib import Path

from snakemake.exceptions import IncompleteCheckpointException, WorkflowError

WORKFLOW = Path(workflow.current_basedir).parent.parent
PROJECT = WORKFLOW.parent
sys.path.insert(0, str(WORKFLOW))

from framebench import (
    catalog,
    certify,
    cli,
    cluster,
    commands,
    environments,
    estimates,
    interruptions,
    machine,
    plan as planning,
    plan_text,
    probes,
    progress,
    records,
    searches,
    side_by_side,
    slurm,
)
from framebench.config import load_settings
from framebench.validation import ConfigError

STARTED = time.time()
FRAMEBENCH = [sys.executable, str(WORKFLOW / "framebench")]
METHODS = sorted(
    method.name.lower().replace("_", "-")
    for method in workflow.deployment_settings.deployment_method
)


def place(settings):
    """Where runs are measured: a node of the cluster, or this machine."""
    return settings.cluster.machine if settings.cluster else machine.detect()


MEASURE_NOTHING = {
    *("plan", "report", "compare", "lint"),
    *("--report", "--summary", "--detailed-summary", "--lint", "--list", "--dag"),
    *("--rulegraph", "--filegraph", "--d3dag", "--unlock", "--help", "-h"),
}


def settle_queue(settings):
    """Before the plan is made, what a killed call has left in the queue is over: its records count,
    and nothing runs twice at the same time."""
    # While rules are read, Snakemake itself does not know its targets.
    idle = set(sys.argv) & MEASURE_NOTHING
    dryrun = workflow.output_settings.dryrun
    if idle or dryrun or not (settings.cluster and workflow.is_main_process):
        return
    lock_results(settings.results)
    try:
        slurm.settle(
            settings.results, lambda text: print(text, file=sys.stderr, flush=True)
        )
    except slurm.SlurmError as error:
        raise WorkflowError(f"SLURM does not answer: {error}")


def make_plan():
    """The checked configuration, expanded and compared with the records that are there."""
    try:
        known = catalog.load_catalog(PROJECT)
        settings = load_settings(config, known, METHODS)
        settle_queue(settings)
        cached, expected = None, {}
        if workflow.remote_exec:
            expected = estimates.told(settings.results)
        elif (settings.results / "runs").is_dir():
            cached = records.load(settings.results / "runs")
        plan = planning.make_plan(settings, known, place(settings), cached, expected)
    except (ConfigError, records.RecordsError) as error:
        raise WorkflowError(str(error)) from None
    return known, plan, cached


LOCK = None


def lock_results(results):
    """Only one workflow may measure into a results folder. The lock goes with the process, however
    that ends, so that nothing has to be unlocked after a kill."""
    global LOCK
    if LOCK is not None:
        return
    another = "give another folder: --config results=DIR"
    try:
        results.mkdir(parents=True, exist_ok=True)
        LOCK = (results / ".lock").open("a")
    except OSError as error:
        raise WorkflowError(
            f"{results}: cannot be written ({error.strerror}). Make it writable, or {another}"
        )
    try:
        fcntl.flock(LOCK, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise WorkflowError(
            f"{results}: another Framebench is measuring into this folder. Wait until it ends, or "
            + another
        )


CATALOG, PLAN, CACHED = make_plan()
POSSIBLE = {run.name: run for run in [*PLAN.pending, *PLAN.reserve]}
SEARCHES = {search.name: search for search in PLAN.unsearched}
PROGRESS = progress.Progress(PLAN, measures=not workflow.output_settings.dryrun)
ENVIRONMENTS = str(PLAN.settings.environments)
RESULTS = str(PLAN.settings.results)


def results_folder(wildcards):
    return RESULTS


def measured_records(wildcards):
    return f"{RESULTS}/runs"
