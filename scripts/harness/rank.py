"""One rank of a run: load the adapter, check what was built, warm up, measure, report."""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import json
import math
import os
import resource
import signal
import sys
import time
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional

from harness.adapter import Adapter, Case, Mismatch, Place, Unsupported
from harness.kinds import peak
from harness.kinds.parity import Comparison, compare
from harness.machine.cores import numa_nodes, parse_list
from harness.measuring import libraries, preflight, split, synthetic
from harness.measuring.loading import load_adapter
from harness.measuring.settling import is_settled, settled_after
from harness.measuring.window import Window, measure
from harness.messages.report import Report, first_line, shorten
from harness.processes.parent_death import signal_when_parent_dies

_SECONDS_TO_LEAVE = 10
_SECONDS_TO_SPLIT = 60  # at least; else as long as the run took until then


def place_from(environment: Mapping[str, str], spec: Dict[str, Any]) -> Place:
    """The rank's place. Raises KeyError where a variable is missing and ValueError where
    WORLD_SIZE contradicts FRAMEBENCH_ADDRESSES."""
    addresses = environment["FRAMEBENCH_ADDRESSES"].split(",")
    if int(environment["WORLD_SIZE"]) != len(addresses):
        raise ValueError(
            f"WORLD_SIZE is {environment['WORLD_SIZE']}, but there are {len(addresses)} addresses"
        )
    return Place(
        rank=int(environment["RANK"]),
        local_rank=int(environment["LOCAL_RANK"]),
        addresses=addresses,
        accelerator=spec["accelerator"],
        threads=spec["threads"],
        seed=spec["seed"],
    )


def offer_to_the_kernel() -> None:
    """Where memory runs out all the same, the kernel is to kill this process, and what it starts,
    before any other on the machine."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")


def peak_host_memory() -> int:
    """Peak resident memory of this process in bytes."""
    try:
        with open("/proc/self/status") as file:
            for line in file:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def check_processes(adapter: Adapter, world_size: int) -> int:
    """How many ranks an all-reduce reaches. Raises Mismatch if not all."""
    reached = adapter.all_reduce(1.0)
    if reached != world_size:
        raise Mismatch(f"an all-reduce of 1 gives {reached:g} over {world_size} ranks")
    return world_size


def check_parameters(built: int, expected: int) -> int:
    """Raises Mismatch where the model as built is not the model of the facts."""
    if built != expected:
        raise Mismatch(f"the model has {built} trainable parameters, not {expected}")
    return built


def check_products(precision: str, products: Dict[str, int]) -> Dict[str, int]:
    """Raises Mismatch where the observed matrix products do not have the precision asked for:
    all in float32 under fp32, at least three of four in a half precision under amp, which leaves
    some in float32 by the framework's own rules."""
    total = sum(products.values())
    if total < 1:
        raise Mismatch("no matrix product was observed, so the precision is not proved")
    single = products.get("float32", 0)
    half = products.get("float16", 0) + products.get("bfloat16", 0)
    if precision == "fp32" and single != total:
        others = ", ".join(sorted(set(products) - {"float32"}))
        raise Mismatch(f"fp32, but {total - single} of {total} products ran in {others}")
    if precision == "amp" and half < 0.75 * total:
        raise Mismatch(f"amp without effect: {single} of {total} products ran in float32")
    return products


def check_value(value: float, mode: str, step: int) -> float:
    """Raises ArithmeticError where a loss or output is no finite number."""
    if not math.isfinite(value):
        what = "loss" if mode == "train" else "output"
        raise ArithmeticError(f"{what} is {value} at step {step}")
    return value


def check_cores(asked: List[int]) -> List[int]:
    """The cores this thread may use now. Raises Mismatch where a framework undid the pinning."""
    used = sorted(os.sched_getaffinity(0))
    if asked and not set(used) <= set(asked):
        raise Mismatch(f"pinned to cores {asked}, but the framework moved to {used}")
    return used


def all_settled(adapter: Adapter, seconds: List[float]) -> bool:
    """Whether the step time has settled in all ranks: they go on together or stop together."""
    settled = is_settled(seconds)
    if adapter.place.world_size == 1:
        return settled
    return adapter.all_reduce(float(settled)) == adapter.place.world_size


class WarmUp(NamedTuple):
    """How many steps were run, and what reading the value of the first took."""

    steps: int
    read_seconds: float


def warm_up(
    adapter: Adapter, mode: str, steps: int, limit: Optional[int], fields: Dict[str, Any]
) -> WarmUp:
    """Run ``steps`` steps one at a time, then more until the step time has settled or ``limit`` is
    reached (None: no more). Their seconds, the first value, and after how many steps it had settled
    (None: not) go into ``fields``."""
    seconds: List[float] = []
    read_seconds = 0.0
    fields["warmup_step_seconds"] = seconds
    fields["settled_after"] = None
    for number in range(1, (limit or steps) + 1):
        adapter.synchronize()
        start = time.perf_counter()
        handle = adapter.step()
        adapter.synchronize()
        seconds.append(time.perf_counter() - start)
        if number == 1:
            start = time.perf_counter()
            fields["first_value"] = adapter.read(handle)
            read_seconds = time.perf_counter() - start
            check_value(fields["first_value"], mode, number)
        if limit and number >= steps and all_settled(adapter, seconds):
            fields["settled_after"] = number
            break
    if not limit:
        fields["settled_after"] = settled_after(seconds)
    return WarmUp(len(seconds), read_seconds)


def run_case(adapter: Adapter, spec: Dict[str, Any], cores: List[int], report: Report) -> None:
    """All phases of a run in this rank, in the order of the adapter's contract. Raises what the
    adapter raises, Mismatch where what ran is not what was asked."""
    case, place, fields = adapter.case, adapter.place, report.fields
    phases: Dict[str, float] = {}
    fields["phases"] = phases

    def phase(name: str, key: str, work: Callable[[], Any]) -> Any:
        report.enter(name)
        start = time.perf_counter()
        result = work()
        phases[key] = time.perf_counter() - start
        return result

    phase("import", "import_seconds", adapter.start)
    fields["framework_version"] = adapter.version()
    fields["device"] = adapter.device()
    if place.world_size > 1:
        fields["processes"] = check_processes(adapter, place.world_size)
        fields["preflight"] = phase(
            "pre-flight check", "preflight_seconds", lambda: preflight.check(adapter)
        )
    if spec["probe"]:
        probe_device(adapter, cores, report)
        return
    reference = spec["parity"] and Comparison(spec["parity"])
    if reference:
        batch = dict(reference.arrays(f"batch-{place.rank}"))
    else:
        batch = synthetic.make_batch(
            adapter.facts["inputs"],
            case.batch_per_device,
            case.sequence_length,
            place.seed,
            place.rank,
        )
    phase("build", "build_seconds", lambda: adapter.build(batch))
    fields["settings"] = adapter.settings()
    fields["trainable_parameters"] = int(adapter.trainable_parameters())
    check_parameters(fields["trainable_parameters"], adapter.facts["trainable_parameters"])
    fields["products"] = phase("product count", "products_seconds", adapter.product_dtypes)
    check_products(case.precision, fields["products"])
    if reference:
        fields["parity"] = compare(adapter, reference, report.enter)
        fields["compiled"] = adapter.compiled()
        fields["weights_checksum"] = adapter.weights_checksum()
        return
    warmed = phase(
        "warm-up",
        "warmup_seconds",
        lambda: warm_up(adapter, case.mode, spec["warmup_steps"], spec["warmup_limit"], fields),
    )
    fields["compiled"] = adapter.compiled()
    fields["cores"] = check_cores(cores)
    report.enter("timed window")
    window = measure(adapter, spec["timed_steps"], warmed.read_seconds)
    phases["window_seconds"] = window.seconds
    report.enter("end")
    note_window(adapter, window, warmed.steps + spec["timed_steps"], fields)
    fields["libraries"] = libraries.in_use()


def probe_device(adapter: Adapter, cores: List[int], report: Report) -> None:
    """Time products of matrices, in the dtype that the case's precision asks for."""

    def check(dtype: str) -> None:
        report.fields["products"] = check_products(adapter.case.precision, {dtype: 1})

    report.enter("probe")
    report.fields["probe"] = peak.measure(adapter, check)
    report.fields["cores"] = check_cores(cores)


def note_window(adapter: Adapter, window: Window, step: int, fields: Dict[str, Any]) -> None:
    """Put the results of the window, which ended with step number ``step``, into ``fields``."""
    fields["peak_device_memory_bytes"] = adapter.peak_device_memory()
    fields["peak_host_memory_bytes"] = peak_host_memory()
    fields["window_start"] = window.start
    fields["window_seconds"] = window.seconds
    fields["step_seconds"] = window.step_seconds
    fields["last_value"] = window.last_value
    check_value(window.last_value, adapter.case.mode, step)
    train_together = adapter.place.world_size > 1 and adapter.case.mode == "train"
    fields["weights_checksum"] = adapter.weights_checksum() if train_together else None


def split_step(adapter: Adapter, steps: int, seconds: float, report: Report) -> None:
    """Time the parts of a step behind everything that counts: whatever goes wrong here says so in
    its own place, and a rank that hangs is ended by the kernel. ``seconds``: of the run so far."""
    report.fields["split"] = {"reason": "it was ended: it took too long", "parts": []}
    report.succeed()
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(max(_SECONDS_TO_SPLIT, int(seconds)))
    try:
        found = {"reason": "", "parts": split.measure(adapter, steps, seconds)}
    except Exception as error:
        found = {"reason": describe(error, adapter)["reason"], "parts": []}
    signal.alarm(0)
    report.fields["split"] = found


def describe(error: BaseException, adapter: Optional[Adapter]) -> Dict[str, str]:
    """Status and reason for an exception that ended the rank."""
    if isinstance(error, Unsupported):
        return {"status": "unsupported", "reason": shorten(str(error))}
    memory = isinstance(error, MemoryError)
    if adapter is not None and not isinstance(error, Mismatch):
        with contextlib.suppress(Exception):  # a framework that was not even imported cannot tell
            memory = memory or adapter.out_of_memory(error)
    return {"status": "oom" if memory else "failed", "reason": first_line(error)}


def _leave(status: int) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def main(spec_path: str) -> int:
    """Run the rank whose place is in the environment. The results go to the folder named by the
    spec; the exit status only says whether they are good."""
    # Before the spec is opened: a launcher that ends sooner has removed it, one that ends later
    # takes this rank along.
    signal_when_parent_dies(signal.SIGKILL)
    offer_to_the_kernel()
    faulthandler.enable()
    with open(spec_path, encoding="utf-8") as file:
        spec = json.load(file)
    begin = time.perf_counter()
    place = place_from(os.environ, spec)
    report = Report(spec["folder"], place.rank, spec["node"])
    adapter: Optional[Adapter] = None
    try:
        cores = parse_list(os.environ.get("FRAMEBENCH_CORES", ""))
        if cores:
            os.sched_setaffinity(0, cores)
        report.fields["numa_nodes"] = numa_nodes(os.sched_getaffinity(0))
        report.enter("start")
        case = Case(**spec["case"])
        adapter = load_adapter(spec["framework_folder"])(case, spec["facts"], place)
        run_case(adapter, spec, cores, report)
    except BaseException as error:  # SystemExit too: a framework must not end a rank in silence
        report.fail(error=error, **describe(error, adapter))
        print(report.fields["traceback"], file=sys.stderr)
        _leave(1)  # not waiting for threads that wait for the other ranks
    gc.unfreeze()
    if spec["split_steps"] and "step_seconds" in report.fields and case.mode == "train":
        split_step(adapter, spec["split_steps"], time.perf_counter() - begin, report)
    report.succeed()
    # The result is safe; a framework that hangs while it leaves is ended by the kernel.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(_SECONDS_TO_LEAVE)
    adapter.stop()
    return 0
