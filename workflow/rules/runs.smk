# A run: one repeat of one case in a process group of its own; it leaves one record.


def run_of(wildcards):
    return PENDING[f"{wildcards.framework}/{wildcards.model}/{wildcards.case}/{wildcards.run}"][1]


def run_priority(wildcards):
    """Rounds in order: the earlier in the plan, the higher."""
    name = f"{wildcards.framework}/{wildcards.model}/{wildcards.case}/{wildcards.run}"
    return len(PENDING) - PENDING[name][0] if name in PENDING else 0


def run_environment(wildcards):
    """The venv to wait for; nothing where conda or the user brings the interpreter."""
    if CONDA or wildcards.framework in PLAN.settings.interpreters:
        return []
    return f"{environment_folder(wildcards.framework)}/environment.json"


def run_conda(wildcards):
    if wildcards.framework in PLAN.settings.interpreters:
        return None
    return str(environment_file(wildcards.framework))


def run_python(wildcards):
    if wildcards.framework in PLAN.settings.interpreters:
        return PLAN.settings.interpreters[wildcards.framework]
    return "python" if CONDA else f"{environment_folder(wildcards.framework)}/bin/python"


def run_origin(wildcards):
    """Arguments that say which interpreter must be the one that runs, quoted for the shell."""
    framework = wildcards.framework
    if framework in PLAN.settings.interpreters:
        return "--way interpreter"
    pin = shlex.quote(PLAN.environments[framework].pin(CATALOG.frameworks[framework]["package"]))
    if CONDA:
        return f'--way conda --prefix "$CONDA_PREFIX" --pin {pin}'
    return f"--way venv --prefix {shlex.quote(environment_folder(framework))} --pin {pin}"


def run_arguments(wildcards):
    run = run_of(wildcards)
    case, suite, place = run.case, PLAN.settings.suite, PLAN.place
    arguments = {
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
        "warmup-steps": suite.warmup_steps,
        "timed-steps": suite.timed_steps,
        "time-limit": PLAN.settings.time_limit,
        "seed": PLAN.settings.seed,
        "repeat": run.repeat,
    }
    given = {key: value for key, value in arguments.items() if value is not None}
    return [word for key, value in given.items() for word in (f"--{key}", str(value))]


rule benchmark:
    input:
        ancient(run_environment),
    output:
        RESULTS + "/runs/{framework}/{model}/{case}/{run}.json",
    log:
        RESULTS + "/logs/{framework}/{model}/{case}/{run}.log",
    conda:
        run_conda
    params:
        python=run_python,
        origin=run_origin,
        arguments=run_arguments,
        progress=PROGRESS,
    # All cores: no other job of the workflow runs beside a benchmark.
    threads: workflow.cores
    priority: run_priority
    message:
        "{params.progress:{wildcards.framework}/{wildcards.model}/{wildcards.case}/{wildcards.run}}"
    # exec: the harness is then a child of Snakemake itself and ends with it.
    shell:
        "FRAMEBENCH_DIE_WITH_PARENT=1 exec {params.python:q} scripts/harness {params.arguments:q}"
        " {params.origin} --output {output:q} --log {log:q}"
