"""One run from the command line to its record. This process never imports a framework."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
import traceback
import uuid
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence

from core import precisions
from core.programs import Interrupted, raise_signals
from core.text import shorten

from harness import cores as cores_of
from harness import hardware, kinds, node, nodes, output, provenance, record
from harness.adapter import Mismatch, Unsupported
from harness.command_line import SKIP, each_check, parse
from harness.kind import Kind, TargetMissed, Workload, combined
from harness.kinds import largest_batch
from harness.kinds.largest_batch import LargestBatch
from harness.measuring.checks import check_batches
from harness.processes import launch, machine_lock, outcome
from harness.processes.descendants import adopt_orphans, signal_when_parent_dies
from harness.processes.launch import ForkServer
from harness.report import error_text

#: Advice where all ranks have the same batch of a user's model.
_OWN_BATCHES = (
    "; make must draw it with the framework's own random numbers: each rank has another seed"
)
_CANNOT_DO, _CANNOT_WRITE = 2, 3
#: Variable with the id of the process that the launcher must not outlive.
_PARENT = "FRAMEBENCH_DIE_WITH_PARENT"


@dataclass(frozen=True)
class Setup:
    """State before the ranks start.

    ``run``: unique id; ``folder``: temporary, for the ranks; ``started``: in monotonic seconds,
    after waiting for the devices; ``cores``: cores that this process might use before it locked
    them; ``common``: variables of all ranks; ``forks``: None where each rank is a new process."""

    workload: Workload
    kind: Kind
    run: str
    folder: str
    started: float
    cores: List[int]
    common: Dict[str, str]
    devices: node.Devices
    forks: Optional[ForkServer]


def run_ranks(setup: Setup) -> record.Measured:
    """Start the ranks, wait for them, and judge them. Raises Mismatch, TargetMissed, and what
    :func:`nodes.run_ranks` raises."""
    workload, case = setup.workload, setup.workload.case
    deadline = setup.started + workload.options.time_limit
    if case.nodes == 1:
        share = launch.Share(0, launch.free_addresses(case.devices))
        outcomes, entries = node.run_ranks(
            workload, share, setup.folder, deadline, setup.common, setup.devices, setup.forks
        )
    else:
        outcomes, entries = nodes.run_ranks(workload, setup.run, deadline)
    status, reason = outcome.most_telling(outcomes)
    ranks = [of_rank.fields for of_rank in outcomes]
    metrics: Dict[str, Optional[float]] = {}
    if status == "ok":
        try:
            check(setup, ranks)
            metrics = metrics_of(setup, ranks)
        except Mismatch as mismatch:
            status, reason = "failed", error_text(mismatch)
        except TargetMissed as missed:
            status, reason = "not_converged", shorten(str(missed))
    return record.Measured(status, reason, ranks, entries, metrics)


def check(setup: Setup, ranks: List[Dict[str, Any]]) -> None:
    """Compare the results that the ranks of a successful run left with each other and the request.
    Raises Mismatch, TargetMissed."""
    workload = setup.workload
    check_batches(workload.case, ranks, _OWN_BATCHES if "own" in workload.model_config else "")
    setup.kind.check(workload, ranks)
    imported = ranks[0].get("framework_version", "")
    for name, version in workload.options.pins:
        if name == workload.package and version.split("+")[0] != imported.split("+")[0]:
            raise Mismatch(f"{name}=={version} was asked for, but {imported} was imported")


def metrics_of(setup: Setup, left: Sequence[Mapping[str, Any]]) -> Dict[str, Optional[float]]:
    """Return the metrics of a successful run from its ranks or attempts. Raises Mismatch where one
    is missing."""
    values = {}
    for name, metric in setup.kind.metrics(setup.workload).items():
        try:
            values[name] = combined(metric, left)
        except Exception as error:
            raise Mismatch(f"the ranks left no {name}: {error_text(error)}") from error
        if values[name] is None and not metric.optional:
            raise Mismatch(f"the ranks left no {name}")
    return values


def refusal(setup: Setup, installed: Mapping[str, str]) -> Optional[record.Measured]:
    """Return the result of a run that cannot start, else None. ``installed``: versions of
    all software."""
    workload, case, options = setup.workload, setup.workload.case, setup.workload.options
    if isinstance(setup.kind, LargestBatch):  # the runs of a search report this themselves
        return None
    cannot = workload.unsupported
    if cannot is None and options.accelerator == "cpu" and options.emulated == SKIP:
        sets = hardware.processor().get("instruction_sets", ())
        cannot = precisions.emulated(case.precision, sets) if case.precision else None
    if cannot:
        return record.Measured("unsupported", cannot)
    wrong = (
        provenance.wrong_environment(options.prefix, options.pins, installed)
        or node.too_few_cores(workload, len(setup.cores))
        or provenance.wrong_image(options.image, setup.common)
        or node.elsewhere(options.node)
        or (precisions.contradicted(case.precision, setup.common) if case.precision else None)
    )
    return record.Measured("failed", wrong) if wrong else None


def result(setup: Setup) -> record.Measured:
    """Return the result of the ranks, or of the runs of a search."""
    try:
        if not isinstance(setup.kind, LargestBatch):
            return run_ranks(setup)
        status, reason, attempts, version = largest_batch.search(
            setup.workload, lambda arguments: run(parse(arguments), None)
        )
        metrics = metrics_of(setup, attempts) if status == "ok" else {}
        return record.Measured(status, reason, (), {}, metrics, attempts, version)
    except (machine_lock.MachineLockError, output.OutputError):  # raised by a run of the search
        raise
    except Unsupported as error:
        return record.Measured("unsupported", error_text(error))
    except nodes.Missing as error:
        return record.Measured(error.status, shorten(str(error)))
    except Mismatch as error:
        return record.Measured("failed", error_text(error))
    except Interrupted:
        reached = provenance.limit_reached(os.environ)
        if not reached:
            raise
        return record.Measured("timeout", reached)
    except Exception as error:
        traceback.print_exc()
        return record.Measured("failed", f"the launcher failed: {error_text(error)}")


def measure(setup: Setup) -> Dict[str, Any]:
    """Return the record of this run, also of one that fails or that the scheduler ends at its time
    limit. Raises Interrupted after any other signal; and OutputError and MachineLockError where a
    run of a search does."""
    workload, options = setup.workload, setup.workload.options
    installed = provenance.installed(setup.common, setup.folder)
    where = provenance.capture(options.install_method, setup.cores, installed, setup.common)
    if options.image is not None:
        where.update({"image": options.image, "image_digest": options.image_digest})
    if setup.devices.gpu:
        gpus = where["hardware"]["gpus"]
        where["hardware"]["gpus"] = [gpu for gpu in gpus if gpu["uuid"] == setup.devices.gpu]
    measured = refusal(setup, installed) or result(setup)
    if options.framework:
        where["code"]["computation"] = provenance.computation_digest(
            options.framework, workload.model_config
        )
    version = installed.get(provenance.normal(workload.package), "") if workload.package else ""
    return record.assemble(workload, setup.kind, measured, where, setup.started, version)


@contextlib.contextmanager
def devices_for(workload: Workload, kind: Kind, common: Dict[str, str]) -> Iterator[node.Devices]:
    """Yield the locked devices of a run until the context ends.

    A search locks none, because its runs lock their own. ``common``, the variables of all ranks,
    is changed to show only the GPU of a run side by side. Raises MachineLockError."""
    if isinstance(kind, LargestBatch):
        yield node.Devices()
        return
    options = workload.options
    names = hardware.visible_gpus(common) if options.side_by_side else []
    known = hardware.gpus() if names else []
    places = [hardware.index_of(name, known) for name in names]
    locks = [name if at is None else known[at]["uuid"] for name, at in zip(names, places)]
    with machine_lock.held(machine_lock.owner(options.output), locks) as (files, taken):
        if not names:
            yield node.Devices(files)
            return
        common.update(CUDA_VISIBLE_DEVICES=names[taken], CUDA_DEVICE_ORDER="PCI_BUS_ID")
        # The GPU's share of the cores near all GPUs, so that neighbours get other cores.
        near = cores_of.near_gpus([gpu["pci_address"] for gpu in known], cores_of.allowed())
        place, before = places[taken], cores_of.allowed()
        if place is not None and near[place]:
            os.sched_setaffinity(0, near[place])
        yield node.Devices(files, locks[taken], len(names))
        os.sched_setaffinity(0, before)


def run(workload: Workload, forks: Optional[ForkServer]) -> int:
    """Measure and write the record. Returns the exit status. Raises
    :class:`output.OutputError` and MachineLockError."""
    options = workload.options
    if os.path.lexists(options.output):
        print(output.measured_already(options.output), file=sys.stderr)
        return _CANNOT_DO
    cores_of.restrict(options.cores)
    kind = kinds.load(options.kind, options.kinds)
    cores, common = cores_of.allowed(), node.common_environment(options)
    with devices_for(workload, kind, common) as devices:
        started = time.monotonic()
        output.prepare(options.output, options.log)
        with output.temporary_folder() as folder:
            run_id = uuid.uuid4().hex
            setup = Setup(workload, kind, run_id, folder, started, cores, common, devices, forks)
            made = measure(setup)
            output.write(options.output, run_id, record.encode(made))
    print(record.summary(made, options.output), flush=True)
    return 0


def main(arguments: Sequence[str]) -> int:
    """Return the exit status.

    0 whenever a record was written, whatever it says; 2 for a wrong command line or an existing
    output; 3 where the output cannot be written or the machine cannot be locked; 128 + N after
    signal N, without a record. With several checks, the first status other than 0."""
    if arguments[:1] == [nodes.AGENT]:
        return nodes.main(arguments[1])
    parent = os.environ.pop(_PARENT, None)
    if parent:
        signal_when_parent_dies(signal.SIGTERM)
        # the parent has ended before the kernel could be asked to send a signal
        if str(os.getppid()) != parent:
            return 128 + signal.SIGTERM
    adopt_orphans()
    workloads = [parse(words) for words in each_check(arguments)]
    status = 0
    try:
        raise_signals()
        with ForkServer() as server:
            for workload in workloads:
                try:
                    ended = run(workload, server if len(workloads) > 1 else None)
                except (machine_lock.MachineLockError, output.OutputError) as error:
                    print(error, file=sys.stderr)
                    ended = _CANNOT_WRITE
                status = status or ended
            return status
    except Interrupted as interrupted:
        print(f"interrupted by signal {interrupted.number}: no record was written", file=sys.stderr)
        return 128 + interrupted.number
