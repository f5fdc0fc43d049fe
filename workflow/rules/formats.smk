# Results in formats of other tools, and theirs as a set of records. Nothing is measured.
rule export:
    handover: True
    conda:
        "../envs/driver.yaml"
    params:
        framebench=driver.provisioning.driver,
        words=driver.transfers.exported,
        results=driver.tables.results,
    message:
        "Results for another tool"
    shell:
        "{params.framebench:q} export {params.words:q} --results {params.results:q}"


rule import:
    handover: True
    conda:
        "../envs/driver.yaml"
    params:
        framebench=driver.provisioning.driver,
        words=driver.transfers.imported,
        results=driver.tables.results,
    message:
        "Results of another tool"
    shell:
        "{params.framebench:q} import {params.words:q} --results {params.results:q}"
