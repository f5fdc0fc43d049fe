rule reference:
    """Compute outputs, losses, gradients and updates of a model in float64 with NumPy."""
    output:
        directory("<results>/reference/{reference}-{digest}"),
    log:
        "<results>/logs/reference/{reference}-{digest}.log",
    wildcard_constraints:
        digest="[0-9a-f]{8}",
    priority: lookups.priority
    conda:
        "../envs/driver.yaml"
    threads: lookups.cores
    resources:
        **lookups.resources,
    params:
        job=lookups.texts,
    message:
        "Computing the reference of {wildcards.reference} in float64"
    shell:
        "{params.job.command} --output {output:q} > {log:q} 2>&1"
        " || {{ cat {log:q} >&2; exit 1; }}"


use rule benchmark as verify with:
    """Verify the computation of one framework against the float64 reference."""
    output:
        "<results>/verification/{framework}/{reference}/{verification}.json",
    log:
        "<results>/logs/verification/{framework}/{reference}/{verification}.log",


use rule benchmark as checks with:
    """Make checks of one framework in one process; each leaves a record of its own."""
    output:
        touch("<results>/logs/checks/{framework}/{checks}.done"),
    log:
        "<results>/logs/checks/{framework}/{checks}.log",


rule verification:
    """Verify full-size models, then update tables and report."""
    input:
        driver.full_verifications,
    handover: True
    conda:
        "../envs/driver.yaml"
    resources:
        runtime=60,
    params:
        framebench=lookups.driver,
        records=records_folder_of_call,
        results=results_folder_of_call,
    message:
        "Verification, tables and report"
    shell:
        "exec {params.framebench:q} verification --records {params.records:q}"
        " --results {params.results:q}"
