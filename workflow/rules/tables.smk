# Tables and report: a pure function of the records.
rule tables:
    input:
        all_records,
        PROBE_RECORDS,
    # Not removed before the job: where it fails, the former tables and report are still there.
    output:
        report(update(TABLES), category="Tables", caption="../report/tables.rst"),
        report(update(REPORT), category="Report", caption="../report/report.rst"),
        str(FINGERPRINT),
    log:
        str(SUMMARY),
    handover: True
    params:
        framebench=FRAMEBENCH,
        records=measured_records,
        results=results_folder,
    message:
        "Tables and report from {params.records}"
    shell:
        "{params.framebench:q} report --records {params.records:q} --results {params.results:q}"
        " > {log:q}"


# From any set of records, with no benchmark among its inputs: nothing can be run by it.
rule report:
    handover: True
    params:
        framebench=FRAMEBENCH,
        records=given_records,
        results=results_folder,
    message:
        "Tables and report from {params.records}"
    shell:
        "{params.framebench:q} report --records {params.records:q} --results {params.results:q}"
