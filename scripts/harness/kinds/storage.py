"""File system performance as fio reports it: bandwidth, operations per second and latencies.

Jobs run one after the other, past the page cache: sequential and random reads, writes and both, on
a file that is created and removed again. No job touches a raw device.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from functools import partial
from typing import Any, Dict, Iterator, Mapping, Optional, Tuple

from core import programs

from harness.adapter import Mismatch, Unsupported
from harness.kind import Context, Kind, Metric, Parameter, Workload, above_zero, at_least
from harness.kinds.network import require_program

READ, WRITE = "read", "write"
#: For each job: fio's name of its mode, and the directions that fio reports.
JOBS: Dict[str, Tuple[str, Tuple[str, ...]]] = {
    "sequential_read": ("read", (READ,)),
    "sequential_write": ("write", (WRITE,)),
    "sequential_mixed": ("readwrite", (READ, WRITE)),
    "random_read": ("randread", (READ,)),
    "random_write": ("randwrite", (WRITE,)),
    "random_mixed": ("randrw", (READ, WRITE)),
}
#: Reads among the requests of a mixed job, in percent.
READS = 80
#: Percentiles of the completion latency; SuperBench reports the last three.
PERCENTILES = (50, 95, 99, 99.9)
#: Units of the metrics by fio's figures, and factors from fio's units.
UNITS = {"bw_bytes": ("GB/s", 1e-9), "iops": ("1/s", 1.0)}
UNITS.update({f"p{percent}": ("us", 1e-3) for percent in PERCENTILES})
#: Bytes of a random and of a sequential request.
RANDOM_BYTES, SEQUENTIAL_BYTES = 4096, 128 * 1024


def named(job: str) -> Dict[str, str]:
    """Return the metric names of a job, with the direction of each."""
    _, sides = JOBS[job]
    return {job: sides[0]} if len(sides) == 1 else {f"{job}_{side}": side for side in sides}


class Storage(Kind):
    """File system: fio's bandwidth, operations and latencies, in GB/s, 1/s and microseconds."""

    needs = None
    parameters = (
        Parameter(
            "folder", lambda text: os.path.abspath(text) if text else "", "",
            "folder for the file, as storage=DIR names it", "",
        ),
        Parameter("file_bytes", at_least(RANDOM_BYTES), "bytes", "of the file", 256 * 2**20),
        Parameter("seconds", above_zero, "s", "how long each job runs", 5.0),
        Parameter("depth", at_least(1), "", "concurrent requests", 16),
    )  # fmt: skip

    def metrics(self, workload: Workload) -> Dict[str, Metric]:
        shown = {"bw_bytes": "bandwidth", "iops": "iops"}
        metrics = {}
        for name in (name for job in JOBS for name in named(job)):
            for figure, (unit, _) in UNITS.items():
                better = "lower" if unit == "us" else "higher"
                rank_value = partial(_figure, name, figure)
                metric = Metric(unit, better, "first", rank_value, optional=unit == "us")
                metrics[f"{name}_{shown.get(figure, 'latency_' + figure)}"] = metric
        return metrics

    def measure(self, context: Context) -> None:
        fields, parameters = context.fields, context.workload.parameters
        if context.rank_context.world_size > 1:
            raise Unsupported("one process measures the file; allowed: one device")
        folder = parameters["folder"]
        if not folder:
            raise Unsupported("no folder is named: set storage=DIR, or --parameter folder=DIR")
        if not os.path.isdir(folder):
            raise Mismatch(f"folder: {folder} is not a folder")
        require_program("fio", "fio")
        fields["fio"] = {}
        start = time.perf_counter()
        with random_file(folder, parameters["file_bytes"]) as path:
            for job in JOBS:
                fields["fio"].update(context.phase(job, partial(run, path, job, parameters)))
        fields["window_start"], fields["window_seconds"] = start, time.perf_counter() - start


@contextlib.contextmanager
def random_file(folder: str, size: int) -> Iterator[str]:
    """Yield the path of a temporary file of ``size`` random bytes. Raises Mismatch where it cannot
    be made."""
    path = os.path.join(folder, f"framebench-storage-{os.getpid()}.tmp")
    try:
        try:
            with open(path, "xb") as file:
                for start in range(0, size, 2**20):
                    file.write(os.urandom(min(2**20, size - start)))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise Mismatch(f"folder: no file can be written there: {error.strerror}") from None
        yield path
    finally:
        with contextlib.suppress(OSError):
            os.unlink(path)


def run(path: str, job: str, parameters: Mapping[str, Any]) -> Dict[str, Dict[str, Any]]:
    """Run a job and return fio's results by metric. Raises Unsupported where the file system has no
    direct access, Mismatch where fio fails or did nothing."""
    block = RANDOM_BYTES if job.startswith("random") else SEQUENTIAL_BYTES
    command = [
        "fio", f"--name={job}", f"--filename={path}", f"--size={parameters['file_bytes']}",
        f"--bs={block}", f"--rw={JOBS[job][0]}", f"--rwmixread={READS}", "--time_based",
        f"--runtime={max(1, round(1000 * parameters['seconds']))}ms", "--ioengine=libaio",
        f"--iodepth={parameters['depth']}", "--direct=1", "--numjobs=1", "--randrepeat=1",
        "--allow_file_create=0", "--output-format=json",
        f"--percentile_list={':'.join(map(str, PERCENTILES))}",
    ]  # fmt: skip
    done = programs.run(command)
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        why = lines[0] if lines else f"exit status {done.returncode}"
        if "O_DIRECT" in done.stderr or "Invalid argument" in done.stderr:
            raise Unsupported(f"the file system has no access past the page cache: {why}")
        raise Mismatch(f"fio failed: {why}")
    return {name: figures(done.stdout, side) for name, side in named(job).items()}


def figures(text: str, direction: str) -> Dict[str, Any]:
    """Return the results of a direction from fio's JSON of a single job: bw_bytes, iops, total_ios,
    runtime, percentiles of clat_ns, and the version. Raises Mismatch where nothing was done."""
    try:
        answer = json.loads(text[text.index("{") :])  # warnings may precede the object
        (job,) = answer["jobs"]
        side = job[direction]
        figures = {"version": answer["fio version"], "error": job["error"]}
        for name in ("bw_bytes", "iops", "total_ios", "runtime"):
            figures[name] = side[name]
        for percent in PERCENTILES:
            figures[f"p{percent}"] = side["clat_ns"].get("percentile", {}).get(f"{percent:.6f}")
    except (ValueError, KeyError, TypeError) as error:
        raise Mismatch(f"fio's output is not the result of one job: {error!r}") from None
    if figures["error"]:
        raise Mismatch(f"fio reports error {figures['error']}")
    if not figures["total_ios"]:
        raise Mismatch(f"fio has done no {direction} at all")
    return figures


def _figure(job: str, name: str, rank: Mapping[str, Any]) -> Optional[float]:
    value = rank["fio"][job][name]
    return None if value is None else UNITS[name][1] * value
