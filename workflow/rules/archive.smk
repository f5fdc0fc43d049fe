# A set of results as one file to hand on. Nothing is measured.
rule archive:
    handover: True
    conda:
        "../envs/driver.yaml"
    params:
        framebench=driver.provisioning.driver,
        source=driver.tables.archive,
    message:
        "Archive of the results"
    shell:
        "{params.framebench:q} archive {params.source:q}"
