# What is compared with the reference, and what is probed.
COMPARISONS = certify.names(PLAN, CATALOG, certify.comparisons(PLAN, CATALOG))
COMPARISON_RECORDS = [f"{RESULTS}/parity/{name}.json" for name in COMPARISONS]


def compared(wildcards):
    name = f"{wildcards.framework}/{wildcards.reference}/{wildcards.comparison}"
    return name, COMPARISONS[name]


def reference_arguments(wildcards):
    model, _, length = wildcards.reference.partition("-s")
    arguments = ["--model", f"scripts/models/{model}.json"]
    arguments += ["--sequence-length", length] if length else []
    return [*arguments, "--seed", str(PLAN.settings.seed)]


def reference_folder(wildcards):
    _, one = compared(wildcards)
    digest = certify.reference_digest(CATALOG, one.model, PLAN.settings.seed)
    return f"{RESULTS}/reference/{one.reference}-{digest}"


def comparison_command(wildcards, input):
    arguments = certify.arguments(PLAN, compared(wildcards)[1], input.reference)
    return harness_command(wildcards, arguments, preparation(wildcards))


def comparison_cores(wildcards):
    return cores_for(compared(wildcards)[1].devices)


def comparison_priority(wildcards):
    return len(COMPARISONS) - list(COMPARISONS).index(compared(wildcards)[0])


def comparison_progress(wildcards):
    name, one = compared(wildcards)
    return f"[{list(COMPARISONS).index(name) + 1}/{len(COMPARISONS)}] compare {one}"


def all_comparisons(wildcards):
    checked(targets.check_measurement, PLAN, "a target that measures")
    return COMPARISON_RECORDS


PROBES = probes.names(PLAN)
PROBE_RECORDS = [f"{RESULTS}/probes/{name}.json" for name in PROBES]


def probe_of(wildcards):
    name = f"{wildcards.framework}/{wildcards.probe}"
    return name, PROBES[name]


def probe_command(wildcards):
    arguments = probes.arguments(PLAN, probe_of(wildcards)[1])
    return harness_command(wildcards, arguments, preparation(wildcards))


def probe_progress(wildcards):
    name, one = probe_of(wildcards)
    return f"[{list(PROBES).index(name) + 1}/{len(PROBES)}] peak of the device: {one}"


def plan_description(wildcards):
    checked(targets.check_measurement, PLAN, "plan")
    refused = "".join(f"\n{line}" for line in allocations.refused(PLAN, slurm.refusal))
    return plan_text.describe(PLAN) + probes.describe(PLAN, PROBES) + refused
