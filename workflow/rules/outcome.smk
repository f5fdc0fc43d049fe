# The first rule: where a module's prefix moves its output, the results are.
rule outcome:
    """Mark a call whose runs all have a record; failed runs decide its exit status."""
    input:
        lambda wildcards: rules.tables.output,
    output:
        touch(outcome_file(config)),
    message:
        "All runs have a record"


driver = Driver(workflow, config, checkpoints, __name__, rules.outcome.output[0])
