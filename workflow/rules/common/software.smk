# The software that a job runs in: an environment, an interpreter, modules or an image.
def run_software(wildcards):
    """A probe is of the usual software, everything else perhaps of a variant's."""
    if "run" in wildcards.keys():
        case = POSSIBLE[run_name(wildcards)].case
    elif "search" in wildcards.keys():
        case = SEARCHES[search_name(wildcards)].case
    elif "comparison" in wildcards.keys():
        return compared(wildcards)[1].software
    else:
        return wildcards.framework
    return planning.software(case, PLAN.settings.suite)


def environment_seen_to(name):
    """The output of the rule that builds it."""
    return f"{RESULTS}/logs/environments/{PLAN.software[name].file.name}"


def run_environment(wildcards):
    check_that_it_may_measure()
    name = run_software(wildcards)
    return [environment_seen_to(name)] if name in TO_BUILD else []


def run_conda(wildcards):
    file = commands.conda_file(PLAN, run_software(wildcards))
    return None if file is None else str(file)


def container_image(wildcards):
    """Of a dry run without Apptainer none: Snakemake would ask for it, though it starts nothing."""
    if workflow.output_settings.dryrun and not any(
        shutil.which(tool) for tool in ("apptainer", "singularity")
    ):
        return None
    return commands.image(PLAN, run_software(wildcards))


# Asked for each job of the DAG, so not where there can be none.
run_container = container_image if METHODS == ["apptainer"] else None


def preparation(wildcards):
    nodes = measured_shape(wildcards)[0]
    return commands.preparation(PLAN, run_software(wildcards), FRAMEBENCH, nodes)


def harness_command(wildcards, arguments, before=()):
    """What starts the harness behind the words of ``before``, quoted for the shell: for Snakemake
    to quote each word of 10,000 commands takes seconds."""
    name = run_software(wildcards)
    words = [*before, *commands.interpreter(PLAN, name), "scripts/harness", *arguments]
    return f"{shlex.join(words)} {commands.origin(PLAN, CATALOG, name)}"


def prepare_containers():
    """Let them see the GPUs, and not where the host has Python packages: what an image itself says
    of PYTHONPATH counts."""
    settings = workflow.deployment_settings
    folder = str(Path(settings.apptainer_prefix or ".snakemake").absolute())
    names = [one.image.name for one in PLAN.software.values() if one.image]
    if any("://" in name for name in names) and len(folder.split()) > 1:
        refuse(
            f"--apptainer-prefix: found {folder!r} for images that are pulled; allowed: a path "
            "without blanks, which Snakemake cannot take"
        )
    if (
        PLAN.place.accelerator == "cuda"
        and "--nv" not in settings.apptainer_args.split()
    ):
        settings.apptainer_args += " --nv"
    os.environ.pop("PYTHONPATH", None)


if METHODS == ["apptainer"]:
    prepare_containers()


def environment_of(wildcards):
    wanted = f"{wildcards.name}-{wildcards.digest}"
    known = [one for one in PLAN.software.values() if one.file]
    return next(one for one in known if one.file.name == wanted)


def environment_source(wildcards):
    return str(environment_of(wildcards).file.path)


def environment_marker(wildcards):
    return str(environment_of(wildcards).marker)


# Those that are built once for all nodes, and are missing or damaged.
TO_BUILD = commands.to_build(PLAN)
# What an earlier call has seen to is no longer so.
for unsound in TO_BUILD if LOCK else ():
    Path(environment_seen_to(unsound)).unlink(missing_ok=True)
