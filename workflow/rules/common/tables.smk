# What is read, and what is written.
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
    try:
        if FINGERPRINT.exists() and FINGERPRINT.read_text().strip() != current:
            FINGERPRINT.unlink()
    except OSError as error:
        refuse(f"{FINGERPRINT}: cannot be replaced: {error.strerror}")


def given_records(wildcards):
    checked(targets.check_keys, PLAN.settings, "report")
    return str(PLAN.settings.records or measured_records(wildcards))


if MEASURES:
    drop_stale_fingerprint()


def compare_arguments(wildcards):
    settings = PLAN.settings
    if settings.base is None or settings.candidate is None:
        refuse("compare: needs two sets of records: --config base=PATH candidate=PATH")
    checked(targets.check_keys, settings, "compare")
    arguments = ["--base", str(settings.base), "--candidate", str(settings.candidate)]
    return arguments + (
        [] if settings.fail_on is None else ["--fail-on", str(settings.fail_on)]
    )


def lint_sources(wildcards):
    """What is given; by default what ships and what was measured."""
    checked(targets.check_keys, PLAN.settings, "lint")
    if PLAN.settings.records:
        return [str(PLAN.settings.records)]
    found = [path for path in ("results/published",) if Path(path).is_dir()]
    if CACHED and (CACHED.runs or CACHED.problems):
        found.append(f"{RESULTS}/runs")
    if not found:
        refuse(f"lint: {RESULTS}/runs holds no record; give --config records=PATH")
    return found
