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
        preparation=run_preparation,
        python=run_python,
        origin=run_origin,
        arguments=probe_arguments,
        progress=probe_progress,
    message:
        "{params.progress}"
    shell:
        "FRAMEBENCH_DIE_WITH_PARENT=1 exec {params.preparation:q} {params.python:q} scripts/harness"
        " {params.arguments:q} {params.origin} --output {output:q} --log {log:q}"
