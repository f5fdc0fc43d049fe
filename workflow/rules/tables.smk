# Tables and report: a pure function of the records.
rule tables:
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


# Made behind every run and table; the call then ends with a status that tells whether a run failed.
rule outcome:
    input:
        rules.tables.output,
    output:
        touch(driver.tables.outcome),
    message:
        "All runs have a record"


# From any set of records, with no benchmark among its inputs: nothing can be run by it.
rule report:
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
