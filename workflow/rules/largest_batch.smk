LARGEST_BATCH = f"{RESULTS}/{searches.FOLDER}/{{framework}}/{{model}}/{{search}}.json"
SEARCH_RESULTS = [f"{RESULTS}/{searches.FOLDER}/{name}.json" for name in SEARCHES]


def search_name(wildcards):
    return f"{wildcards.framework}/{wildcards.model}/{wildcards.search}"


def search_bounds(wildcards):
    return commands.search_bounds(PLAN)


def search_arguments(wildcards):
    return commands.search_arguments(PLAN, SEARCHES[search_name(wildcards)])


def search_progress(wildcards):
    name = search_name(wildcards)
    number = list(SEARCHES).index(name) + 1
    return f"[{number}/{len(SEARCHES)}] largest batch of {SEARCHES[name].case}"


# The largest batch per device of a case: runs with few steps, one after the other.
rule largest_batch:
    input:
        ancient(run_environment),
    output:
        LARGEST_BATCH,
    log:
        f"{RESULTS}/logs/{searches.FOLDER}/{{framework}}/{{model}}/{{search}}.log",
    wildcard_constraints:
        search="[^/]+",
    # Before all runs, so that those with the largest batches are interleaved with the others.
    priority: PLAN.places + 1
    conda:
        run_conda
    container:
        run_container
    threads: ALL_CORES
    resources:
        **RESOURCES,
    params:
        preparation=run_preparation,
        framebench=run_framebench,
        bounds=search_bounds,
        python=run_python,
        origin=run_origin,
        arguments=search_arguments,
        progress=search_progress,
    message:
        "{params.progress}"
    shell:
        "FRAMEBENCH_DIE_WITH_PARENT=1 exec {params.preparation:q} {params.framebench:q} largest-batch"
        " {params.bounds:q}"
        " --output {output:q} --log {log:q} -- {params.python:q} scripts/harness"
        " {params.arguments:q} {params.origin}"
