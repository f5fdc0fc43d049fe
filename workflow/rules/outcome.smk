# The first rule: its output shows where a module's prefix or pathvars put the results.
rule outcome:
    """Mark a call whose runs all have a record; failed runs decide its exit status."""
    input:
        "<results>/report.html",
    output:
        touch("<results>/logs/outcome"),
    message:
        "All runs have a record"


# Its plan is made when the first function of common.smk is called.
driver = Driver(workflow, config, checkpoints, __name__, rules.outcome.output[0])
lookups = driver.lookups
