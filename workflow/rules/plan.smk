rule plan:
    """Print the runs that are missing and their expected time; measure nothing."""
    handover: True
    params:
        text=driver.tables.plan,
    message:
        "Plan of the suite"
    shell:
        "printf '%s\\n' {params.text:q}"
