# Results in formats of other tools, and theirs as a set of records. Nothing is measured.
rule export:
    handover: True
    conda:
        "../envs/driver.yaml"
    params:
        framebench=driver.provisioning.driver,
        words=driver.transfers.exported,
        results=driver.tables.results,
        status=driver.tables.status,
    message:
        "Results for another tool"
    shell:
        "FRAMEBENCH_STATUS_FILE={params.status:q} exec"
        " {params.framebench:q} export {params.words:q} --results {params.results:q}"


rule import:
    handover: True
    conda:
        "../envs/driver.yaml"
    params:
        framebench=driver.provisioning.driver,
        words=driver.transfers.imported,
        results=driver.tables.results,
        status=driver.tables.status,
    message:
        "Results of another tool"
    shell:
        "FRAMEBENCH_STATUS_FILE={params.status:q} exec"
        " {params.framebench:q} import {params.words:q} --results {params.results:q}"
