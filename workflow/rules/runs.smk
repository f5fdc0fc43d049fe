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
        command=run_command,
        progress=PROGRESS,
    message:
        "{params.progress:{wildcards.framework}/{wildcards.model}/{wildcards.case}/{wildcards.run}}"
    # exec: the harness is then a child of Snakemake itself and ends with it.
    shell:
        "FRAMEBENCH_DIE_WITH_PARENT=$PPID exec {params.command} --output {output:q} --log {log:q}"


# The largest batch per device of a case: runs with few steps, one after the other.
rule largest_batch:
    input:
        ancient(run_environment),
    output:
        LARGEST_BATCH,
    log:
        f"{RESULTS}/logs/{searches.FOLDER}/{{framework}}/{{model}}/{{search}}.log",
    wildcard_constraints:
        search="[^/]+",
    # Before all runs, so that those with the largest batches are interleaved with the others.
    priority: PLAN.places + 1
    conda:
        run_conda
    container:
        run_container
    threads: ALL_CORES
    resources:
        **RESOURCES,
    params:
        search=search_command,
        tried=tried_command,
        progress=search_progress,
    message:
        "{params.progress}"
    shell:
        "FRAMEBENCH_DIE_WITH_PARENT=$PPID exec {params.search} --output {output:q} --log {log:q}"
        " -- {params.tried}"


# Looks at what is there when a round is done: batches that were found, and the intervals of the
# repeats; that decides the next round.
checkpoint round:
    input:
        round_records,
    output:
        touch(f"{RESULTS}/logs/rounds/{{state}}-{{number}}"),
    wildcard_constraints:
        state="[0-9a-f]{12}",
        number="[0-9]+",
    # A look costs nothing, and what it asks for may come before what else is to do.
    priority: PLAN.places + 1
    message:
        "Round {wildcards.number}: what is to be measured next?"
