# Tables and report: a pure function of the records.
localrules:
    tables,
    report,


rule tables:
    input:
        [f"{RESULTS}/runs/{name}.json" for name in PENDING],
    output:
        report(
            expand(
                RESULTS + "/tables/{table}.csv",
                table=["summary", "weak_scaling", "amp_speedup", "compiler_speedup", "latency"],
            ),
            category="Tables",
            caption="../report/tables.rst",
        ),
        report(
            RESULTS + "/report.html",
            category="Report",
            caption="../report/report.rst",
        ),
        str(FINGERPRINT),
    log:
        str(SUMMARY),
    message:
        "Tables and report from {params.records}"
    params:
        framebench=[PYTHON, FRAMEBENCH],
        records=RESULTS + "/runs",
        results=RESULTS,
    shell:
        "{params.framebench:q} report --records {params.records:q} --results {params.results:q}"
        " > {log:q}"


# From any set of records, with no benchmark among its inputs: nothing can be run by it.
rule report:
    params:
        framebench=[PYTHON, FRAMEBENCH],
        results=RESULTS,
        records=str(PLAN.settings.records or Path(RESULTS, "runs")),
    message:
        "Tables and report from {params.records}"
    shell:
        "{params.framebench:q} report --records {params.records:q} --results {params.results:q}"
