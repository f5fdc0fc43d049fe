# Before the first job and behind the last.
def measures():
    """Whether a job that must have the machine for itself is among those to run."""
    alone = ("benchmark", "comparison", "largest_batch", "probe")
    return any(job.rule.name in alone for job in workflow.dag.needrun_jobs())


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
    """The repeat that a benchmark job is for, the first of several that share one; None of other
    jobs."""
    if job.is_group():
        return min((round_of(one) for one in job), default=None)
    if job.rule.name != "benchmark":
        return None
    return POSSIBLE[run_name(job.wildcards)].repeat


def start_round_by_round():
    """Of several runs that wait Snakemake starts the first that fits, whatever waits before it."""
    select = workflow.scheduler._job_selector

    def selected(waiting, *others):
        return select(side_by_side.of_first_round(waiting, round_of), *others)

    workflow.scheduler._job_selector = selected


VERDICT = None


def await_verdict():
    """Where the job of ``compare`` leaves its exit status: as a job that fails it would be buried
    under Snakemake's own report, and Snakemake would end with 1 whatever it is."""
    global VERDICT
    if any(job.rule.name == "compare" for job in workflow.dag.needrun_jobs()):
        VERDICT = tempfile.NamedTemporaryFile("r", prefix="framebench-")
        os.environ[gate.STATUS_FILE] = VERDICT.name


def end_with_verdict():
    if VERDICT and (status := VERDICT.read()):
        print(f"compare: {gate.NAMES[int(status)]} ({status})", file=sys.stderr)
        raise SystemExit(int(status))


def refuse_arrays():
    """Of an array of jobs, each measures what the first is for."""
    arrays = getattr(workflow.executor_settings, "array_jobs", None)
    if arrays:
        refuse(
            f"--slurm-array-jobs: found {arrays!r}; allowed: nothing, because all jobs of an array "
            "would measure the same run. For short runs: runs_per_allocation in "
            "profiles/slurm/cluster.yaml"
        )


def report_what_there_is(logged):
    kept = {job.rule.name for job in workflow.dag.needrun_jobs()}
    failed = {
        one.rule.name for job in workflow.scheduler.failed for one in jobs_in(job)
    }
    partial.make(FRAMEBENCH, kept - failed, logged, PLAN.settings.results)


def jobs_in(job):
    return job if job.is_group() else [job]


onstart:
    await_verdict()
    if measures():
        if CLUSTER and workflow.local_exec:
            refuse(
                "config: cluster: found, but jobs would run on this machine; allowed with "
                "--workflow-profile profiles/slurm"
            )
        if CLUSTER:
            refuse_arrays()
            warn_of_resources_without_effect()
            slurm.note(text_of(log), PLAN.settings.results)
            estimates.tell(PLAN.settings.results, PLAN.expected)
        for line in plan_text.of_other_machines(PLAN):
            print(line, file=sys.stderr)
        rest_while_measuring()
        if PLAN.room or CLUSTER:
            start_round_by_round()


onsuccess:
    if SUMMARY.exists() and SUMMARY.stat().st_mtime >= STARTED:
        print(SUMMARY.read_text(), file=sys.stderr)
    end_with_verdict()


onerror:
    if not workflow.output_settings.dryrun:
        logged = text_of(log)
        states = slurm.states if CLUSTER else None
        try:
            interruptions.note(logged, PLAN.settings.results, states)
        except OSError as error:
            print(f"{error.filename}: {error.strerror}", file=sys.stderr)
        report_what_there_is(logged)
