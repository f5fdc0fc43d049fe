# What is measured: runs, searches for the largest batch, and the rounds that decide what is next.
RECORD = f"{RESULTS}/runs/{{framework}}/{{model}}/{{case}}/{{run}}.json"
RUN_LOG = f"{RESULTS}/logs/{{framework}}/{{model}}/{{case}}/{{run}}.log"
PENDING_RECORDS = [f"{RESULTS}/runs/{run.name}.json" for run in PLAN.pending]


def run_name(wildcards):
    return f"{wildcards.framework}/{wildcards.model}/{wildcards.case}/{wildcards.run}"


def run_priority(wildcards):
    """Rounds in order: the earlier in the plan, the higher."""
    return PLAN.places - POSSIBLE[run_name(wildcards)].place


def run_command(wildcards):
    arguments = commands.arguments(PLAN, POSSIBLE[run_name(wildcards)])
    attempts = commands.attempts(PLAN, run_software(wildcards), FRAMEBENCH)
    return harness_command(wildcards, arguments, [*preparation(wildcards), *attempts])


def run_cores(wildcards):
    return cores_for(POSSIBLE[run_name(wildcards)].case.devices_per_node)


LARGEST_BATCH = f"{RESULTS}/{searches.FOLDER}/{{framework}}/{{model}}/{{search}}.json"
SEARCH_RESULTS = [f"{RESULTS}/{searches.FOLDER}/{name}.json" for name in SEARCHES]


def search_name(wildcards):
    return f"{wildcards.framework}/{wildcards.model}/{wildcards.search}"


def search_command(wildcards):
    framebench = commands.beside(PLAN, run_software(wildcards), FRAMEBENCH)
    words = [*framebench, "largest-batch", *commands.search_bounds(PLAN)]
    return shlex.join([*preparation(wildcards), *words])


def tried_command(wildcards):
    search = SEARCHES[search_name(wildcards)]
    return harness_command(wildcards, commands.search_arguments(PLAN, search))


def search_progress(wildcards):
    name = search_name(wildcards)
    number = list(SEARCHES).index(name) + 1
    return f"[{number}/{len(SEARCHES)}] largest batch of {SEARCHES[name].case}"


# The rounds of another state of the records are not these.
STATE = hashlib.sha256(
    repr(
        [(run.name, run.status) for run in [*PLAN.runs, *PLAN.reserve]] + list(SEARCHES)
    ).encode()
).hexdigest()[:12]
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
    if CLUSTER:
        estimates.tell(PLAN.settings.results, PLAN.expected)
    return runs


def all_records(wildcards):
    """All that is to be measured: what the plan asks for, with the largest batches where these are
    known, then round after round while a case of ``repeats: auto`` has too wide an interval.
    """
    checked(targets.check_measurement, PLAN, "a target that measures")
    checked(targets.check_runs, PLAN)
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
