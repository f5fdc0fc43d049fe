# Any number of result sets in their order. Nothing is measured.
rule history:
    handover: True
    conda:
        "../envs/driver.yaml"
    params:
        framebench=driver.provisioning.driver,
        history=driver.tables.history,
        results=driver.tables.results,
    message:
        "History of result sets"
    shell:
        "{params.framebench:q} history {params.history:q} --results {params.results:q}"
