rule tables:
    """Make tables and report from the records."""
    input:
        driver.runs.all,
        driver.peaks.all,
        driver.comparisons.small,
        # Existing verifications, searches, peak-FLOPS benchmarks and interruptions.
        driver.tables.neighbours,
    # Not removed before the job: where it fails, the former tables and report are still there.
    output:
        *[
            report(
                update(file),
                category="Tables",
                subcategory=group,
                labels={"table": title},
                caption="../report/tables.rst",
            )
            for file, group, title in driver.tables.files
        ],
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
        records=driver.tables.records,
        results=driver.tables.results,
    message:
        "Tables and report from {params.records}"
    shell:
        "exec {params.framebench:q} report --records {params.records:q} --results {params.results:q}"
        " > {log:q}"


rule outcome:
    """Mark a call whose runs all have a record; failed runs decide its exit status."""
    input:
        rules.tables.output,
    output:
        touch(driver.tables.outcome),
    message:
        "All runs have a record"


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
