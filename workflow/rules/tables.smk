TABLES = [
    f"{RESULTS}/tables/{table}.csv"
    for table in (
        "summary",
        "weak_scaling",
        "strong_scaling",
        "amp_speedup",
        "compiler_speedup",
        "latency",
        "efficiency",
        "split",
    )
]
REPORT = f"{RESULTS}/report.html"
FINGERPRINT = Path(RESULTS, "tables", "fingerprint.txt")
SUMMARY = Path(RESULTS, "logs", "tables.log")


def drop_stale_fingerprint():
    """Tables of other records than those that are there now lose the file that vouches for them;
    it is an output of their rule, so they are made again."""
    current = CACHED and cli.fingerprint(CACHED, Path(RESULTS, "runs"))
    if FINGERPRINT.exists() and FINGERPRINT.read_text().strip() != current:
        FINGERPRINT.unlink()


def given_records(wildcards):
    return str(PLAN.settings.records or measured_records(wildcards))


if workflow.is_main_process and not workflow.output_settings.dryrun:
    drop_stale_fingerprint()


# Tables and report: a pure function of the records.
rule tables:
    input:
        all_records,
        PROBE_RECORDS,
    output:
        report(TABLES, category="Tables", caption="../report/tables.rst"),
        report(REPORT, category="Report", caption="../report/report.rst"),
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
