"""Expected seconds of runs: the median of their records, else operations / a rough rate."""

from __future__ import annotations

import json
import os
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from core import precisions
from core.axes import READING
from core.case import NONE, Case
from core.declarations import START_SECONDS
from harness.learning.amounts import Amounts, amounts
from harness.samples.folder import BadData
from tasks import TaskError

from ..cases.fitting import Capacity
from ..config.catalog import (
    Catalog,
    forward_multiply_adds,
    framework_declaration,
    gpu_environment,
)
from ..config.measurements import CONVERGE, INDEPENDENT
from ..config.settings import Settings
from ..config.suite import Suite
from ..records import device_peaks
from ..records.run import Run

#: Floating-point operations per second of a core with AVX-512, and of a V100 in fp32: DLPerf's
#: ResNet-50, 390 images/s.
CORE_RATE, GPU_RATE = 6e10, 1e13
#: Rate in other precisions relative to fp32, for a GPU without a data sheet.
OTHER_PRECISIONS = 3
#: Fraction of the data sheet's peak that a model reaches in fp32, and with tensor cores: V100, T4
#: and A100 in the published figures of DLPerf and NVIDIA.
FULL_PART, TENSOR_PART = 0.5, 0.2
#: Time on a core without AVX-512 / time on a core with it: AMD Zen 3 and Intel Sapphire Rapids.
SLOWER = 1.7
#: Slices of compute into which MIG divides a GPU.
SLICES = 7
#: Seconds to build an environment for CPUs. It takes 10 from uv's cache, and 40 at 100 Mbit/s: the
#: nine have 4.6 GB of wheels together. The same for a GB of wheels, and for the kernels that a
#: driver compiles (docs/gpus.md).
ENVIRONMENT_SECONDS, GIGABYTE_SECONDS, KERNEL_SECONDS = 30.0, 60.0, 1800.0
#: Seconds of a run without a framework, and of a benchmark without steps.
ALONE_SECONDS, MEASURING_SECONDS = 1.5, 5.0
#: Seconds of a verification besides building the model, and of the peak benchmark's matmuls.
VERIFYING_SECONDS, PEAK_SECONDS = 2.0, 4.0
#: Time to trace and compile a model's small version, relative to the model: 0.3 (GPT-2) to 0.75
#: (ResNet-50) by PyTorch's Inductor on a CPU.
SMALL_SHARE = 0.5
#: Runs of a search for the largest batch, which take little longer than their start.
SEARCH_RUNS = 12
#: Seconds per parameter to make initial weights.
BUILD_PARAMETER = 3e-8
#: Duration of the second window, with a wait after each step, relative to the first, for frameworks
#: that run ahead.
SECOND_WINDOW_SHARE = 0.3
_TRAINING = ("train", INDEPENDENT)


def expected_seconds(
    folders: dict[Case, str],
    settings: Settings,
    capacity: Capacity,
    catalog: Catalog,
    latest: dict[str, Run],
) -> tuple[dict[Case, float], float]:
    """Return the expected seconds of a run of each case, and the ratio of measured to estimated
    seconds; see :func:`corrected`."""
    measured: dict[str, list[float]] = defaultdict(list)
    for origin, run in latest.items():
        if run.wall_seconds:
            measured[os.path.dirname(origin)].append(run.wall_seconds)
    learned = count_samples(folders, settings, catalog)
    estimated = {}
    for case in folders:
        samples = learned.get(case)
        known_samples = samples if isinstance(samples, Amounts) else None
        estimated[case] = _run_seconds(case, settings.suite, capacity, catalog, known_samples)
    return corrected(estimated, {case: measured[folder] for case, folder in folders.items()})


def corrected(
    estimated: Mapping[Case, float], measured: Mapping[Case, Sequence[float]]
) -> tuple[dict[Case, float], float]:
    """Return the expected seconds of a run of each case, and the median ratio of measured to
    estimated seconds. A case is expected to take the median of its ``measured`` seconds or,
    without any, its estimate times this ratio."""
    took = {case: statistics.median(seconds) for case, seconds in measured.items() if seconds}
    ratios = [seconds / estimated[case] for case, seconds in took.items()]
    ratio = statistics.median(ratios) if ratios else 1.0
    return {case: took.get(case, seconds * ratio) for case, seconds in estimated.items()}, ratio


def count_samples(
    cases: Iterable[Case], settings: Settings, catalog: Catalog
) -> dict[Case, Amounts | str]:
    """Return the sample counts of the cases that train to a target, or the fault of their folder.
    Cases whose folder does not exist on this machine are left out."""
    found: dict[Case, Amounts | str] = {}
    for case in cases:
        if case.mode == CONVERGE:
            folder = training_folder(case, settings)
            visible = str(folder) if folder and folder.is_dir() else None
            model_config = json.dumps(catalog.models[case.model], sort_keys=True)
            count = _counted(model_config, case.input, case.sequence_length, visible)
            if count is not None:
                found[case] = count
    return found


def training_folder(case: Case, settings: Settings) -> Path | None:
    """Return the folder that a training reads; None without one."""
    if case.input in READING:
        return settings.data
    named = dict(case.parameters).get("data", "none")
    return None if named == "none" else Path(named)


@cache
def _counted(
    model_config: str, source: str, length: int | None, folder: str | None
) -> Amounts | str | None:
    """Return the numbers of samples in a data set; the reason, as text, if they cannot be counted;
    None if there is no data set. ``model_config``: as JSON."""
    try:
        return amounts(json.loads(model_config), source, length, folder)
    except (TaskError, BadData, OSError) as error:
        return str(error)


def slowness(capacity: Capacity) -> float:
    """Return the time of a core of this machine relative to one with AVX-512."""
    known = capacity.instruction_sets
    return SLOWER if known and "avx512f" not in known else 1.0


def environment_seconds(file: Path, capacity: Capacity) -> float:
    """Return the seconds to build an environment, with the kernels that the driver compiles."""
    own = gpu_environment(file)
    if own is None:
        return ENVIRONMENT_SECONDS
    compiled = KERNEL_SECONDS * own.compiles_ptx(capacity.gpus)
    return GIGABYTE_SECONDS * own.gigabytes + compiled


def start_seconds(
    framework: str, mode: str, compiler: str, capacity: Capacity, is_small: bool = False
) -> float:
    """Return the seconds of a run apart from its steps and from making weights. ``is_small``: its
    model is a small one."""
    if framework in ("", NONE):
        return ALONE_SECONDS
    declaration = framework_declaration(framework)
    seconds: dict[str, float] = {**START_SECONDS, **declaration.get("start_seconds", {})}
    is_compiled = compiler not in ("", "none", declaration.get("trained_with"))
    begun = seconds["import" if is_small else "start"]
    traced = seconds["train"] * (mode in _TRAINING) + seconds["compile"] * is_compiled
    return (begun + traced * (SMALL_SHARE if is_small else 1)) * slowness(capacity)


def peak_seconds(framework: str, capacity: Capacity) -> float:
    """Return the seconds of the peak-FLOPS benchmark of a framework in a precision, including a
    second process that identifies its library."""
    return PEAK_SECONDS + start_seconds(framework, "", "", capacity, is_small=True)


def step_seconds(case: Case, steps: int, capacity: Capacity, catalog: Catalog) -> float:
    """Estimate the seconds of this many steps; return 0 for a benchmark without steps."""
    if not _has_steps(case):
        return 0.0
    # the samples of a replica are sharded over its devices
    samples = steps * case.samples_of_replica * case.replicas / case.devices
    return samples * _sample_seconds(case, capacity, catalog, case.mode in _TRAINING)


def _has_steps(case: Case) -> bool:
    return case.is_step or case.mode == INDEPENDENT


def _run_seconds(
    case: Case, suite: Suite, capacity: Capacity, catalog: Catalog, learned: Amounts | None
) -> float:
    """Estimate the seconds of a run. ``learned``: numbers of samples of a training to a target."""
    start = start_seconds(case.framework, case.mode, case.compiler, capacity)
    if _has_steps(case):
        timed, warmup = suite.steps.timed, suite.steps.warmup
        window = step_seconds(case, timed.at_least, capacity, catalog)
        if timed.seconds and case.is_step:
            window = max(window, timed.seconds) * (1 + SECOND_WINDOW_SHARE)
        parameters = int(catalog.models[case.model].get("trainable_parameters") or 0)
        start += parameters * BUILD_PARAMETER * slowness(capacity)
        return start + step_seconds(case, warmup.at_least, capacity, catalog) + window
    start += MEASURING_SECONDS * slowness(capacity)
    if learned is None:
        return start
    chosen = dict(case.parameters)
    epochs, each = int(chosen["epochs"]), int(chosen["epoch_steps"])
    trained = epochs * (each * int(case.batch_total or 0) or learned.train)
    scored = (epochs + 1) * learned.held_out  # held-out data are also scored before the first epoch
    return start + sum(
        samples * _sample_seconds(case, capacity, catalog, trains) / case.devices
        for samples, trains in ((trained, True), (scored, False))
    )


def _sample_seconds(case: Case, capacity: Capacity, catalog: Catalog, trains: bool) -> float:
    model = catalog.models[case.model]
    operations = 2 * forward_multiply_adds(model, case.sequence_length)
    cores = capacity.cores_per_device
    if cores is None:
        rate = _gpu_rate(case, capacity)
    else:
        declared = catalog.frameworks.get(case.framework, {}).get("slow_rates", {})
        slow = declared.get("train" if trains else "inference", {})
        rate = min(CORE_RATE * cores, slow.get(model.get("definition"), CORE_RATE * cores))
        rate /= slowness(capacity)
    # the backward pass costs about two forward passes
    return operations * (3 if trains else 1) / rate


def _gpu_rate(case: Case, capacity: Capacity) -> float:
    """Return the floating-point operations per second of the slowest GPU on a node."""
    is_full = case.precision == precisions.default()
    rates = []
    for gpu in capacity.gpus:
        kind, _, profile = gpu.name.partition(" MIG ")
        if peak := device_peaks.gpu_tflops(kind, case.precision):
            # The profile of an instance of MIG, such as 1g.10gb, begins with its slices.
            slices = int(profile.partition("g")[0]) if profile else SLICES
            part = FULL_PART if is_full else TENSOR_PART
            rates.append(1e12 * peak * part * slices / SLICES)
    return min(rates, default=GPU_RATE * (1 if is_full else OTHER_PRECISIONS))
