# One environment per framework and accelerator, from the file that --sdm conda would use too, for
# all nodes. With node_local it is part of the runs.
rule environment:
    output:
        f"{ENVIRONMENTS}/{{name}}-{{digest}}/{environments.MARKER}",
    log:
        f"{ENVIRONMENTS}/{{name}}-{{digest}}.log",
    wildcard_constraints:
        name="[A-Za-z0-9_.-]+",
        digest="[0-9a-f]{8}",
    # Before all runs: those of a framework whose environment comes later would not be interleaved.
    priority: PLAN.places + 2
    handover: True
    params:
        framebench=FRAMEBENCH,
        file=environment_source,
    message:
        "Building the environment {wildcards.name} from {params.file}"
    shell:
        "{params.framebench:q} environment --file {params.file:q} --marker {output:q}"
        " > {log:q} 2>&1 || {{ cat {log:q} >&2; exit 1; }}"
