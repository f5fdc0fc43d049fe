"""File system performance as fio reports it: bandwidth, operations per second and latencies.

Jobs run one after the other, past the page cache: sequential and random reads, writes and both, on
a file that is created and removed again, and reads of many small files, each as a whole, as a
loader of samples does. No job touches a raw device.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from functools import partial
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

from core import programs

from harness.adapter import Mismatch, Unsupported
from harness.kind import Context, Kind, Metric, Parameter, Workload, above_zero, at_least

READ, WRITE = "read", "write"
SMALL_FILES, LARGE = "small_files", "large"
#: For each job: fio's name of its mode, and the directions that fio reports.
JOBS: Dict[str, Tuple[str, Tuple[str, ...]]] = {
    "sequential_read": ("read", (READ,)),
    "sequential_write": ("write", (WRITE,)),
    "sequential_mixed": ("readwrite", (READ, WRITE)),
    "random_read": ("randread", (READ,)),
    "random_write": ("randwrite", (WRITE,)),
    "random_mixed": ("randrw", (READ, WRITE)),
    SMALL_FILES: ("randread", (READ,)),
}
#: Reads among the requests of a mixed job, in percent.
READS = 80
#: Percentiles of the completion latency; SuperBench reports the last three.
PERCENTILES = (50, 95, 99, 99.9)
#: Units of the metrics by fio's figures, and factors from fio's units.
UNITS = {"bw_bytes": ("GB/s", 1e-9), "iops": ("1/s", 1.0)}
UNITS.update({f"p{percent}": ("us", 1e-3) for percent in PERCENTILES})
#: Bytes of a random and of a sequential request, and of a small file: an image of ImageNet has
#: 110 KB. Only whole disk blocks go past the page cache.
RANDOM_BYTES, SEQUENTIAL_BYTES, SMALL_FILE_BYTES = 4096, 128 * 1024, 112 * 1024


def named(job: str) -> Dict[str, str]:
    """Return the metric names of a job, with the direction of each."""
    _, sides = JOBS[job]
    return {job: sides[0]} if len(sides) == 1 else {f"{job}_{side}": side for side in sides}


class Storage(Kind):
    """File system: fio's bandwidth, operations and latencies, in GB/s, 1/s and microseconds."""

    needs = None
    axes = ("nodes", "devices_per_node")
    parameters = (
        Parameter(
            "folder", lambda text: os.path.abspath(text) if text else "", "",
            "folder for the file, as storage=DIR names it", "",
        ),
        Parameter("file_bytes", at_least(RANDOM_BYTES), "bytes", "of the file", 256 * 2**20),
        Parameter("seconds", above_zero, "s", "how long each job runs", 5.0),
        Parameter("depth", at_least(1), "", "requests under way at once", 16),
        Parameter(SMALL_FILES, at_least(1), "", "how many small files there are", 1000),
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
            raise Mismatch(f"folder: {folder} is no folder")
        if shutil.which("fio") is None:
            raise Unsupported("there is no fio here: install it (Debian: apt-get install fio)")
        fields["fio"] = {}
        start = time.perf_counter()
        with storage_files(folder, parameters) as files:
            for job in JOBS:
                fields["fio"].update(context.phase(job, partial(run, files, job, parameters)))
        fields["window_start"], fields["window_seconds"] = start, time.perf_counter() - start


@contextlib.contextmanager
def storage_files(folder: str, parameters: Mapping[str, Any]) -> Iterator[str]:
    """Yield a temporary folder with a large file and small ones, named as by fio, full of random
    bytes. Raises Mismatch where files cannot be made."""
    made = os.path.join(folder, f"framebench-storage-{os.getpid()}.tmp")
    sizes = {os.path.join(made, LARGE): parameters["file_bytes"]}
    for number in range(parameters[SMALL_FILES]):
        sizes[os.path.join(made, f"{SMALL_FILES}.0.{number}")] = SMALL_FILE_BYTES
    try:
        try:
            os.mkdir(made)
            for path, size in sizes.items():
                with open(path, "xb") as file:
                    for start in range(0, size, 2**20):
                        file.write(os.urandom(min(2**20, size - start)))
            for path in sizes:  # all at once, because one by one each would be waited for
                with open(path, "rb") as file:
                    os.fsync(file.fileno())
        except OSError as error:
            raise Mismatch(f"folder: no file can be written there: {error.strerror}") from None
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _options(files: str, job: str, parameters: Mapping[str, Any]) -> List[str]:
    """Return fio's options for files and requests in flight. Like a loader, fio opens a small file
    after it has read the previous one."""
    if job != SMALL_FILES:
        size = RANDOM_BYTES if job.startswith("random") else SEQUENTIAL_BYTES
        return [
            f"--filename={os.path.join(files, LARGE)}", f"--bs={size}",
            f"--size={parameters['file_bytes']}", "--time_based", "--ioengine=libaio",
            f"--iodepth={parameters['depth']}",
        ]  # fmt: skip
    # Loop over all files: time_based stays with the first and never closes it.
    return [
        f"--directory={files}", f"--nrfiles={parameters[SMALL_FILES]}",
        f"--filesize={SMALL_FILE_BYTES}", f"--bs={SMALL_FILE_BYTES}", "--openfiles=1",
        "--loops=1000000", "--file_service_type=random", "--ioengine=psync", "--iodepth=1",
    ]  # fmt: skip


def run(files: str, job: str, parameters: Mapping[str, Any]) -> Dict[str, Dict[str, Any]]:
    """Run a job and return fio's results by metric. Raises Unsupported where the file system has no
    direct access, Mismatch where fio fails or did nothing."""
    command = [
        "fio", f"--name={job}", *_options(files, job, parameters), f"--rw={JOBS[job][0]}",
        f"--rwmixread={READS}", f"--runtime={max(1, round(1000 * parameters['seconds']))}ms",
        "--direct=1", "--numjobs=1", "--randrepeat=1", "--allow_file_create=0",
        "--output-format=json", f"--percentile_list={':'.join(map(str, PERCENTILES))}",
    ]  # fmt: skip
    done = programs.run(command)
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        why = lines[0] if lines else f"exit status {done.returncode}"
        if "O_DIRECT" in done.stderr or "Invalid argument" in done.stderr:
            raise Unsupported(f"the file system knows no access past the page cache: {why}")
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
