rule benchmark:
    """Measure one repeat of one case in processes of its own; writes one record."""
    input:
        ancient(driver.provisioning.environment),
    output:
        driver.runs.record,
    log:
        driver.runs.log,
    priority: driver.runs.priority
    group:
        driver.resources.allocation
    conda:
        driver.provisioning.conda
    container:
        driver.provisioning.container
    # All cores, so that no other job runs beside it, or a share of them where that is allowed.
    threads: driver.resources.of_run
    resources:
        **driver.resources.asked,
    params:
        command=driver.runs.command,
        label=driver.runs.label,
    message:
        "{params.label}"
    # exec: the harness is then a child of Snakemake itself and ends with it.
    shell:
        "FRAMEBENCH_DIE_WITH_PARENT=$PPID exec {params.command} --output {output:q} --log {log:q}"


rule search_batch:
    """Search the largest batch per device that fits: short runs, one after the other."""
    input:
        ancient(driver.provisioning.environment),
    output:
        driver.runs.largest_batch,
    log:
        driver.runs.search_log,
    wildcard_constraints:
        search="[^/]+",
    # Before all runs, so that those with the largest batches are interleaved with the others.
    priority: driver.runs.first
    conda:
        driver.provisioning.conda
    container:
        driver.provisioning.container
    threads: driver.resources.all_cores
    resources:
        **driver.resources.asked,
    params:
        command=driver.runs.search_command,
        label=driver.runs.search_label,
    message:
        "{params.label}"
    shell:
        "FRAMEBENCH_DIE_WITH_PARENT=$PPID exec {params.command} --output {output:q} --log {log:q}"


checkpoint round:
    """Decide the next runs from the batches found and the intervals of the repeats."""
    input:
        driver.runs.before_round,
    output:
        touch(driver.runs.round),
    wildcard_constraints:
        state="[0-9a-f]{12}",
        number="[0-9]+",
    # A look costs nothing, and what it asks for may come before what else is to do.
    priority: driver.runs.first
    message:
        "Round {wildcards.number}: what is to be measured next?"
