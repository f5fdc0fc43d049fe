def lint_sources(wildcards):
    """What is given; by default what ships and what was measured."""
    if PLAN.settings.records:
        return [str(PLAN.settings.records)]
    found = [path for path in ("results/published",) if Path(path).is_dir()]
    if CACHED and (CACHED.runs or CACHED.problems):
        found.append(f"{RESULTS}/runs")
    if not found:
        raise WorkflowError(
            f"lint: {RESULTS}/runs holds no record; give --config records=PATH"
        )
    return found


# Results, ours or published, checked for errors. Nothing is measured.
rule lint:
    handover: True
    params:
        framebench=FRAMEBENCH,
        sources=lint_sources,
        results=results_folder,
    message:
        "Checking {params.sources}"
    shell:
        "{params.framebench:q} lint --sources {params.sources:q} --results {params.results:q}"
