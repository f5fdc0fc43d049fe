# What would be run, without running it.
localrules:
    plan,


rule plan:
    message:
        "Plan of the suite"
    run:
        print(planning.describe(PLAN))
