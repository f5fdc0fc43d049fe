rule environment:
    """Build the environment of a framework from envs/NAME.yaml, for all nodes."""

    # A marker of this call: Snakemake removes outputs before a job, and an environment may be in use.
    output:
        touch("<results>/logs/environments/{environment}-{digest}"),
    log:
        "<results>/logs/environments/{environment}-{digest}.log",
    wildcard_constraints:
        environment="[A-Za-z0-9_.-]+",
        digest="[0-9a-f]{8}",
    priority: lookups.priority
    localrule: True
    conda:
        "../envs/driver.yaml"
    threads: lookups.cores_of_environment
    params:
        job=lookups.texts,
    message:
        "Building the environment {wildcards.environment}"
    # exec: it is then a child of Snakemake itself and ends with it.
    shell:
        "FRAMEBENCH_DIE_WITH_PARENT=$PPID exec {params.job.command} > {log:q} 2>&1"
