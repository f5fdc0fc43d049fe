# What would be run, without running it.
rule plan:
    handover: True
    params:
        text=plan_description,
    message:
        "Plan of the suite"
    shell:
        "printf '%s\\n' {params.text:q}"
