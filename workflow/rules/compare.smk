def compare_arguments(wildcards):
    settings = PLAN.settings
    if settings.base is None or settings.candidate is None:
        raise WorkflowError(
            "compare: needs two sets of records: --config base=PATH candidate=PATH"
        )
    arguments = ["--base", str(settings.base), "--candidate", str(settings.candidate)]
    return arguments + (
        ["--fail-on", str(settings.fail_on)] if settings.fail_on else []
    )


# Two sets of records against each other. Nothing is measured.
rule compare:
    handover: True
    params:
        framebench=FRAMEBENCH,
        arguments=compare_arguments,
        results=results_folder,
    message:
        "Comparison of two sets of records"
    shell:
        "{params.framebench:q} compare {params.arguments:q} --results {params.results:q}"
