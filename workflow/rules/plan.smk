# What would be run, without running it.
rule plan:
    handover: True
    params:
        text=driver.tables.plan,
    message:
        "Plan of the suite"
    shell:
        "printf '%s\\n' {params.text:q}"
