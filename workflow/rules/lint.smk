# Results, ours or published, checked for errors. Nothing is measured.
rule lint:
    handover: True
    conda:
        "../envs/driver.yaml"
    params:
        framebench=driver.provisioning.driver,
        sources=driver.tables.linted,
        results=driver.tables.results,
    message:
        "Checking {params.sources}"
    shell:
        "{params.framebench:q} lint --sources {params.sources:q} --results {params.results:q}"
