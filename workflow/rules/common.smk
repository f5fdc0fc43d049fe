# Validation, and the helpers that keep the rules declarative.
import fcntl
import shlex
import sys
import time
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.logging import logger

WORKFLOW = Path(workflow.current_basedir).parent
PROJECT = WORKFLOW.parent
sys.path.insert(0, str(WORKFLOW))

from framebench import catalog, config as settings_of, machine, plan as planning, records
from framebench.validation import ConfigError

PYTHON = sys.executable
FRAMEBENCH = str(WORKFLOW / "framebench")
STARTED = time.time()


def make_plan():
    """The checked configuration, expanded and compared with the records that are there."""
    try:
        known = catalog.load_catalog(PROJECT)
        settings = settings_of.load_settings(config, known)
        measured = settings.results / "runs"
        cached = records.load(measured) if measured.is_dir() else None
        plan = planning.make_plan(settings, known, machine.detect(), cached)
    except (ConfigError, records.RecordsError) as error:
        raise WorkflowError(str(error)) from None
    return known, plan, cached


CATALOG, PLAN, CACHED = make_plan()
RESULTS = str(PLAN.settings.results)
FINGERPRINT = Path(RESULTS, "tables", "fingerprint.txt")
SUMMARY = Path(RESULTS, "logs", "tables.log")
PENDING = {run.name: (position, run) for position, run in enumerate(PLAN.pending)}
CONDA = any(method.name == "CONDA" for method in workflow.deployment_settings.deployment_method)
PROGRESS = planning.Progress(PLAN)


def drop_stale_fingerprint():
    """Tables of other records than those that are there now lose the file that vouches for them;
    it is an output of their rule, so they are made again."""
    if FINGERPRINT.exists() and FINGERPRINT.read_text().strip() != records.fingerprint(CACHED):
        FINGERPRINT.unlink()


def measures():
    """Whether a benchmark is among the jobs to run."""
    return any(job.rule.name == "benchmark" for job in workflow.dag.needrun_jobs())


def environment_file(framework):
    return PLAN.environments[framework].path


def environment_folder(framework):
    """Named after the content of its file: another pin is another environment."""
    file = environment_file(framework)
    return f".venvs/{file.stem}-{planning.matrix.environment_digest(file)}"


def lock_results():
    """Only one workflow may measure into a results folder. The lock goes with the process, however
    that ends, so that nothing has to be unlocked after a kill."""
    global LOCK
    path = Path(RESULTS, ".lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        LOCK = path.open("a")
    except OSError as error:
        raise WorkflowError(
            f"{RESULTS}: cannot be written ({error.strerror}). Make it writable, or give another "
            "folder: --config results=DIR"
        )
    try:
        fcntl.flock(LOCK, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise WorkflowError(
            f"{RESULTS}: another Framebench is measuring into this folder. Wait until it ends, or "
            "give another folder: --config results=DIR"
        )


if workflow.is_main_process and not workflow.dryrun:
    drop_stale_fingerprint()


onstart:
    if measures():
        lock_results()


onsuccess:
    if SUMMARY.exists() and SUMMARY.stat().st_mtime >= STARTED:
        print(SUMMARY.read_text(), file=sys.stderr)
