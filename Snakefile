# Entry for `snakemake` in this folder; the rules stand in workflow/rules.
include: "workflow/Snakefile"


# Snakemake takes no default target from a file that is included.
rule default:
    """Measure what is missing, then make tables and report; the same as `all`."""
    default_target: True
    input:
        rules.all.input,
    message:
        "Tables and report written"
