"""Reading and writing a file in a folder, by fio: bandwidth, operations a second and latencies, as
fio itself gives them.

Four jobs one after the other: sequential and random, reading and writing, past the page cache, on a
file that is made for them and removed again. Never on a device itself. fio is a program of its own
(Debian: apt-get install fio).
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import subprocess
import time
from typing import Any, Dict, Mapping, Optional

from harness.adapter import Mismatch, Unsupported
from harness.kind import Context, Kind, Metric, Parameter, Subject, above_zero, at_least

PROGRAM = "fio"
#: fio's name, direction, and bytes of a request: as storage is usually judged.
JOBS = {
    "sequential_read": ("read", 128 * 1024),
    "sequential_write": ("write", 128 * 1024),
    "random_read": ("randread", 4096),
    "random_write": ("randwrite", 4096),
}
#: Of the latencies that fio gives.
PERCENTILES = (50, 99)
_NO_DIRECT = "O_DIRECT"
_PIECE = 2**20  # bytes that are written at once


def folder(text: str) -> str:
    """The type of the folder: its absolute path, "" where none is named."""
    return os.path.abspath(text) if text else ""


class Storage(Kind):
    """Metrics are fio's own: bw_bytes, iops and the percentiles of clat_ns, only in other units."""

    needs = None
    axes = ("nodes", "devices_per_node")
    parameters = (
        Parameter("folder", folder, "", "where the file is made, as storage=DIR says it", ""),
        Parameter("file_bytes", at_least(4096), "bytes", "of the file", 256 * 2**20),
        Parameter("seconds", above_zero, "s", "how long each job runs", 5.0),
        Parameter("depth", at_least(1), "", "requests under way at once", 16),
    )

    def metrics(self, subject: Subject) -> Dict[str, Metric]:
        found = {}
        for job in JOBS:
            found[f"{job}_bandwidth"] = Metric("GB/s", "higher", "first", _figure(job, "bw_bytes"))
            found[f"{job}_iops"] = Metric("1/s", "higher", "first", _figure(job, "iops"))
            for percent in PERCENTILES:
                metric = Metric("us", "lower", "first", _figure(job, f"p{percent}"), optional=True)
                found[f"{job}_latency_p{percent}"] = metric
        return found

    def measure(self, context: Context) -> None:
        fields, parameters = context.fields, context.subject.parameters
        if context.place.world_size > 1:
            raise Unsupported("several devices: the file is measured by one process")
        place = parameters["folder"]
        if not place:
            raise Unsupported("no folder is named: say storage=DIR, or --parameter folder=DIR")
        if not os.path.isdir(place):
            raise Unsupported(f"folder: {place} is no folder")
        if shutil.which(PROGRAM) is None:
            raise Unsupported("there is no fio here: install it (Debian: apt-get install fio)")
        fields["fio"] = {}
        start = time.perf_counter()
        with _File(place, parameters["file_bytes"]) as file:
            for job in JOBS:
                work = functools.partial(run, file, job, parameters)
                fields["fio"][job] = context.phase(job, work)
        fields["window_start"], fields["window_seconds"] = start, time.perf_counter() - start


class _File:
    """One of its own in a folder, full of random bytes, for as long as the context lasts."""

    def __init__(self, place: str, size: int) -> None:
        self._path = os.path.join(place, f"framebench-storage-{os.getpid()}.tmp")
        self._size = size

    def __enter__(self) -> str:
        """Raises Unsupported where it cannot be made."""
        try:
            with open(self._path, "xb") as file:
                for start in range(0, self._size, _PIECE):
                    file.write(os.urandom(min(_PIECE, self._size - start)))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            self.__exit__()
            raise Unsupported(f"folder: no file can be written there: {error.strerror}") from None
        return self._path

    def __exit__(self, *error: Any) -> None:
        with contextlib.suppress(OSError):
            os.remove(self._path)


def run(file: str, job: str, parameters: Mapping[str, Any]) -> Dict[str, Any]:
    """What fio says of one job: bw_bytes, iops, total_ios, runtime, percentiles of clat_ns, and the
    version. Raises Unsupported where the file system knows no access past the page cache, Mismatch
    where fio fails, or did nothing."""
    direction, size = JOBS[job]
    command = [
        PROGRAM, f"--name={job}", f"--filename={file}", f"--rw={direction}", f"--bs={size}",
        f"--size={parameters['file_bytes']}", f"--runtime={parameters['seconds']:g}",
        "--time_based", "--direct=1", "--ioengine=libaio",
        f"--iodepth={parameters['depth']}", "--numjobs=1",
        "--randrepeat=1", "--allow_file_create=0", "--output-format=json",
        f"--percentile_list={':'.join(map(str, PERCENTILES))}",
    ]  # fmt: skip
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True
    )
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        why = lines[0] if lines else f"exit status {done.returncode}"
        if _NO_DIRECT in done.stderr or "Invalid argument" in done.stderr:
            raise Unsupported(f"the file system knows no access past the page cache: {why}")
        raise Mismatch(f"fio failed: {why}")
    return figures(done.stdout, direction)


def figures(text: str, direction: str) -> Dict[str, Any]:
    """Of fio's JSON of a single job. Raises Mismatch where it has none, or nothing was done."""
    try:
        # before the object there may be warnings
        answer = json.loads(text[text.index("{") :])
        (job,) = answer["jobs"]
        side = job["write" if "write" in direction else "read"]
        found = {
            "version": answer["fio version"],
            "error": job["error"],
            **{name: side[name] for name in ("bw_bytes", "iops", "total_ios", "runtime")},
        }
        for percent in PERCENTILES:
            found[f"p{percent}"] = side["clat_ns"].get("percentile", {}).get(f"{percent:.6f}")
    except (ValueError, KeyError, TypeError) as error:
        raise Mismatch(f"fio's answer is no result of one job: {error!r}") from None
    if found["error"]:
        raise Mismatch(f"fio reports error {found['error']}")
    if not found["total_ios"]:
        raise Mismatch(f"fio has done no {direction} at all")
    return found


#: From fio's units to those of the metrics.
_UNITS = {"bw_bytes": 1e-9, "iops": 1.0, "p50": 1e-3, "p99": 1e-3}


def _figure(job: str, name: str) -> Any:
    def of_rank(rank: Mapping[str, Any]) -> Optional[float]:
        value = rank["fio"][job][name]
        return None if value is None else _UNITS[name] * value

    return of_rank
