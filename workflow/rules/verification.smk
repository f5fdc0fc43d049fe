rule reference:
    """Compute outputs, losses, gradients and updates of a model in float64 with NumPy."""
    output:
        directory("<results>/reference/{reference}-{digest}"),
    log:
        "<results>/logs/reference/{reference}-{digest}.log",
    wildcard_constraints:
        digest="[0-9a-f]{8}",
    # Before environments: the run that comes before all others waits for its reference.
    priority: driver.jobs.first + 3
    conda:
        "../envs/driver.yaml"
    threads: driver.resources.all_cores
    resources:
        **driver.resources.asked,
    params:
        python=driver.provisioning.python,
        script=driver.verifications.script,
        arguments=driver.verifications.reference_arguments,
    message:
        "Computing the reference of {wildcards.reference} in float64"
    shell:
        "{params.python:q} -I {params.script:q} {params.arguments:q} --output {output:q}"
        " > {log:q} 2>&1 || {{ cat {log:q} >&2; exit 1; }}"


use rule benchmark as verify with:
    """Verify the computation of one framework against the float64 reference."""
    input:
        ancient(driver.jobs.before),
        reference=ancient(driver.verifications.reference),
    output:
        "<results>/verification/{framework}/{reference}/{verification}.json",
    log:
        "<results>/logs/verification/{framework}/{reference}/{verification}.log",


use rule benchmark as checks with:
    """Make checks of one framework in one process; each leaves a record of its own."""
    input:
        ancient(driver.jobs.before),
        reference=ancient(driver.verifications.reference),
    output:
        touch("<results>/logs/checks/{framework}/{checks}.done"),
    log:
        "<results>/logs/checks/{framework}/{checks}.log",


rule verification:
    """Verify full-size models, then update tables and report."""
    input:
        driver.verifications.all,
    handover: True
    conda:
        "../envs/driver.yaml"
    params:
        framebench=driver.provisioning.driver,
        records=driver.tables.records,
        results=driver.tables.results,
        status=driver.tables.status,
    message:
        "Verification, tables and report"
    shell:
        "FRAMEBENCH_STATUS_FILE={params.status:q} exec"
        " {params.framebench:q} verification --records {params.records:q} --results {params.results:q}"
