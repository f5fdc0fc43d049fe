# Tables and report: a pure function of the records.
rule runs:
    """Read all records into one file of runs."""
    input:
        driver.rounds.all,
        driver.peaks.all,
        driver.verifications.small,
        # Existing verifications, searches, peak-FLOPS benchmarks and interruptions.
        driver.tables.neighbours,
        driver.tables.changed,
    output:
        driver.tables.runs,
    log:
        f"{driver.tables.logs}/runs.log",
    localrule: True
    conda:
        "../envs/driver.yaml"
    params:
        framebench=driver.provisioning.driver,
        records=lambda wildcards: driver.tables.records,
        results=driver.tables.results,
    message:
        "Reading {params.records}"
    shell:
        "{params.framebench:q} runs --records {params.records:q} --results {params.results:q}"
        " 2> {log:q} || {{ cat {log:q} >&2; exit 1; }}"


rule medians:
    """Compute the median of each case over its repeats, with interval and flags."""
    input:
        driver.tables.changed,
        runs=rules.runs.output,
    output:
        table_files("summary"),
    log:
        f"{driver.tables.logs}/medians.log",
    localrule: True
    conda:
        "../envs/driver.yaml"
    params:
        framebench=driver.provisioning.driver,
        tables=lambda wildcards, output: names_of(output),
        records=lambda wildcards: driver.tables.records,
        results=driver.tables.results,
    message:
        "Medians of all cases"
    shell:
        "{params.framebench:q} tables {params.tables} --records {params.records:q}"
        " --results {params.results:q} 2> {log:q} || {{ cat {log:q} >&2; exit 1; }}"


# `use rule` does not inherit `localrule`.
use rule medians as speedups with:
    """Divide precisions by fp32, and compilers by none, with intervals."""
    output:
        table_files("precision_speedup"),
        table_files("compiler_speedup"),
    log:
        f"{driver.tables.logs}/speedups.log",
    localrule: True
    message:
        "Speed-ups of precisions and compilers"


use rule medians as weak_scaling with:
    """Compare each number of devices with one device, at equal batch per device."""
    output:
        table_files("weak_scaling"),
    log:
        f"{driver.tables.logs}/weak_scaling.log",
    localrule: True
    message:
        "Weak scaling"


use rule medians as strong_scaling with:
    """Compare each number of devices with one device, at equal total batch."""
    output:
        table_files("strong_scaling"),
    log:
        f"{driver.tables.logs}/strong_scaling.log",
    localrule: True
    message:
        "Strong scaling"


rule tables:
    """Make the report and all further tables."""
    input:
        driver.tables.changed,
        runs=rules.runs.output,
        tables=[
            rules.medians.output,
            rules.speedups.output,
            rules.weak_scaling.output,
            rules.strong_scaling.output,
        ],
    output:
        *map(csv_of, driver.tables.others),
        report(
            update(driver.tables.archived),
            category="Report",
            labels={"page": "The whole report"},
            caption="../report/report.rst",
        ),
        update(driver.tables.report),
        driver.tables.fingerprint,
    log:
        driver.tables.summary,
    handover: True
    conda:
        "../envs/driver.yaml"
    params:
        framebench=driver.provisioning.driver,
        records=lambda wildcards: driver.tables.records,
        results=driver.tables.results,
        leave=driver.tables.with_rule,
    message:
        "Tables and report from {params.records}"
    shell:
        "exec {params.framebench:q} report --records {params.records:q} --results {params.results:q}"
        " --leave {params.leave:q} > {log:q}"


rule report:
    """Make tables and report from any set of records; measure nothing."""
    log:
        driver.tables.reported,
    handover: True
    conda:
        "../envs/driver.yaml"
    params:
        framebench=driver.provisioning.driver,
        records=driver.tables.given,
        results=driver.tables.results,
        status=driver.tables.status,
    message:
        "Tables and report from {params.records}"
    shell:
        "FRAMEBENCH_STATUS_FILE={params.status:q} exec {params.framebench:q} report"
        " --records {params.records:q} --results {params.results:q} > {log:q}"
