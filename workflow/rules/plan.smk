# What would be run, without running it.
rule plan:
    handover: True
    message:
        "Plan of the suite"
    run:
        print(plan_text.describe(PLAN) + probes.describe(PLAN, PROBES))
