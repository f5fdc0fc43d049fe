# Results, ours or published, checked for errors. Nothing is measured.
rule lint:
    handover: True
    conda:
        "../envs/driver.yaml"
    params:
        framebench=driver.provisioning.driver,
        sources=driver.tables.linted,
        results=driver.tables.results,
        status=driver.tables.status,
    message:
        "Checking {params.sources}"
    shell:
        "FRAMEBENCH_STATUS_FILE={params.status:q} exec"
        " {params.framebench:q} lint --sources {params.sources:q} --results {params.results:q}"
