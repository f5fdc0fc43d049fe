# One environment per framework and accelerator, from the file that --sdm conda would use too.


def environment_source(wildcards):
    return f"{PROJECT}/envs/{wildcards.name}.yaml"


rule environment:
    output:
        ".venvs/{name}-{digest}/environment.json",
    log:
        ".venvs/{name}-{digest}.log",
    message:
        "Building the environment {wildcards.name} from envs/{wildcards.name}.yaml"
    wildcard_constraints:
        name="[a-z0-9]+(-cuda)?",
        digest="[0-9a-f]{8}",
    params:
        framebench=[PYTHON, FRAMEBENCH],
        file=environment_source,
    shell:
        "{params.framebench:q} environment --file {params.file:q} --marker {output:q}"
        " > {log:q} 2>&1 || {{ cat {log:q} >&2; exit 1; }}"
