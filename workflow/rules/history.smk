# Any number of result sets in their order. Nothing is measured.
rule history:
    handover: True
    conda:
        "../envs/driver.yaml"
    params:
        framebench=driver.provisioning.driver,
        history=driver.tables.history,
        results=driver.tables.results,
        status=driver.tables.status,
    message:
        "History of result sets"
    shell:
        "FRAMEBENCH_STATUS_FILE={params.status:q} exec"
        " {params.framebench:q} history {params.history:q} --results {params.results:q}"
