rule plan:
    """Print the runs that are missing and their expected time; measure nothing."""
    handover: True
    # Otherwise the rule requests all resources of the call, which on a cluster have no number.
    resources:
        runtime=5,
    params:
        text=driver.plan_text,
    message:
        "Plan of the suite"
    shell:
        "printf '%s\\n' {params.text:q}"


rule benchmark:
    """Measure one repeat of one case in processes of its own; writes one record."""
    input:
        ancient(lookups.before),
    output:
        "<results>/runs/{framework}/{model}/{case}/r{repeat}.json",
    log:
        "<results>/logs/{framework}/{model}/{case}/r{repeat}.log",
    priority: lookups.priority
    conda:
        lookups.conda
    container:
        lookups.container
    # All cores, so that no other job runs at the same time, or a share of them where that is allowed.
    threads: lookups.threads
    resources:
        **lookups.resources,
    params:
        job=lookups.texts,
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


use rule benchmark as peak_flops with:
    """Measure the peak FLOPS of a device: large matmuls in one framework and precision."""
    output:
        "<results>/peak_flops/{framework}/{peak_flops}.json",
    log:
        "<results>/logs/peak_flops/{framework}/{peak_flops}.log",


checkpoint round:
    """Decide the next runs from the batches found and the intervals of the repeats."""
    input:
        records_before_round,
    output:
        "<results>/logs/rounds/{number}.txt",
    log:
        "<results>/logs/rounds/{number}.log",
    wildcard_constraints:
        number="[0-9]+",
    # Deciding takes little time, and the runs that it adds may precede other jobs.
    priority: lookups.first
    localrule: True
    conda:
        "../envs/driver.yaml"
    params:
        page=page_before_round,
    message:
        "Round {wildcards.number}: what is to be measured next?"
    shell:
        "{params.page} > {output:q} 2> {log:q} || {{ cat {log:q} >&2; exit 1; }}"


rule runs:
    """Write a row per run of all records, and bring the list of the files up to date."""
    input:
        records_of_call,
        checks_of_call,
        # Existing records, verifications, searches, interruptions: all by one list.
        list_of_files,
    output:
        "<results>/runs.csv",
    log:
        "<results>/logs/tables/runs.log",
    localrule: True
    conda:
        "../envs/driver.yaml"
    params:
        framebench=lookups.driver,
        records=records_folder_of_call,
        results=results_folder_of_call,
    message:
        "Reading {params.records}"
    shell:
        "{params.framebench:q} runs --records {params.records:q} --results {params.results:q}"
        " 2> {log:q} || {{ cat {log:q} >&2; exit 1; }}"
