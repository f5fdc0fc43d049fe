rule reference:
    """Compute outputs, losses, gradients and updates of a model in float64 with NumPy."""
    output:
        directory("<results>/reference/{reference}-{digest}"),
    log:
        "<results>/logs/reference/{reference}-{digest}.log",
    wildcard_constraints:
        digest="[0-9a-f]{8}",
    # Before environments: the run that comes before all others waits for its reference.
    priority: lookups.first + 3
    conda:
        "../envs/driver.yaml"
    threads: lookups.cores
    resources:
        **lookups.resources,
    params:
        python=lookups.python,
        arguments=lookups.reference_arguments,
    message:
        "Computing the reference of {wildcards.reference} in float64"
    shell:
        "{params.python:q} -I {params.arguments:q} --output {output:q}"
        " > {log:q} 2>&1 || {{ cat {log:q} >&2; exit 1; }}"


use rule benchmark as verify with:
    """Verify the computation of one framework against the float64 reference."""
    input:
        ancient(environment_of_job),
        reference=ancient(references_of_job),
    output:
        "<results>/verification/{framework}/{reference}/{verification}.json",
    log:
        "<results>/logs/verification/{framework}/{reference}/{verification}.log",


use rule benchmark as checks with:
    """Make checks of one framework in one process; each leaves a record of its own."""
    input:
        ancient(environment_of_job),
        reference=ancient(references_of_job),
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
