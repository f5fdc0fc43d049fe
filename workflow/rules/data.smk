# A folder of images or tokens that are made, for input pipelines. Nothing is measured.
rule make_data:
    handover: True
    conda:
        "../envs/driver.yaml"
    params:
        framebench=driver.provisioning.driver,
        words=driver.transfers.data,
        status=driver.tables.status,
    message:
        "Images or tokens for input pipelines"
    shell:
        "FRAMEBENCH_STATUS_FILE={params.status:q} exec"
        " {params.framebench:q} make-data {params.words:q}"
