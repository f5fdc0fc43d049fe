"""Figures of a record that follow from its step times, computed from these."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from core.case import Case

from ...cases.conditions import MODES, OURS, THROUGHPUT
from ..run import Flag

FLAG = "inconsistent"
#: Rounding of sums of step times, as a part of them.
_ROUNDING = 1e-6


def recompute(record: Mapping[str, Any], case: Case) -> tuple[Mapping[str, Any], tuple[Flag, ...]]:
    """Return the record with samples, timed region and throughput as its step times give them, and
    a flag if it states others. Imported records, and those without step times, stay as they are."""
    ranks = [rank for rank in record["ranks"] if rank.get("step_seconds")]
    is_ours = record["source"] == OURS and record["kind"] in MODES and record["status"] == "ok"
    if not (is_ours and ranks and all(rank.get("window_seconds") for rank in ranks)):
        return record, ()
    steps = max(len(rank["step_seconds"]) for rank in ranks)
    samples, window = case.samples_per_step * steps, 0.0
    for rank in ranks:
        taken = math.fsum(rank["step_seconds"])
        is_whole = taken <= rank["window_seconds"] * (1 + _ROUNDING)
        window = max(window, rank["window_seconds"] if is_whole else taken)
    stated = record["samples"], record["window_seconds"]
    if stated[0] == samples and math.isclose(stated[1] or 0.0, window, rel_tol=_ROUNDING):
        return record, ()
    throughput = {**record["metrics"][THROUGHPUT], "value": samples / window}
    metrics = {**record["metrics"], THROUGHPUT: throughput}
    why = f"{steps} steps give {samples} samples in {window:.6g} s; it states {stated[0]} in "
    flag = Flag(FLAG, f"{why}{stated[1]:.6g} s" if stated[1] else f"{why}no time")
    return {**record, "samples": samples, "window_seconds": window, "metrics": metrics}, (flag,)
