"""Capacity of the machine that executes runs, and the cases that do not fit it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from core import parallelism, precisions
from core.case import OR_ON_GPUS, PER_CORE, Case
from core.declarations import DEFINITION, LACKING
from core.gpus import Gpu
from core.limits import parse_limit

from ..config.catalog import Catalog
from ..config.settings import SOURCE, Settings
from ..config.validation import ConfigError
from ..machine.local import Machine
from . import matrix

#: For a batch per GiB: most GiB that count, GiB assumed for a GPU that does not report its memory,
#: and nominal / reported memory (a GPU with 16 GB reports about 15).
MOST_GIB, UNKNOWN_GIB, NOMINAL = 80, 16, 1.1
#: Arrays of the size of the weights that an optimizer keeps.
_MOMENTS = {"sgd": 1, "adamw": 2, "lamb": 2}


class LeftOut(NamedTuple):
    """A case that is not run here, and the reason."""

    case: Case
    reason: str


@dataclass(frozen=True)
class Capacity:
    """Capacity of a machine that executes runs. ``cores_per_device`` is None on GPUs. ``memory``:
    bytes that a run may use per node; 0 on GPUs and if unknown."""

    accelerator: str
    machine: Machine
    devices_per_node: int
    cores_per_device: int | None
    memory: int = 0

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        """GPUs of a node that runs use; empty if nothing is known of them."""
        return self.machine.devices if self.accelerator == "cuda" else ()

    @property
    def instruction_sets(self) -> frozenset[str]:
        """Instruction sets of the CPUs that runs use; empty if unknown."""
        return self.machine.instruction_sets if self.accelerator == "cpu" else frozenset()


def why_lacking(case: Case, capacity: Capacity, catalog: Catalog) -> str:
    """Return why a case cannot run in its precision here: the CPU emulates it, or the framework
    declares that it lacks it; "" if it may work."""
    sets = capacity.instruction_sets
    is_known = sets and case.precision in precisions.known()
    if is_known and (why := precisions.emulated(case.precision, sets)):
        return why
    declared = catalog.frameworks.get(case.framework)
    if not declared or not case.precision:
        return ""
    lacking = f"{declared['title']} has no {case.precision}"
    if case.precision not in declared["precisions"]:
        return lacking
    if capacity.accelerator == "cpu" and case.is_step:
        values = {name: getattr(case, name) for name in LACKING if name != DEFINITION}
        values[DEFINITION] = catalog.models[case.model].get(DEFINITION)
        for lack in declared["cpu_lacks"]:
            if all(values[name] in some for name, some in lack.items() if name != "reason"):
                return f"{lacking} on CPUs: {lack['reason']}"
    return ""


def accelerator_of(settings: Settings, machine: Machine) -> str:
    """Return the accelerator that the configuration asks for, or that the machine has. Raises
    ConfigError if the machine may have GPUs that do not work: no CPU is measured in their place."""
    if machine.fault and settings.accelerator != "cpu":
        raise ConfigError(
            f"{SOURCE}: accelerator: found {settings.accelerator!r}, but {machine.fault}, or cpu"
        )
    if settings.accelerator == "auto":
        return "cuda" if machine.gpus else "cpu"
    return settings.accelerator


def on_machine(settings: Settings, machine: Machine) -> Settings:
    """Return the settings; on GPUs with the suite that the key ``on_gpus`` names, if it is set."""
    suite = settings.suite.on_gpus
    if suite is None or accelerator_of(settings, machine) == "cpu":
        return settings
    return settings.model_copy(update={"suite": suite})


def cases_here(
    settings: Settings, catalog: Catalog, machine: Machine
) -> tuple[dict[Case, int], Capacity]:
    """Return the cases of the suite with their stages, and the capacity of the machine.

    A batch per core is multiplied by the cores of a device. A batch per GiB is multiplied by the
    memory of the smallest GPU and rounded down to a power of two, so that GPUs with about equal
    memory get equal batches. Raises ConfigError for a batch per core on GPUs, and a batch per GiB
    on CPUs."""
    stages = matrix.cases(settings.suite, catalog, machine.gpus)
    here = capacity(settings, machine, [*stages])
    return {_with_batch(case, here, settings): stage for case, stage in stages.items()}, here


def _with_batch(case: Case, capacity: Capacity, settings: Settings) -> Case:
    cores = capacity.cores_per_device
    on_cpu, _, on_gpus = str(case.batch_per_device).rpartition(OR_ON_GPUS)
    number, per, unit = ((cores and on_cpu) or on_gpus).partition(" ")
    if not per:
        return case._replace(batch_per_device=int(number)) if on_cpu else case
    if (per + unit == PER_CORE) != bool(cores):
        raise ConfigError(
            f"{settings.suite.path}: batch_per_device: found {case.batch_per_device!r} on "
            f"{'a CPU' if cores else 'GPUs'}; allowed: whole numbers, or max"
        )
    if cores:
        return case._replace(batch_per_device=int(number) * cores)
    known = (gpu.memory_bytes / 2**30 for gpu in capacity.gpus if gpu.memory_bytes)
    gibibytes = min(min(known, default=UNKNOWN_GIB), MOST_GIB)
    batch = 2 ** math.floor(math.log2(int(number) * gibibytes * NOMINAL))
    return case._replace(batch_per_device=batch)


def capacity(settings: Settings, machine: Machine, cases: list[Case]) -> Capacity:
    """Return the devices of this machine: its GPUs, or its physical cores split into devices.

    ``cores_per_device: auto`` divides the physical cores by the largest number of devices per node
    of any case; cases with more devices than cores do not count. With fewer physical cores than
    devices, hardware threads are divided instead, and the figures are flagged.

    Raises ConfigError for a CUDA request without GPUs and for more cores than there are.
    """
    accelerator = accelerator_of(settings, machine)
    if settings.side_by_side and (accelerator == "cpu" or machine.gpus == 1):
        raise ConfigError(
            "config: side_by_side: found True; allowed on this machine: false, because it is for "
            "runs of one GPU each on several GPUs"
        )
    if accelerator == "cuda":
        if not machine.gpus:
            raise ConfigError(
                "config: accelerator: found 'cuda', but this machine shows no NVIDIA GPU; "
                "allowed here: auto, cpu"
            )
        return Capacity("cuda", machine, machine.gpus, None)
    if settings.cores_per_device == "auto":
        possible = [c for c in cases if c.divides and c.devices_per_node <= machine.cores]
        most = max((c.devices_per_node for c in possible), default=1)
        whole = machine.physical_cores or machine.cores
        cores = (whole if most <= whole else machine.cores) // most
    else:
        cores = int(settings.cores_per_device)
        if cores > machine.cores:
            raise ConfigError(
                f"config: cores_per_device: found {cores}; allowed on this machine: auto, or at "
                f"most {machine.cores}"
            )
    memory = machine.memory_bytes
    if settings.memory_limit:
        memory = min(memory, parse_limit(settings.memory_limit).bytes_of(memory))
    return Capacity("cpu", machine, machine.cores // cores, cores, memory)


def fit(
    cases: list[Case], capacity: Capacity, catalog: Catalog
) -> tuple[list[Case], list[LeftOut]]:
    """Split cases into those that fit the machine and those that do not, with the reason."""
    holder = "a node, a run may hold"
    reasons = {
        case: _misfit(case, capacity)
        or _too_large(case, capacity.memory, holder, catalog, case.devices_per_node)
        or _misfit_on_gpus(case, capacity.gpus, catalog)
        for case in cases
    }
    left = [LeftOut(case, reason) for case, reason in reasons.items() if reason]
    return [case for case, reason in reasons.items() if not reason], left


def _too_large(case: Case, memory: int, holder: str, catalog: Catalog, devices: int = 1) -> str:
    """Return why the weights, moments and gradients of a case do not fit into memory, with the
    arithmetic; "" if they may fit.

    Activations and the framework need more memory; the run would end as ``oom`` minutes later.
    Gradients count where they are clipped, because clipping needs all of them at once.
    ``memory``: bytes that ``devices`` share, 0 if unknown; ``holder``: text for their owner.
    """
    model_config = catalog.models.get(case.model, {})
    parameters = model_config.get("trainable_parameters")
    precision = precisions.known().get(case.precision)
    if not memory or not case.is_step or not parameters or precision is None:
        return ""
    hyper, what, arrays = model_config.get("hyperparameters", {}), "weights", 1
    if case.mode == "train":
        clips = "clip_global_norm" in hyper
        what = "weights, moments, gradients" if clips else "weights, moments"
        arrays += _MOMENTS.get(hyper.get("optimizer"), 0) + clips
    each = precisions.BYTES.get(precision.storage, 0)
    shards = case.devices // parallelism.layout_of(case.parallelism, case.devices).data
    needed = parameters * each * arrays / shards * devices
    if memory >= needed:
        return ""
    ways = f" / {shards} devices" if shards > 1 else ""
    several = f" x {devices} devices" if devices > 1 else ""
    return (
        f"{parameters:,} parameters x {each} bytes x {arrays} ({what}){ways}{several} take "
        f"{needed / 2**30:.1f} GiB of {holder} {memory / 2**30:.1f} GiB"
    )


def _misfit_on_gpus(case: Case, gpus: Sequence[Gpu], catalog: Catalog) -> str:
    """Return why a case cannot run on these GPUs; "" if it may, or nothing is known of them."""
    if case.devices > 1 and any(gpu.is_instance for gpu in gpus):
        return "needs several devices, but CUDA shows a process only one instance of MIG"
    own = catalog.frameworks.get(case.framework, {}).get("capability", {}).get(case.precision, "")
    for gpu in gpus:
        if reason := precisions.unsupported(case.precision, gpu.capability, own):
            return f"{gpu.name} {reason}" + (f" in {case.framework}" if own else "")
    memory, name = min(
        ((gpu.memory_bytes, gpu.name) for gpu in gpus if gpu.memory_bytes), default=(0, "")
    )
    return _too_large(case, memory, f"a GPU, {name} has", catalog)


def _misfit(case: Case, capacity: Capacity) -> str:
    if reason := parallelism.mismatch(case.parallelism, case.devices):
        return reason
    if not case.divides:
        return f"a total batch of {case.batch_total} is not divisible by {case.parts_text}"
    if why := capacity.machine.named.get(case.node):
        return f"node {case.node} cannot be measured: {why}"
    if case.nodes > capacity.machine.nodes:
        return f"needs {case.nodes} nodes, but there is only {capacity.machine.nodes}"
    if case.devices_per_node > capacity.devices_per_node:
        kind = "GPUs" if capacity.accelerator == "cuda" else f"x {capacity.cores_per_device} cores"
        verb = "is" if capacity.devices_per_node == 1 else "are"
        return (
            f"needs {case.devices_per_node} devices per node, here {verb} "
            f"{capacity.devices_per_node} ({kind})"
        )
    return ""
