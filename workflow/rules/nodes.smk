# Nodes by their records, each against the others and a kept baseline. Nothing is measured.
rule nodes:
    handover: True
    conda:
        "../envs/driver.yaml"
    params:
        framebench=driver.provisioning.driver,
        words=driver.tables.judged,
        status=driver.tables.status,
    message:
        "Nodes, each against the others"
    shell:
        "FRAMEBENCH_STATUS_FILE={params.status:q} exec"
        " {params.framebench:q} nodes {params.words:q}"


# The same behind the runs of a suite that measures each node, where fail_on is given: in every
# call, because its exit status is asked for.
rule node_verdict:
    input:
        # Tables first: both write that of the nodes.
        rules.tables.output,
    output:
        touch(driver.tables.node_verdict),
    handover: True
    conda:
        "../envs/driver.yaml"
    params:
        framebench=driver.provisioning.driver,
        words=driver.tables.judged_here,
        status=driver.tables.status,
    message:
        "Which nodes are named"
    shell:
        "FRAMEBENCH_STATUS_FILE={params.status:q} exec"
        " {params.framebench:q} nodes {params.words:q}"
