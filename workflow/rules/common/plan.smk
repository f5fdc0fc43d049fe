# Validation, and the helpers that keep the rules declarative.
import hashlib
import itertools
import os
import shlex
import shutil
import sys
import tempfile
import time
from pathlib import Path

from snakemake.exceptions import IncompleteCheckpointException

WORKFLOW = Path(workflow.current_basedir).parent.parent
PROJECT = WORKFLOW.parent
sys.path.insert(0, str(WORKFLOW))

from framebench import cli
from framebench.comparison import gate
from framebench.config import catalog, cluster
from framebench.config.settings import load_settings
from framebench.config.validation import ConfigError
from framebench.environments import software
from framebench.files import locks
from framebench.machine import local
from framebench.plan import (
    estimates,
    plan_text,
    planning,
    progress,
    side_by_side,
    targets,
)
from framebench.records import interruptions, record_sets, searches
from framebench.runs import allocations, certify, commands, partial, probes, slurm

STARTED = time.time()
FRAMEBENCH = [sys.executable, str(WORKFLOW / "framebench")]
METHODS = sorted(
    method.name.lower().replace("_", "-")
    for method in workflow.deployment_settings.deployment_method
)


def refuse(error):
    """End with one clear message: to an exception Snakemake would add ten lines of its own."""
    print(f"framebench: {error}", file=sys.stderr, flush=True)
    raise SystemExit(1)


def checked(check, *arguments):
    """A look at the configuration, which refuses what it finds wrong."""
    try:
        check(*arguments)
    except ConfigError as error:
        refuse(error)


def check_command_line(settings):
    """What the jobs of a cluster are given again."""
    entries = workflow.config_settings.config_args or ()
    for place in [*entries, str(PROJECT), str(settings.environments)]:
        targets.check_quoting("--config or a path", place)


def place(settings):
    """Where runs are measured: a node of the cluster, or this machine."""
    return settings.cluster.machine if settings.cluster else local.detect()


# While rules are read, Snakemake itself does not know its targets: these are looked for among the
# words of the command line.
MEASURE_NOTHING = {"plan", "report", "compare", "lint"}
START_NOTHING = {
    *("--report", "--summary", "--detailed-summary", "--lint", "--list", "--dag"),
    *("--rulegraph", "--filegraph", "--d3dag", "--unlock", "--help", "-h"),
}
WORDS = {word.partition("=")[0] for word in sys.argv[1:]}
# Whether this call may start jobs, and whether these may measure.
STARTS = (
    workflow.is_main_process
    and not workflow.output_settings.dryrun
    and not WORDS & START_NOTHING
)
MEASURES = STARTS and not WORDS & MEASURE_NOTHING
# Whether what runs would run in is of interest.
RUNS_PYTHON = (
    workflow.is_main_process
    and not WORDS & START_NOTHING
    and not WORDS & (MEASURE_NOTHING - {"plan"})
)
LOCK = None


def lock_results(results):
    """Only one workflow may measure into a results folder. Taken before records are read: of those
    that another call wrote after that, Snakemake would make room for its own. Returns why there is
    no lock, where nothing can be written at all and so nothing lost."""
    global LOCK
    another = "give another folder: --config results=DIR"
    measuring = "another Framebench is measuring into this folder"
    try:
        LOCK = locks.take(results / ".lock", another, measuring)
    except locks.Unwritable as error:
        return str(error)
    except locks.LockError as error:
        refuse(error)


def settle_queue(settings):
    """Before the plan is made, what a killed call has left in the queue is over: its records count,
    and nothing runs twice at the same time."""
    try:
        slurm.settle(
            settings.results, lambda text: print(text, file=sys.stderr, flush=True)
        )
    except slurm.SlurmError as error:
        refuse(f"SLURM does not answer: {error}")


def make_plan():
    """The checked configuration, expanded and compared with the records that are there."""
    try:
        known = catalog.load_catalog(PROJECT)
        settings = load_settings(config, known, METHODS)
        if settings.cluster and workflow.is_main_process:
            check_command_line(settings)
        unwritable = lock_results(settings.results) if MEASURES else None
        if LOCK and settings.cluster:
            settle_queue(settings)
        cached, expected = None, {}
        if workflow.remote_exec:
            expected = estimates.told(settings.results)
        elif (settings.results / "runs").is_dir():
            cached = record_sets.load(settings.results / "runs")
        plan = planning.make_plan(settings, known, place(settings), cached, expected)
        # On a cluster they may be on its nodes alone.
        if RUNS_PYTHON and not settings.cluster:
            needed = plan.software if "parity" in WORDS else plan.needed
            software.check_interpreters(needed, settings)
    except (ConfigError, record_sets.RecordsError) as error:
        refuse(error)
    if unwritable and (plan.pending or plan.unsearched):
        refuse(unwritable)
    return known, plan, cached


def check_that_it_may_measure():
    """Of a target that measures nothing the results were not locked before they were read."""
    if STARTS and not MEASURES:
        refuse(
            f"found among the targets: {', '.join(sorted(WORDS & MEASURE_NOTHING))}; allowed in "
            "a call that measures: other targets"
        )


CATALOG, PLAN, CACHED = make_plan()
POSSIBLE = {run.name: run for run in [*PLAN.pending, *PLAN.reserve]}
SEARCHES = {search.name: search for search in PLAN.unsearched}
PROGRESS = progress.Progress(PLAN, measures=not workflow.output_settings.dryrun)
ENVIRONMENTS = str(PLAN.settings.environments)
RESULTS = str(PLAN.settings.results)
# Said here, because where nothing is to be done no handler is called.
for line in plan_text.left_as_they_are(PLAN) if MEASURES else ():
    print(line, file=sys.stderr, flush=True)


def results_folder(wildcards):
    return RESULTS


def measured_records(wildcards):
    return f"{RESULTS}/runs"
