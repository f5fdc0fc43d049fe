RECORD = f"{RESULTS}/runs/{{framework}}/{{model}}/{{case}}/{{run}}.json"
RUN_LOG = f"{RESULTS}/logs/{{framework}}/{{model}}/{{case}}/{{run}}.log"
PENDING_RECORDS = [f"{RESULTS}/runs/{run.name}.json" for run in PLAN.pending]


def run_name(wildcards):
    return f"{wildcards.framework}/{wildcards.model}/{wildcards.case}/{wildcards.run}"


def run_priority(wildcards):
    """Rounds in order: the earlier in the plan, the higher."""
    return PLAN.places - POSSIBLE[run_name(wildcards)].place


def run_arguments(wildcards):
    return commands.arguments(PLAN, POSSIBLE[run_name(wildcards)])


def run_cores(wildcards):
    return cores_for(POSSIBLE[run_name(wildcards)].case.devices_per_node)


# A run: one repeat of one case in a process group of its own; it leaves one record.
rule benchmark:
    input:
        ancient(run_environment),
    output:
        RECORD,
    log:
        RUN_LOG,
    priority: run_priority
    group:
        allocation
    conda:
        run_conda
    container:
        run_container
    # All cores, so that no other job runs beside it, or a share of them where that is allowed.
    threads: run_cores
    resources:
        **RESOURCES,
    params:
        preparation=run_preparation,
        attempts=run_attempts,
        python=run_python,
        origin=run_origin,
        arguments=run_arguments,
        progress=PROGRESS,
    message:
        "{params.progress:{wildcards.framework}/{wildcards.model}/{wildcards.case}/{wildcards.run}}"
    # exec: the harness is then a child of Snakemake itself and ends with it.
    shell:
        "FRAMEBENCH_DIE_WITH_PARENT=1 exec {params.preparation:q} {params.attempts:q}"
        " {params.python:q} scripts/harness"
        " {params.arguments:q} {params.origin} --output {output:q} --log {log:q}"
