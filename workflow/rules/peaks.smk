rule peak_flops:
    """Measure the peak FLOPS of a device: large matmuls in one framework and precision."""
    input:
        ancient(driver.provisioning.environment),
    output:
        driver.peaks.record,
    log:
        driver.peaks.log,
    conda:
        driver.provisioning.conda
    container:
        driver.provisioning.container
    threads: driver.resources.all_cores
    resources:
        **driver.resources.asked,
    params:
        command=driver.peaks.command,
        label=driver.peaks.label,
    message:
        "{params.label}"
    shell:
        "FRAMEBENCH_DIE_WITH_PARENT=$PPID exec {params.command} --output {output:q} --log {log:q}"
