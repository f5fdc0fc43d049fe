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
