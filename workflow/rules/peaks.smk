use rule benchmark as peak_flops with:
    """Measure the peak FLOPS of a device: large matmuls in one framework and precision."""
    output:
        "<results>/peak_flops/{framework}/{peak_flops}.json",
    log:
        "<results>/logs/peak_flops/{framework}/{peak_flops}.log",
