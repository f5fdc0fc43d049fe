"""Judge how a run ended: the rank that shows the cause best decides status and reason."""

from __future__ import annotations

import math
import re
import signal
from typing import Any, Dict, NamedTuple, Optional, Sequence, Tuple

from core import bounded
from core.text import shorten

from harness import report
from harness.processes.launch import OTHER_RANK, TIME_LIMIT, RankProcess

# Outcomes, most telling first. An error caused by the end of another rank is last but one, because
# it is never the cause.
_OOM, _UNSUPPORTED, _OWN_ERROR, _DIED, _CONSEQUENCE, _TIME_LIMIT, _OK = range(7)

_OTHER_GONE = re.compile(
    r"connection (was )?(reset|closed|refused|aborted)|broken pipe|socket closed|peer|EOF|"
    r"timed out|timeout|unavailable|aborted",
    re.IGNORECASE,
)


_NO_MEMORY = re.compile(
    r"bad_alloc|out of memory|allocate failed|failed to allocate|cannot allocate memory",
    re.IGNORECASE,
)


class RankOutcome(NamedTuple):
    """Outcome of a rank: its entry in the record, and its weight, of which the smallest decides.

    ``ended``: when the rank ended or was stopped, in seconds of a clock that all ranks share."""

    weight: int
    ended: float
    fields: Dict[str, Any]


def last_line(path: str) -> str:
    """Return the last non-empty line of a log; empty without one."""
    lines = _tail(path, 4096).split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def _tail(path: str, size: int) -> str:
    """Return the last ``size`` bytes of a log as text; empty without a log."""
    try:
        return bounded.read_end(path, size)
    except OSError:
        return ""


def _without_result(
    rank: RankProcess, phase: Optional[str], out_of_memory: bool, limit: float
) -> Tuple[int, str, str]:
    where = phase or "start"
    if rank.stopped == TIME_LIMIT:
        reason = f"the time limit of {limit:g} s was reached during: {where}"
        return _TIME_LIMIT, "timeout", reason
    if rank.stopped is not None and rank.stopped != OTHER_RANK:
        weight = _OOM if rank.stopped.status == "oom" else _OWN_ERROR
        return weight, rank.stopped.status, f"{rank.stopped.reason}, during: {where}"
    if rank.stopped is not None:
        return _CONSEQUENCE, "failed", f"stopped during: {where}, because another failed"
    code = rank.process.returncode
    if code == -signal.SIGKILL and out_of_memory:
        return _OOM, "oom", f"rank {rank.rank} was killed by the kernel: out of host memory"
    if code == -signal.SIGABRT and _NO_MEMORY.search(_tail(rank.log, 2**16)):
        # The allocators of some frameworks end the process, which cannot be caught.
        return _OOM, "oom", f"rank {rank.rank} aborted: out of memory during: {where}"
    if code < 0:
        reason = f"rank {rank.rank} was killed by signal {-code} ({_name(-code)})"
    else:
        reason = f"rank {rank.rank} exited with status {code} and left no result"
    reason += f" during: {where}"
    last = last_line(rank.log)
    return _DIED, "failed", shorten(reason + ("; its last words: " + last if last else ""))


def _name(number: int) -> str:
    """Return the name of a signal, such as SIGKILL; real-time signals have none."""
    return signal.Signals(number).name if number in {*signal.Signals} else "real-time"


def rank_outcome(
    rank: RankProcess, folder: str, host: str, out_of_memory: bool, limit: float
) -> RankOutcome:
    """Judge a rank that has ended.

    ``out_of_memory``: the kernel killed processes for lack of memory during the run. ``limit``:
    time limit in seconds."""
    phase, final, fields = report.read(folder, rank.rank)
    ended = rank.stopped_at or rank.ended or 0.0
    if not final:
        weight, status, reason = _without_result(rank, phase, out_of_memory, limit)
        base = fields or {"rank": rank.rank, "host": host}
        return RankOutcome(weight, ended, dict(base, status=status, reason=reason))
    if fields["status"] == "failed":
        weight = _CONSEQUENCE if _OTHER_GONE.search(fields["reason"]) else _OWN_ERROR
    else:
        weight = {"ok": _OK, "oom": _OOM, "unsupported": _UNSUPPORTED}[fields["status"]]
    return RankOutcome(weight, ended, fields)


def lost(rank: int, node: str, why: str) -> RankOutcome:
    """Return the outcome of a rank whose node is gone."""
    fields = {"rank": rank, "host": node, "status": "failed", "reason": shorten(why)}
    return RankOutcome(_DIED, 0.0, fields)


def most_telling(outcomes: Sequence[RankOutcome]) -> Tuple[str, str]:
    """Return status and reason of a run, taken from the most telling rank; among equals, from the
    rank that ended first.

    Once a rank was stopped at the time limit, later failures of other ranks are consequences."""
    limit = min((each.ended for each in outcomes if each.weight == _TIME_LIMIT), default=math.inf)
    causes = [each for each in outcomes if each.fields["status"] != "failed" or each.ended < limit]
    telling = min(causes, key=lambda outcome: (outcome.weight, outcome.ended))
    status, reason = telling.fields["status"], telling.fields["reason"]
    rank = f"rank {telling.fields['rank']}"
    if len({judged.fields["host"] for judged in outcomes}) > 1:
        reason = reason.replace(rank, f"{rank} on node {telling.fields['host']}", 1)
        rank += f" on node {telling.fields['host']}"
    if status != "ok" and len(outcomes) > 1 and not reason.startswith(rank):
        reason = f"{rank}: {reason}"
    return status, reason
