"""Texts of the configuration's keys, for schemas and documentation.

Cells are Markdown. Their links are relative to the page in ``documentation.PAGES``.
"""

from __future__ import annotations

from collections.abc import Mapping

from .. import feature_registry as features
from . import suite_key_texts
from .key_table import KeyTable

TABLES: Mapping[str, KeyTable] = {
    "Configuration": KeyTable(
        ("key", "values", "meaning"),
        (
            (
                "suite",
                "name or path",
                "Matrix to run: a name in `config/suites/`, or the path of your own YAML file.",
            ),
            (
                "kinds",
                "folder",
                "Folder with [benchmarks of your own](../docs/adding-a-kind.md), one module each.",
            ),
            (
                "storage",
                "folder",
                "Folder that the benchmark [`storage`](../docs/micro-benchmarks.md#storage) "
                "measures, if the suite names none.",
            ),
            (
                "data",
                "folder",
                "Data for suites that [read files](../docs/input.md) or "
                "[SQuAD](../docs/training.md#squad).",
            ),
            (
                "bad_images",
                "`refuse`, `skip`",
                "An [image, text or record that cannot be read](../docs/input.md#bad-images) ends"
                " the run, or is skipped and counted.",
            ),
            (
                "results",
                "folder",
                "Folder of records, tables and report. One workflow at a time measures into a "
                "folder. Records of [another machine](../docs/measuring.md#same-machine) are kept"
                " and do not count as done. Use one folder per machine: peaks, largest batches "
                "and verifications belong to the first machine.",
            ),
            (
                "records",
                "folder or CSV",
                "For `report`: records to use instead of `results/runs`, or a folder of published "
                "tables.",
            ),
            (
                "price_per_hour",
                "an amount with its currency, like `2.90EUR`",
                "Price of a node hour, for the table `costs`. Kept with the results.",
            ),
            (
                "grid_intensity",
                "0 to 5000",
                "Emissions of a kilowatt-hour in g CO2e, for the table `costs`. Kept with the "
                "results.",
            ),
            (
                "pue",
                "1 to 10, with `grid_intensity`",
                "Energy of the data centre over that of its computers; 1 by default.",
            ),
            (
                "equivalence_margin",
                "`2%`, or 0.02; above 0 and below 100 %",
                "Largest difference of [training](../docs/training.md) scores that counts as "
                "equal, in `converge_equivalence`; one percentage point by default. Kept with the"
                " results.",
            ),
            (
                "nodes_named",
                "`all`, or a list",
                "For suites that [measure each node](../docs/node-health.md): all nodes of the "
                "partition, or these (`a,b`).",
            ),
            (
                "frameworks",
                "`all`, or a list",
                "Keep only these frameworks of the suite (`a,b`).",
            ),
            (
                "models",
                "`all`, or a list",
                "Keep only these models of the suite.",
            ),
            (
                "cases",
                "a list",
                'Keep only these cases: `cases="pytorch resnet50_v1.5 train fp32 none 1n1g batch '
                '2"`. `plan` lists names if there are at most 12 cases. The '
                "[report](../docs/report.md) copies such a command for every row.",
            ),
            (
                "model",
                "a `.py` file, `torchvision:NAME`, `timm:NAME`, `transformers:NAME`, `keras:NAME`, "
                "a folder",
                "[Your own model](../docs/own-model.md) instead of the models of the suite. "
                "`models` must be `all`.",
            ),
            (
                "retry",
                "list of `oom`, `unsupported`, `timeout`, `failed`, `not_converged`",
                "Rerun cases with these statuses, for example after raising a limit; raising it "
                "alone triggers nothing. The latest attempt counts; earlier records stay.",
            ),
            (
                "rerun_disturbed",
                "0 to 100",
                "Rerun [disturbed](#disturbed-runs) repeats at once, up to this many times. The "
                "latest attempt counts. 0: only flag them.",
            ),
            (
                "side_by_side",
                "`true`, `false`",
                "Run cases that need few devices [at the same time](#side-by-side).",
            ),
            (
                "emulated",
                "`skip`, `measure`",
                "Precisions that the CPU emulates, often 10 to 30 times slower than fp32: "
                "bfloat16 (and `amp`) without AVX512_BF16, AMX_BF16 or ARM BF16, float16 without "
                "AVX512_FP16, AMX_FP16 or ARM half-precision SIMD, fp8. `skip` records them as "
                "`unsupported` (`emulated: ..`) without starting a framework.",
            ),
            (
                "accelerator",
                "`auto`, `cpu`, `cuda`",
                "`auto`: NVIDIA GPUs if there are any, else the CPU; refused where `nvidia-smi` "
                "fails, or CUDA_VISIBLE_DEVICES hides all GPUs. Also selects the "
                "[environment](../docs/frameworks.md#gpus).",
            ),
            (
                "cores_per_device",
                "`auto`, or 1 to 1000000",
                "Cores of a device on a CPU. `auto`: physical cores divided by the most devices "
                "per node in the suite. Each core gets one thread. If more are requested than "
                "exist, SMT threads count as cores and the figure has the flag *shared*.",
            ),
            (
                "time_budget",
                "seconds, above 0, at most 31536000 (a year)",
                "Replaces the [time budget](#time-budget) of the suite.",
            ),
            (
                "time_limit",
                "seconds, above 0, at most 31536000 (a year)",
                "Longer runs are killed and recorded as `timeout`.",
            ),
            (
                "memory_limit",
                "`auto`, `16GiB`, `80%`",
                "Memory that all processes of a run may hold on a node. A share is of the "
                "machine, its control group, or `memory_gib` on a cluster. `auto`: 90 %. Runs "
                "that hold more, or leave less than 1/32 of the machine's memory free, are killed"
                " and recorded as `oom`. On CPUs, steps whose weights alone do not fit are left "
                "out before.",
            ),
            (
                "seed",
                "0 to 1000000, whole",
                "Seeds weights, synthetic data and the order of runs.",
            ),
            (
                "interpreters",
                "framework: path",
                "Existing Python for a framework; see [install methods](#install-methods). Each "
                "is started once before anything runs (not on a cluster).",
            ),
            (
                "cluster",
                "see [docs/cluster.md](../docs/cluster.md)",
                "Nodes and SLURM options. Stands in `profiles/slurm/cluster.yaml`.",
            ),
            (
                "images",
                "framework: image",
                "For `--sdm apptainer`: path or URI of an image; `{image: .., python: "
                "/opt/conda/bin/python}` if its Python is not `python3`.",
            ),
            (
                "modules",
                "framework: list",
                "For `--sdm env-modules`: modules to load, in order; `{load: [..], python: ..}` "
                "if their Python is not `python3`.",
            ),
            (
                "packages",
                "framework: list",
                "Packages to add to a framework's environment: `packages: {pytorch: "
                "[timm==1.0.28]}`, [locked](../docs/frameworks.md#hashes) by `framebench hashes "
                "pytorch --with timm==1.0.28`.",
            ),
            (
                "environments",
                "folder",
                "Where environments are built. On a cluster: a shared file system.",
            ),
            (
                "node_local",
                "`true`, `false`",
                "`true`: `environments` is an absolute path on a disk of each node. The first run"
                " on a node builds what it needs.",
            ),
            (
                "require_hashes",
                "`true`, `false`",
                "`true`: install only files whose [hashes](../docs/frameworks.md#hashes) stand in"
                " `envs/NAME.hashes.txt`. `false`: install the pinned versions from your index. "
                "Conda environments have no hashes.",
            ),
            (
                "open_ports",
                "`true`, `false`",
                "`true`: run several devices also with frameworks whose [open "
                "ports](../docs/cluster.md#security-and-open-ports) give strangers files or run "
                "their code. Otherwise such runs are `unsupported`.",
            ),
            (
                "yes",
                "`true`, `false`",
                "`true`: confirm calls predicted to take [more than a "
                "day](../docs/terminal.md#the-plan). Quote the name in a file, because YAML reads"
                " the bare word as a truth value.",
            ),
            *(row for one in features.modules("configuration") for row in one.TEXTS),
        ),
    ),
    **suite_key_texts.TABLES,
    "Cluster": KeyTable(
        ("key", "meaning"),
        (
            (
                "nodes",
                "Most nodes of a run. Larger cases are left out; `plan` lists them.",
            ),
            (
                "gpus_per_node, cores_per_node, memory_gib",
                "Hardware of a node. Nodes are alike, or of [several types](#several-node-types)."
                " A run keeps to 90 % of `memory_gib`, or to `memory_limit`. With `gpus_per_node:"
                " 0` a device is a set of cores; give physical cores, and `exclusive`. Runs that "
                "take more have the flag *shared*.",
            ),
            (
                "gpu_driver, gpu_capability, gpu_memory_gib",
                "What `nvidia-smi --query-gpu=driver_version,compute_cap,memory.total` says on a "
                "node: 550.54.15, 9.0, 81559 MiB (79.6). The plan chooses [environments]"
                "(frameworks.md#gpus) by them and leaves out what cannot run. Unknown where they "
                "are `null`: then those for the newest driver are chosen.",
            ),
            (
                "partition, account, constraint, qos",
                "As `sbatch` takes them. `null`: the value of `--default-resources` "
                "(`slurm_account`, `slurm_partition`, `constraint`, `qos`), else the cluster's "
                "default. Without an account Snakemake's plugin reports that it could not guess "
                "one; that is no error.",
            ),
            (
                "reservation, licenses",
                "As `sbatch` takes them.",
            ),
            (
                "gres",
                "GPU type, if nodes have several: `gpu:h100`, or `gpu:h100:8` with "
                "`gpus_per_node`. A run requests as many as it has devices, types with `-` or "
                "`+` by `--gpus-per-node`.",
            ),
            (
                "nodelist, exclude",
                "Nodes as SLURM writes them: `n1,n[3-8]`. Every run gets all nodes of `nodelist`;"
                " SLURM refuses runs on fewer and adds nodes to runs on more. No run gets a node "
                "of `exclude`. With `exclude`, nodes that fail during a call are used again.",
            ),
            (
                "hint",
                "`nomultithread`, `multithread`, `compute_bound` or `memory_bound`",
            ),
            (
                "switches",
                "Most switches between the nodes of a run: `1`, or `1@12:00:00` with the longest "
                "wait.",
            ),
            (
                "mail_user, mail_type",
                "Address and events of SLURM's mails, such as `[FAIL, TIME_LIMIT]`. There is one "
                "mail per job.",
            ),
            (
                "time_limit",
                "Minutes; the partition's limit. No job requests more. A run ends itself as "
                "`timeout` 150 s before its job would end, so with `time_limit: 5` after 150 s, "
                "and with 3 or less after 30 s. See [time limits](#time-limits).",
            ),
            (
                "least_time",
                "Minutes that every job requests at least, within `time_limit`.",
            ),
            (
                "most_node_hours",
                "Calls whose jobs may take more node hours are refused before submission. Each "
                "job counts with its requested time.",
            ),
            (
                "exclusive",
                "Whole nodes. Without it other jobs share the node, and disturbed runs have a "
                "flag.",
            ),
            (
                "starter",
                "Starts a process on each node of a run: `srun`, `mpiexec` (Open MPI), `pbsdsh` "
                "(PBS) or `flux`; see [other schedulers](#other-schedulers).",
            ),
            (
                "runs_per_allocation",
                "This many runs of the same shape share a job, one after the other.",
            ),
            (
                "whole_rounds",
                "Submits no run of a round before all runs of the previous round have ended; see "
                "[order of runs](#order-of-runs).",
            ),
            (
                "extra",
                'Further options of `sbatch`, as text or list: `"--nice=100 --network=ib"`. '
                "Options that another key or Snakemake sets are refused.",
            ),
            (
                "node_kinds, node_kind",
                "Other node types, and the type that this call uses: see [several node "
                "types](#several-node-types).",
            ),
        ),
    ),
    "TunedFile": KeyTable(
        ("key", "default", "meaning"),
        (
            (
                "all",
                "none",
                "Settings of every framework.",
            ),
            (
                "frameworks",
                "none",
                "Settings by framework, added to those of all.",
            ),
        ),
    ),
    "TunedSetting": KeyTable(
        ("key", "default", "meaning"),
        (
            (
                "variables",
                "required",
                "Environment variables, by name.",
            ),
            (
                "compiler",
                "any",
                "Compiler that the setting is for.",
            ),
            (
                "accelerators",
                "`[cpu, cuda]`",
                "Accelerators that the setting is for.",
            ),
            (
                "processors",
                "any",
                "Vendors of processors that the setting is for, as `vendor_id` in `/proc/cpuinfo`; "
                "not set where the vendor is unknown, as on a cluster.",
            ),
            (
                "effect",
                "required",
                "What the setting changes.",
            ),
            (
                "source",
                "required",
                "Address of a page that recommends it.",
            ),
        ),
    ),
}
