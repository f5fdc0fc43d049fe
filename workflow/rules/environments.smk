# One environment per framework and accelerator, from the file that --sdm conda would use too, for
# all nodes. With node_local it is part of the runs. The output only says that this call has seen to
# it: Snakemake makes room for an output, and the environment itself may be in use elsewhere.
rule environment:
    output:
        touch(driver.provisioning.built_marker),
    log:
        driver.provisioning.log,
    wildcard_constraints:
        name="[A-Za-z0-9_.-]+",
        digest="[0-9a-f]{8}",
    # Before all runs: those of a framework whose environment comes later would not be interleaved.
    priority: driver.runs.first + 1
    handover: True
    params:
        framebench=driver.provisioning.framebench,
        file=driver.provisioning.file,
        marker=driver.provisioning.marker,
        hashing=driver.provisioning.hashing,
        trying=driver.provisioning.trying,
    message:
        "Building the environment {wildcards.name} from {params.file}"
    # exec: it is then a child of Snakemake itself and ends with it.
    shell:
        "FRAMEBENCH_DIE_WITH_PARENT=$PPID exec {params.framebench:q} environment"
        " --file {params.file:q} --marker {params.marker:q} --log {log:q} {params.hashing}"
        " {params.trying:q}"


# Those that no environment file makes any more. Nothing is measured.
rule clean_environments:
    handover: True
    params:
        framebench=driver.provisioning.framebench,
        leftovers=driver.provisioning.leftovers,
        status=driver.tables.status,
    message:
        "Removing environments that no file makes any more"
    shell:
        "FRAMEBENCH_STATUS_FILE={params.status:q} exec"
        " {params.framebench:q} clean-environments {params.leftovers:q}"
