# Validation, and the helpers that keep the rules declarative.
import fcntl
import hashlib
import itertools
import os
import shutil
import sys
import time
from pathlib import Path

from snakemake.exceptions import IncompleteCheckpointException, WorkflowError

WORKFLOW = Path(workflow.current_basedir).parent
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
        measured = settings.results / "runs"
        cached = records.load(measured) if measured.is_dir() else None
        plan = planning.make_plan(settings, known, place(settings), cached)
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
# The rounds of another state of the records are not these.
STATE = hashlib.sha256(
    repr(
        [(run.name, run.status) for run in [*PLAN.runs, *PLAN.reserve]] + list(SEARCHES)
    ).encode()
).hexdigest()[:12]
PROGRESS = progress.Progress(PLAN, measures=not workflow.output_settings.dryrun)
ENVIRONMENTS = str(PLAN.settings.environments)

CLUSTER = PLAN.settings.cluster
# All that a node has: no other job of the workflow runs beside one that measures.
if CLUSTER:
    # What one job takes at most; of several that share one, the runs follow each other.
    workflow.global_resources["_cores"] = CLUSTER.cores_per_node
CORES_HERE = len(os.sched_getaffinity(0)) if CLUSTER else workflow.cores
ALL_CORES = CLUSTER.cores_per_node if CLUSTER else CORES_HERE


def cores_for(devices):
    """Of those that Snakemake may use: all, unless runs go side by side."""
    return PLAN.room.threads(devices, workflow.cores) if PLAN.room else ALL_CORES


RESULTS = str(PLAN.settings.results)
RECORD = f"{RESULTS}/runs/{{framework}}/{{model}}/{{case}}/{{run}}.json"
RUN_LOG = f"{RESULTS}/logs/{{framework}}/{{model}}/{{case}}/{{run}}.log"
LARGEST_BATCH = f"{RESULTS}/{searches.FOLDER}/{{framework}}/{{model}}/{{search}}.json"
SEARCH_RESULTS = [f"{RESULTS}/{searches.FOLDER}/{name}.json" for name in SEARCHES]
PENDING_RECORDS = [f"{RESULTS}/runs/{run.name}.json" for run in PLAN.pending]
COMPARISONS = certify.names(PLAN, CATALOG, certify.comparisons(PLAN, CATALOG))
COMPARISON_RECORDS = [f"{RESULTS}/parity/{name}.json" for name in COMPARISONS]
PROBES = probes.names(PLAN)
PROBE_RECORDS = [f"{RESULTS}/probes/{name}.json" for name in PROBES]
TABLES = [
    f"{RESULTS}/tables/{table}.csv"
    for table in (
        "summary",
        "weak_scaling",
        "strong_scaling",
        "amp_speedup",
        "compiler_speedup",
        "latency",
        "efficiency",
        "split",
    )
]
REPORT = f"{RESULTS}/report.html"
FINGERPRINT = Path(RESULTS, "tables", "fingerprint.txt")
SUMMARY = Path(RESULTS, "logs", "tables.log")


def drop_stale_fingerprint():
    """Tables of other records than those that are there now lose the file that vouches for them;
    it is an output of their rule, so they are made again."""
    current = CACHED and cli.fingerprint(CACHED, Path(RESULTS, "runs"))
    if FINGERPRINT.exists() and FINGERPRINT.read_text().strip() != current:
        FINGERPRINT.unlink()


def measures():
    """Whether a job that must have the machine for itself is among those to run."""
    alone = ("benchmark", "comparison", "largest_batch", "probe")
    return any(job.rule.name in alone for job in workflow.dag.needrun_jobs())


def measured_shape(wildcards):
    """Nodes and devices per node of what a job measures, and for about how many seconds."""
    limit = PLAN.settings.time_limit
    if "run" in wildcards.keys():
        run = POSSIBLE[run_name(wildcards)]
        return run.case.nodes, run.case.devices_per_node, run.seconds
    if "search" in wildcards.keys():
        case = SEARCHES[search_name(wildcards)].case
        return case.nodes, case.devices_per_node, limit
    if "comparison" in wildcards.keys():
        return 1, compared(wildcards)[1].devices, limit
    return 1, 1, probes.SECONDS


def resource(name):
    """What a job that measures asks of the cluster."""

    def asked(wildcards):
        nodes, devices, seconds = measured_shape(wildcards)
        # The first job on each node builds the environment there.
        seconds += estimates.ENVIRONMENT_SECONDS * PLAN.settings.node_local
        cuda = PLAN.place.accelerator == "cuda"
        return CLUSTER.resources(nodes, devices, seconds, cuda)[name]

    return asked


RESOURCES = {name: resource(name) for name in cluster.RESOURCES} if CLUSTER else {}


ALLOCATIONS = {}
if CLUSTER and CLUSTER.runs_per_allocation > 1:
    ALLOCATIONS = cluster.allocations(PLAN, CLUSTER.runs_per_allocation)
    # By this name the profile says that unconnected jobs of a group belong together.
    workflow.parent_groupids.update(dict.fromkeys(ALLOCATIONS.values(), "allocation"))


def allocation(wildcards):
    return ALLOCATIONS.get(run_name(wildcards))


def environment_source(wildcards):
    wanted = f"{wildcards.name}-{wildcards.digest}"
    files = [software.file for software in PLAN.software.values() if software.file]
    return next(str(file.path) for file in files if file.name == wanted)


def results_folder(wildcards):
    return RESULTS


def measured_records(wildcards):
    return f"{RESULTS}/runs"


def given_records(wildcards):
    return str(PLAN.settings.records or measured_records(wildcards))


def compare_arguments(wildcards):
    settings = PLAN.settings
    if settings.base is None or settings.candidate is None:
        raise WorkflowError(
            "compare: needs two sets of records: --config base=PATH candidate=PATH"
        )
    arguments = ["--base", str(settings.base), "--candidate", str(settings.candidate)]
    return arguments + (
        ["--fail-on", str(settings.fail_on)] if settings.fail_on else []
    )


def lint_sources(wildcards):
    """What is given; by default what ships and what was measured."""
    if PLAN.settings.records:
        return [str(PLAN.settings.records)]
    found = [path for path in ("results/published",) if Path(path).is_dir()]
    if CACHED and (CACHED.runs or CACHED.problems):
        found.append(f"{RESULTS}/runs")
    if not found:
        raise WorkflowError(
            f"lint: {RESULTS}/runs holds no record; give --config records=PATH"
        )
    return found


FURTHER = {}


def round_records(wildcards):
    """What must be there before the n-th look: the searches for the largest batches before that
    number 0, the runs of the plan before number 1, after that what the look before asked for.
    """
    number = int(wildcards.number)
    if number == 0:
        return SEARCH_RESULTS
    planned = PENDING_RECORDS if number == 1 else []
    return planned + (further_records(number - 1) if number > 1 or SEARCHES else [])


def further_records(number):
    """What the n-th look asks for: number 0 for the runs with the largest batches, the others for
    repeats, by the intervals. Looked at once: later there is more."""
    checkpoints.round.get(state=STATE, number=number)
    if number not in FURTHER:
        runs = planning.further(PLAN) if number else runs_with_largest()
        FURTHER[number] = [f"{RESULTS}/runs/{run.name}.json" for run in runs]
    return FURTHER[number]


def runs_with_largest():
    """The runs of the cases whose batch was not known before; the plan has them from now on."""
    global PLAN
    before = {run.name for run in [*PLAN.runs, *PLAN.reserve]}
    PLAN = planning.with_found(PLAN, CATALOG, place(PLAN.settings))
    runs = [run for run in PLAN.pending if run.name not in before]
    reserve = [run for run in PLAN.reserve if run.name not in before]
    POSSIBLE.update((run.name, run) for run in [*runs, *reserve])
    PROGRESS.add(runs, reserve)
    return runs


def all_records(wildcards):
    """All that is to be measured: what the plan asks for, with the largest batches where these are
    known, then round after round while a case of ``repeats: auto`` has too wide an interval.
    """
    found = [*PENDING_RECORDS, *SEARCH_RESULTS]
    try:
        found += further_records(0) if SEARCHES else []
        # With nothing to measure, the plan has looked at all there is.
        rounds = itertools.count(1) if PLAN.reserve and PLAN.pending else ()
        for number in rounds:
            further = further_records(number)
            if not further:
                break
            found += further
    except IncompleteCheckpointException as waiting:
        # Asked for beside what is known already, which need not wait for it.
        found.append(waiting.targetfile)
    return found


def run_name(wildcards):
    return f"{wildcards.framework}/{wildcards.model}/{wildcards.case}/{wildcards.run}"


def run_priority(wildcards):
    """Rounds in order: the earlier in the plan, the higher."""
    return PLAN.places - POSSIBLE[run_name(wildcards)].place


def search_name(wildcards):
    return f"{wildcards.framework}/{wildcards.model}/{wildcards.search}"


def run_software(wildcards):
    """A comparison is of the usual software, a run or a search perhaps of a variant's."""
    if "run" in wildcards.keys():
        case = POSSIBLE[run_name(wildcards)].case
    elif "search" in wildcards.keys():
        case = SEARCHES[search_name(wildcards)].case
    else:
        return wildcards.framework
    return planning.software(case, PLAN.settings.suite)


def run_environment(wildcards):
    return commands.environment_marker(PLAN, run_software(wildcards))


def run_conda(wildcards):
    file = commands.conda_file(PLAN, run_software(wildcards))
    return None if file is None else str(file)


def container_image(wildcards):
    """Of a dry run without Apptainer none: Snakemake would ask for it, though it starts nothing."""
    if workflow.output_settings.dryrun and not any(
        shutil.which(tool) for tool in ("apptainer", "singularity")
    ):
        return None
    return commands.image(PLAN, run_software(wildcards))


# Asked for each job of the DAG, so not where there can be none.
run_container = container_image if METHODS == ["apptainer"] else None


def run_preparation(wildcards):
    nodes = measured_shape(wildcards)[0]
    return commands.preparation(PLAN, run_software(wildcards), FRAMEBENCH, nodes)


def run_framebench(wildcards):
    return commands.beside(PLAN, run_software(wildcards), FRAMEBENCH)


def run_python(wildcards):
    return commands.interpreter(PLAN, run_software(wildcards))


def run_origin(wildcards):
    return commands.origin(PLAN, CATALOG, run_software(wildcards))


def run_attempts(wildcards):
    return commands.attempts(PLAN, run_software(wildcards), FRAMEBENCH)


def run_arguments(wildcards):
    return commands.arguments(PLAN, POSSIBLE[run_name(wildcards)])


def run_cores(wildcards):
    return cores_for(POSSIBLE[run_name(wildcards)].case.devices_per_node)


def search_bounds(wildcards):
    return commands.search_bounds(PLAN)


def search_arguments(wildcards):
    return commands.search_arguments(PLAN, SEARCHES[search_name(wildcards)])


def search_progress(wildcards):
    name = search_name(wildcards)
    number = list(SEARCHES).index(name) + 1
    return f"[{number}/{len(SEARCHES)}] largest batch of {SEARCHES[name].case}"


def compared(wildcards):
    name = f"{wildcards.framework}/{wildcards.reference}/{wildcards.comparison}"
    return name, COMPARISONS[name]


def probe_of(wildcards):
    name = f"{wildcards.framework}/{wildcards.probe}"
    return name, PROBES[name]


def probe_arguments(wildcards):
    return probes.arguments(PLAN, probe_of(wildcards)[1])


def probe_progress(wildcards):
    name, one = probe_of(wildcards)
    return f"[{list(PROBES).index(name) + 1}/{len(PROBES)}] peak of the device: {one}"


def reference_arguments(wildcards):
    model, _, length = wildcards.reference.partition("-s")
    arguments = ["--model", f"scripts/models/{model}.json"]
    arguments += ["--sequence-length", length] if length else []
    return [*arguments, "--seed", str(PLAN.settings.seed)]


def reference_folder(wildcards):
    _, one = compared(wildcards)
    digest = certify.reference_digest(CATALOG, one.model, PLAN.settings.seed)
    return f"{RESULTS}/reference/{one.reference}-{digest}"


def comparison_arguments(wildcards, input):
    return certify.arguments(PLAN, compared(wildcards)[1], input.reference)


def comparison_cores(wildcards):
    return cores_for(compared(wildcards)[1].devices)


def comparison_priority(wildcards):
    return len(COMPARISONS) - list(COMPARISONS).index(compared(wildcards)[0])


def comparison_progress(wildcards):
    name, one = compared(wildcards)
    return f"[{list(COMPARISONS).index(name) + 1}/{len(COMPARISONS)}] compare {one}"


def prepare_containers():
    """Let them see the GPUs, and not where the host has Python packages: what an image itself says
    of PYTHONPATH counts."""
    settings = workflow.deployment_settings
    folder = str(Path(settings.apptainer_prefix or ".snakemake").absolute())
    names = [one.image.name for one in PLAN.software.values() if one.image]
    if any("://" in name for name in names) and len(folder.split()) > 1:
        raise WorkflowError(
            f"--apptainer-prefix: found {folder!r} for images that are pulled; allowed: a path "
            "without blanks, which Snakemake cannot take"
        )
    if (
        PLAN.place.accelerator == "cuda"
        and "--nv" not in settings.apptainer_args.split()
    ):
        settings.apptainer_args += " --nv"
    os.environ.pop("PYTHONPATH", None)


if METHODS == ["apptainer"]:
    prepare_containers()

if workflow.is_main_process and not workflow.output_settings.dryrun:
    drop_stale_fingerprint()


def rest_while_measuring():
    """By default Snakemake looks at every waiting job again once a second, in case its limit of
    submissions allows more of them: with 10,000 jobs, a whole core beside the benchmark.
    """
    if workflow.local_exec:
        workflow.scheduler.job_rate_limiter = None


def text_of(logs):
    """What Snakemake has logged by now."""
    return "".join(Path(path).read_text(errors="replace") for path in logs)


def round_of(job):
    """The repeat that a benchmark job is for; None of other jobs."""
    if job.rule.name != "benchmark":
        return None
    return POSSIBLE[run_name(job.wildcards)].repeat


def start_round_by_round():
    """Of several runs that wait Snakemake starts the first that fits, whatever waits before it."""
    select = workflow.scheduler._job_selector

    def selected(waiting, *others):
        return select(side_by_side.of_first_round(waiting, round_of), *others)

    workflow.scheduler._job_selector = selected


onstart:
    if measures():
        lock_results(PLAN.settings.results)
        if CLUSTER and workflow.local_exec:
            raise WorkflowError(
                "config: cluster: found, but jobs would run on this machine; allowed with "
                "--workflow-profile profiles/slurm"
            )
        if CLUSTER:
            slurm.note(text_of(log), PLAN.settings.results)
        rest_while_measuring()
        if PLAN.room:
            start_round_by_round()


onsuccess:
    if SUMMARY.exists() and SUMMARY.stat().st_mtime >= STARTED:
        print(SUMMARY.read_text(), file=sys.stderr)


onerror:
    if not workflow.output_settings.dryrun:
        interruptions.note(text_of(log), PLAN.settings.results)
