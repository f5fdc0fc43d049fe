"""The record of a run: put together, checked against the schema, encoded."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from typing import Any, Dict, List, Mapping, Optional, Sequence

from harness.adapter import Case
from harness.messages.report import encodable, shorten
from harness.record.schema import errors
from harness.request.command_line import Request
from harness.telemetry.watcher import RAW_BYTES

FORMAT = "framebench-record-1"
PARITY_FORMAT = "framebench-parity-1"
PROBE_FORMAT = "framebench-probe-1"


@dataclass(frozen=True)
class Started:
    """When the run began: ``utc`` in ISO 8601, ``monotonic`` in seconds."""

    utc: str
    monotonic: float

    @staticmethod
    def now() -> Started:
        """This moment."""
        utc = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        return Started(utc.replace("+00:00", "Z"), time.monotonic())


@dataclass(frozen=True)
class Measured:
    """How the run ended and what each rank left (empty if none was started). On one node: what the
    watcher saw in the timed window (None if there was none), and the memory held and allowed
    (likewise). On several: an entry for each of them, which has both."""

    status: str
    reason: str
    ranks: List[Dict[str, Any]]
    watch: Optional[Dict[str, Any]] = None
    memory: Optional[Dict[str, int]] = None
    nodes: Sequence[Dict[str, Any]] = ()


def _settings(request: Request, facts: Mapping[str, Any]) -> Dict[str, Any]:
    return {
        "accelerator": request.accelerator,
        "cores_per_device": request.cores_per_device,
        "warmup_steps": request.warmup_steps,
        "warmup_limit": request.warmup_limit,
        "timed_steps": request.timed_steps,
        "time_limit": request.time_limit,
        "seed": request.seed,
        "variant": request.variant,
        "side_by_side": request.lease is not None,
        "variables": dict(request.variables),
        "dropout": facts["hyperparameters"].get("dropout", 0.0),
    }


def _format(request: Request) -> str:
    if request.probe:
        return PROBE_FORMAT
    return PARITY_FORMAT if request.parity else FORMAT


def _result(case: Case, timed_steps: int, measured: Measured) -> Dict[str, Any]:
    """Throughput in global samples per second: the slowest rank's window counts, because the
    samples are done when the last of them is. All null unless the run is ok and has a window."""
    if measured.status != "ok" or "window_seconds" not in measured.ranks[0]:
        return {"throughput": None, "samples": None, "window_seconds": None}
    samples = case.batch_per_device * case.devices * timed_steps
    window = max(fields["window_seconds"] for fields in measured.ranks)
    return {"throughput": samples / window, "samples": samples, "window_seconds": window}


def assemble(
    request: Request,
    case: Case,
    facts: Mapping[str, Any],
    measured: Measured,
    environment: Dict[str, Any],
    command: List[str],
    started: Started,
    installed_version: str,
) -> Dict[str, Any]:
    """The record, not yet checked. ``facts``: of the model. ``installed_version``: of the
    framework's distribution, for a run that never imported it."""
    imported = [fields.get("framework_version") for fields in measured.ranks]
    record: Dict[str, Any] = {
        "format": _format(request),
        "source": "framebench",
        "case": asdict(case),
        "repeat": request.repeat,
        "status": measured.status,
        "reason": measured.reason,
        "framework_version": next((version for version in imported if version), installed_version),
        "settings": _settings(request, facts),
        "unit": facts["unit"],
        "wall_seconds": time.monotonic() - started.monotonic,
        "started": started.utc,
        "command": command,
        "ranks": measured.ranks,
        "environment": environment,
    }
    if measured.watch is not None:
        record["watch"] = measured.watch
    if measured.memory is not None:
        record["memory"] = measured.memory
    if measured.nodes:
        record["nodes"] = list(measured.nodes)
    record.update(_result(case, request.timed_steps, measured))
    return record


def checked(record: Dict[str, Any], schema: Dict[str, Any]) -> Dict[str, Any]:
    """The record without NaN and infinity, which JSON lacks. One that does not fit the schema
    becomes a ``failed`` one that says why."""
    record = encodable(record)
    wrong = errors(record, schema)
    if not wrong:
        return record
    reason = shorten("the record would be invalid: " + "; ".join(wrong))
    nothing: Dict[str, Any] = {
        "ranks": [],
        "throughput": None,
        "samples": None,
        "window_seconds": None,
    }
    return dict(record, status="failed", reason=reason, **nothing)


def encode(record: Dict[str, Any]) -> bytes:
    """The record as JSON text. Raises ValueError for a NaN or an infinity."""
    return (json.dumps(record, indent=1, allow_nan=False) + "\n").encode("utf-8")


def bytes_to_reserve(ranks: int, steps: int) -> int:
    """At most what the record takes: 256 KiB for everything else, 32 per step and rank for its
    seconds, and the watcher's samples of the machine and of a device for each rank."""
    return 256 * 1024 + 32 * ranks * steps + RAW_BYTES * (1 + ranks)


def summary(record: Dict[str, Any], output: str) -> str:
    """One line for the person who waits."""
    text = "{status}: {reason}"
    if record["status"] == "ok" and record["format"] == PARITY_FORMAT:
        text = "ok: compared"
    elif record["status"] == "ok" and record["format"] == PROBE_FORMAT:
        text = "ok: probed"
    elif record["status"] == "ok":
        text = "ok: {throughput:.4g} {unit} ({samples} samples in {window_seconds:.3f} s)"
    text += "; {wall_seconds:.1f} s in all; "
    told = text.format(**record)
    # A reason may hold what a foreign program printed: no terminal shall obey that.
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in told) + output
