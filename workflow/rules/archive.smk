# A set of results as one file to hand on. Nothing is measured.
rule archive:
    handover: True
    conda:
        "../envs/driver.yaml"
    params:
        framebench=driver.provisioning.driver,
        source=driver.tables.archive,
        status=driver.tables.status,
    message:
        "Archive of the results"
    shell:
        "FRAMEBENCH_STATUS_FILE={params.status:q} exec"
        " {params.framebench:q} archive {params.source:q}"
