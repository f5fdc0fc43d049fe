# Results, ours or published, checked for errors. Nothing is measured.
rule lint:
    handover: True
    params:
        framebench=FRAMEBENCH,
        sources=lint_sources,
        results=results_folder,
    message:
        "Checking {params.sources}"
    shell:
        "{params.framebench:q} lint --sources {params.sources:q} --results {params.results:q}"
