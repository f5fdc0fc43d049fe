# What a job asks of the cluster, and which share an allocation.
CLUSTER = PLAN.settings.cluster
# All that a node has: no other job of the workflow runs beside one that measures.
if CLUSTER:
    # What one job takes at most; of several that share one, the runs follow each other.
    workflow.global_resources["_cores"] = CLUSTER.cores_per_node
CORES_HERE = len(os.sched_getaffinity(0)) if CLUSTER else workflow.cores
ALL_CORES = CLUSTER.cores_per_node if CLUSTER else CORES_HERE


def cores_for(devices):
    """Of those that Snakemake may use: all, unless runs go side by side."""
    return PLAN.room.threads(devices, workflow.cores) if PLAN.room else ALL_CORES


def measured_shape(wildcards):
    """Nodes and devices per node of what a job measures, and for about how many seconds."""
    limit = PLAN.settings.time_limit
    if "run" in wildcards.keys():
        run = POSSIBLE[run_name(wildcards)]
        return run.case.nodes, run.case.devices_per_node, run.seconds
    if "search" in wildcards.keys():
        case = SEARCHES[search_name(wildcards)].case
        return case.nodes, case.devices_per_node, limit
    if "comparison" in wildcards.keys():
        return 1, compared(wildcards)[1].devices, limit
    return 1, 1, probes.SECONDS


def resource(name):
    """What a job that measures asks of the cluster."""

    def asked(wildcards):
        nodes, devices, seconds = measured_shape(wildcards)
        # The first job on each node builds the environment there.
        seconds += estimates.ENVIRONMENT_SECONDS * PLAN.settings.node_local
        return CLUSTER.resources(nodes, devices, seconds, CUDA)[name]

    return asked


CUDA = PLAN.place.accelerator == "cuda"
ASKED = CLUSTER.asked(CUDA) if CLUSTER else []
RESOURCES = {name: resource(name) for name in ASKED}


def warn_of_resources_without_effect():
    given = workflow.resource_settings.default_resources or {}
    for name in cluster.without_effect(given, ASKED):
        print(
            f"--default-resources: {name} has no effect on runs, which ask for what the plan and "
            "profiles/slurm/cluster.yaml say",
            file=sys.stderr,
        )


ALLOCATIONS = {}
if CLUSTER and CLUSTER.runs_per_allocation > 1:
    ALLOCATIONS = allocations.allocations(PLAN, CLUSTER.runs_per_allocation)
    # By this name the profile says that unconnected jobs of a group belong together.
    workflow.parent_groupids.update(dict.fromkeys(ALLOCATIONS.values(), "allocation"))


def allocation(wildcards):
    return ALLOCATIONS.get(run_name(wildcards))
