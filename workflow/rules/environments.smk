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
    priority: driver.provisioning.priority
    handover: True
    threads: driver.provisioning.threads
    params:
        framebench=driver.provisioning.framebench,
        file=driver.provisioning.file,
        marker=driver.provisioning.marker,
        hashing=driver.provisioning.hashing,
    message:
        "Building the environment {wildcards.environment} from {params.file}"
    # exec: it is then a child of Snakemake itself and ends with it.
    shell:
        "FRAMEBENCH_DIE_WITH_PARENT=$PPID exec {params.framebench:q} environment"
        " --file {params.file:q} --marker {params.marker:q} --log {log:q} {params.hashing}"
