use rule benchmark as peak_flops with:
    """Measure the peak FLOPS of a device: large matmuls in one framework and precision."""
    output:
        driver.jobs.records["peak_flops"],
    log:
        driver.jobs.logs["peak_flops"],
