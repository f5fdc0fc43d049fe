# Two sets of records against each other. Nothing is measured.
rule compare:
    handover: True
    conda:
        "../envs/driver.yaml"
    params:
        framebench=driver.provisioning.driver,
        sides=driver.tables.sides,
        results=driver.tables.results,
        status=driver.tables.status,
    message:
        "Comparison of two sets of records"
    shell:
        "FRAMEBENCH_STATUS_FILE={params.status:q} exec"
        " {params.framebench:q} compare {params.sides:q} --results {params.results:q}"
