# A run: one repeat of one case in a process group of its own; it leaves one record.
rule benchmark:
    input:
        ancient(run_environment),
    output:
        RECORD,
    log:
        RUN_LOG,
    priority: run_priority
    conda:
        run_conda
    # All cores: no other job of the workflow runs beside a benchmark.
    threads: workflow.cores
    params:
        attempts=run_attempts,
        python=run_python,
        origin=run_origin,
        arguments=run_arguments,
        progress=PROGRESS,
    message:
        "{params.progress:{wildcards.framework}/{wildcards.model}/{wildcards.case}/{wildcards.run}}"
    # exec: the harness is then a child of Snakemake itself and ends with it.
    shell:
        "FRAMEBENCH_DIE_WITH_PARENT=1 exec {params.attempts:q} {params.python:q} scripts/harness"
        " {params.arguments:q} {params.origin} --output {output:q} --log {log:q}"


# Looks at the intervals when a round of repeats is done; what it finds decides the next round.
checkpoint round:
    input:
        round_records,
    output:
        touch(f"{RESULTS}/logs/rounds/{{state}}-{{number}}"),
    wildcard_constraints:
        state="[0-9a-f]{12}",
        number="[0-9]+",
    message:
        "Round {wildcards.number}: are the intervals narrow enough?"
