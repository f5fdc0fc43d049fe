# Tables and report: a pure function of the records that runs.csv names.
rule medians:
    """Compute the median of each case over its repeats, with interval and flags."""
    input:
        runs="<results>/runs.csv",
    output:
        table("<results>/tables/summary.csv"),
        update("<results>/tables/summary.md"),
    log:
        "<results>/logs/tables/medians.log",
    localrule: True
    conda:
        "../envs/driver.yaml"
    params:
        framebench=lookups.driver,
        tables=lambda wildcards, output: names_of(output),
        results=results_folder_of_call,
    message:
        "Medians of all cases"
    shell:
        "{params.framebench:q} tables {params.tables} --records {input.runs:q}"
        " --results {params.results:q} 2> {log:q} || {{ cat {log:q} >&2; exit 1; }}"


# `use rule` does not inherit `localrule`.
use rule medians as speedups with:
    """Divide precisions by fp32, and compilers by none, with intervals."""
    output:
        table("<results>/tables/precision_speedup.csv"),
        update("<results>/tables/precision_speedup.md"),
        table("<results>/tables/compiler_speedup.csv"),
        update("<results>/tables/compiler_speedup.md"),
    log:
        "<results>/logs/tables/speedups.log",
    localrule: True
    message:
        "Speed-ups of precisions and compilers"


use rule medians as weak_scaling with:
    """Compare each number of devices with one device, at equal batch per device."""
    output:
        table("<results>/tables/weak_scaling.csv"),
        update("<results>/tables/weak_scaling.md"),
    log:
        "<results>/logs/tables/weak_scaling.log",
    localrule: True
    message:
        "Weak scaling"


use rule medians as strong_scaling with:
    """Compare each number of devices with one device, at equal total batch."""
    output:
        table("<results>/tables/strong_scaling.csv"),
        update("<results>/tables/strong_scaling.md"),
    log:
        "<results>/logs/tables/strong_scaling.log",
    localrule: True
    message:
        "Strong scaling"


# Tables with a rule of their own.
FAMILIES = [
    *rules.medians.output,
    *rules.speedups.output,
    *rules.weak_scaling.output,
    *rules.strong_scaling.output,
]
MADE = names_of(FAMILIES)
OTHERS = [name for name in TABLES if TABLES[name].get("always") and name not in MADE]


rule tables:
    """Make the report and all further tables."""
    input:
        FAMILIES,
        runs="<results>/runs.csv",
    output:
        *map(table, expand("<results>/tables/{name}.csv", name=OTHERS)),
        report(
            update("<results>/tables/report.html"),
            category="Report",
            labels={"page": "The whole report"},
            caption="../report/report.rst",
        ),
        update("<results>/report.html"),
    log:
        "<results>/logs/tables.log",
    localrule: True
    conda:
        "../envs/driver.yaml"
    params:
        framebench=lookups.driver,
        results=results_folder_of_call,
        leave=MADE,
    message:
        "Tables and report from {input.runs}"
    shell:
        "exec {params.framebench:q} report --records {input.runs:q} --results {params.results:q}"
        " --leave {params.leave:q} > {log:q}"


rule report:
    """Make tables and report from any set of records; measure nothing."""
    log:
        "<results>/logs/report.log",
    localrule: True
    conda:
        "../envs/driver.yaml"
    params:
        framebench=lookups.driver,
        records=given_records,
        results=results_folder_of_call,
    message:
        "Tables and report from {params.records}"
    shell:
        "exec {params.framebench:q} report --records {params.records:q}"
        " --results {params.results:q} > {log:q}"
