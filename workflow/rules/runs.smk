rule benchmark:
    """Measure one repeat of one case in processes of its own; writes one record."""
    input:
        ancient(driver.jobs.before),
    output:
        "<results>/runs/{framework}/{model}/{case}/r{repeat}.json",
    log:
        "<results>/logs/{framework}/{model}/{case}/r{repeat}.log",
    priority: driver.jobs.priority
    group:
        driver.resources.allocation
    conda:
        driver.provisioning.conda
    container:
        driver.provisioning.container
    # All cores, so that no other job runs at the same time, or a share of them where that is allowed.
    threads: driver.resources.threads
    resources:
        **driver.resources.asked,
    params:
        job=driver.jobs.texts,
    message:
        "{params.job.label}"
    # exec: the harness is then a child of Snakemake itself and ends with it.
    shell:
        "FRAMEBENCH_DIE_WITH_PARENT=$PPID exec {params.job.command} --output {output:q} --log {log:q}"


use rule benchmark as search_batch with:
    """Search the largest batch per device that fits: short runs, one after the other."""
    output:
        "<results>/largest_batch/{framework}/{model}/{case}.json",
    log:
        "<results>/logs/largest_batch/{framework}/{model}/{case}.log",
    wildcard_constraints:
        case="[^/]+",


checkpoint round:
    """Decide the next runs from the batches found and the intervals of the repeats."""
    input:
        driver.rounds.before,
    output:
        touch("<results>/logs/rounds/{state}-{number}"),
    log:
        "<results>/logs/rounds/{state}-{number}.log",
    wildcard_constraints:
        state="[0-9a-f]{12}",
        number="[0-9]+",
    # A look costs little, and what it asks for may come before what else is to do.
    priority: driver.jobs.first
    localrule: True
    conda:
        "../envs/driver.yaml"
    params:
        page=driver.rounds.page,
    message:
        "Round {wildcards.number}: what is to be measured next?"
    shell:
        "{params.page} > {log:q}"
