# The peak of the device: products of large matrices, in each framework and precision of the suite.
rule probe:
    input:
        ancient(run_environment),
    output:
        f"{RESULTS}/probes/{{framework}}/{{probe}}.json",
    log:
        f"{RESULTS}/logs/probes/{{framework}}/{{probe}}.log",
    conda:
        run_conda
    container:
        run_container
    threads: ALL_CORES
    resources:
        **RESOURCES,
    params:
        command=probe_command,
        progress=probe_progress,
    message:
        "{params.progress}"
    shell:
        "FRAMEBENCH_DIE_WITH_PARENT=$PPID exec {params.command} --output {output:q} --log {log:q}"
