# The proof that the frameworks compute the same: each against a reference that needs none of them.
rule reference:
    output:
        directory(f"{RESULTS}/reference/{{reference}}-{{digest}}"),
    log:
        f"{RESULTS}/logs/reference/{{reference}}-{{digest}}.log",
    wildcard_constraints:
        digest="[0-9a-f]{8}",
    handover: True
    threads: CORES_HERE
    params:
        python=sys.executable,
        arguments=reference_arguments,
    message:
        "Computing the reference of {wildcards.reference} in float64"
    shell:
        "{params.python:q} scripts/reference {params.arguments:q} --output {output:q}"
        " > {log:q} 2>&1 || {{ cat {log:q} >&2; exit 1; }}"


rule comparison:
    input:
        ancient(run_environment),
        reference=ancient(reference_folder),
    output:
        f"{RESULTS}/parity/{{framework}}/{{reference}}/{{comparison}}.json",
    log:
        f"{RESULTS}/logs/parity/{{framework}}/{{reference}}/{{comparison}}.log",
    priority: comparison_priority
    conda:
        run_conda
    container:
        run_container
    threads: comparison_cores
    resources:
        **RESOURCES,
    params:
        command=comparison_command,
        progress=comparison_progress,
    message:
        "{params.progress}"
    shell:
        "FRAMEBENCH_DIE_WITH_PARENT=$PPID exec {params.command} --output {output:q} --log {log:q}"


rule parity:
    input:
        all_comparisons,
    handover: True
    params:
        framebench=FRAMEBENCH,
        records=measured_records,
        results=results_folder,
    message:
        "Certificates, tables and report"
    shell:
        "{params.framebench:q} parity --records {params.records:q} --results {params.results:q}"
