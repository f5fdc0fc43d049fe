"""``framebench largest-batch .. -- HARNESS ..``: the largest batch per device that a case can run.

1. Begin with the smallest batch and double it until one does not fit, or the bound is reached.
2. Halve the distance between the largest that fits and the smallest that does not, until they are
   one step apart.
3. Each try is a run of the harness like any other, with few steps, in processes of its own; it
   leaves a record of its own too, which is not made again after a kill.
4. A try that ends otherwise than ``ok`` or ``oom`` ends the search, with its status and reason.

Memory must grow with the batch; nothing else is assumed of it. No try is larger than twice the
largest batch that fitted, so what is held beyond the limit is little, and the harness ends the run
before the machine runs out of it: no forecast is needed, and none can be wrong.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..config.batch_search import FORMAT, Bounds, Tried, next_batch, outcome
from ..files import json_files
from ..files.attempt_names import attempt_name
from ..files.whole_files import write_whole
from ..records import by_node, converters
from . import attempts


def main(arguments: list[str]) -> int:
    """The exit status: 0 where the result was written, whatever it says; else that of the run
    that left no record, or 128 + N after signal N, which that run gets too."""
    parser = argparse.ArgumentParser(prog="framebench largest-batch", description=__doc__)
    parser.add_argument("--multiple-of", type=int, required=True, help="samples; the step")
    parser.add_argument("--at-most", type=int, required=True, help="samples")
    parser.add_argument("--output", type=Path, required=True, help="the result, JSON")
    parser.add_argument("--log", type=Path, required=True, help="what was tried; runs log beside")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="harness, without batch, output")
    given = parser.parse_args(arguments)
    command = [word for word in given.command if word != "--"]
    bounds = Bounds(given.multiple_of, given.at_most)
    attempts.end_with_parent()
    caught: list[int] = []
    records: list[tuple[Path, dict[str, Any]]] = []
    tried: list[Tried] = []
    given.log.parent.mkdir(parents=True, exist_ok=True)
    with given.log.open("w", encoding="utf-8") as log:
        batch = next_batch(tried, bounds)
        while batch is not None:
            path, record = _made(given.output.with_suffix(""), batch)
            if record is None:
                logs = given.log.with_suffix("") / f"{path.stem}.log"
                asked = ["--batch-per-device", str(batch)]
                places = ["--output", str(path), "--log", str(logs)]
                status = attempts.run([*command, *asked, *places], caught)
                if status or caught:
                    return 128 + caught[0] if caught else _failure(status)
                record = json.loads(path.read_text(encoding="utf-8"))
            records.append((path, record))
            tried.append(Tried(batch, record["status"]))
            print(f"batch {batch}: {record['status']}  {record['reason']}", file=log, flush=True)
            batch = next_batch(tried, bounds)
        result = _result(records, tried, bounds, given.output.parent)
        write_whole(given.output, json.dumps(result, indent=1) + "\n")
        print(f"{result['status']}: {result['batch_per_device']} {result['reason']}", file=log)
    return 0


def _failure(status: int) -> int:
    """Of a process that a signal ended, as a shell would say it."""
    return status if status > 0 else 128 - status


def _made(folder: Path, batch: int) -> tuple[Path, dict[str, Any] | None]:
    """The record of a run with this batch; where there is none, the first free name for it."""
    number = 0
    while True:
        path = folder / f"{attempt_name(f'b{batch}', number)}.json"
        if not os.path.lexists(path):
            return path, None
        try:
            record = converters.current(json_files.decode(json_files.content_of(path)))
            is_record = record["format"] == converters.FORMAT
            if is_record and record["case"]["batch_per_device"] == batch:
                return path, record
        except (OSError, ValueError, TypeError, KeyError):
            pass  # truncated or somebody else's: it stays as it is
        number += 1


def _result(
    records: Sequence[tuple[Path, dict[str, Any]]],
    tried: Sequence[Tried],
    bounds: Bounds,
    folder: Path,
) -> dict[str, Any]:
    found = outcome(tried)
    _, record = records[tried.index(found)]
    is_ok = found.status == "ok"
    at_bound = is_ok and found.batch == bounds.largest
    reason = f"the bound of the suite: {bounds.at_most}" if at_bound else ""
    return {
        "format": FORMAT,
        "case": {"mode": record["kind"], **_without_batch(record["case"])},
        "status": found.status,
        "reason": reason if is_ok else f"at batch {found.batch}: {record['reason']}",
        "batch_per_device": found.batch if is_ok else None,
        "ended_at": found.batch,
        "multiple_of": bounds.multiple_of,
        "at_most": bounds.at_most,
        "framework_version": record["framework_version"],
        "settings": record["settings"],
        "attempts": [_attempt(path.relative_to(folder), one) for path, one in records],
        "environment": record["environment"],
    }


def _without_batch(case: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in case.items() if key != "batch_per_device"}


def _attempt(path: Path, record: dict[str, Any]) -> dict[str, Any]:
    """Memory in bytes: of the device that held most, and of the host for all ranks together."""
    devices = [rank.get("peak_device_memory_bytes") for rank in record["ranks"]]
    held = [memory for _, memory in by_node.found(record, "memory")]
    memory: Mapping[str, Any] = max(held, key=lambda one: one["peak_bytes"], default={})
    return {
        "batch_per_device": record["case"]["batch_per_device"],
        "status": record["status"],
        "reason": record["reason"],
        "peak_device_memory_bytes": max((size for size in devices if size), default=None),
        "peak_host_memory_bytes": memory.get("peak_bytes"),
        "memory_limit_bytes": memory.get("limit_bytes"),
        "seconds": record["wall_seconds"],
        "record": path.as_posix(),
    }
