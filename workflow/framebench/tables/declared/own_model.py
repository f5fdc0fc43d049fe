"""Table of a user's own model: each combination of batch, precision and compiler, and the best."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

from ...cases.conditions import KEYS, MODES
from ...cases.names import topology
from ...records.fields.flags import OWN
from ...records.verifications import PASSED
from ...records.verified import EXCLUDING, UNVERIFIED
from .. import formatting
from ..columns import Row
from ..contests import exclusion
from ..results import UNCOMPILED, CaseResult
from ..table import Inputs, Table, declared_table, rows_of
from .steps import step_times
from .summary import LARGEST, tokens_per_second

#: Outcome of the verification, by the flag of an excluded figure.
_OUTCOMES = {flag: outcome for outcome, flag in EXCLUDING.items()}
_PERCENTILES = ("p50_ms", "p90_ms", "p99_ms")
#: Axes that distinguish combinations, besides batch and devices.
_TRIED = ("precision", "compiler", "suite_variant")


def rows(inputs: Inputs) -> pd.DataFrame:
    """Return a row per case of a user's own model."""
    return inputs.cases_with(lambda result: _cells(inputs, result))


def _cells(inputs: Inputs, result: CaseResult) -> Row | None:
    if result.case.model not in inputs.own_models or result.case.mode not in MODES:
        return None
    timed = step_times(result)
    outcome = UNVERIFIED if UNVERIFIED in result.flags else PASSED
    return {
        "verification": _OUTCOMES.get(result.standing, outcome) if result.ok else "",
        "excluded": exclusion(result) if result.excluded else "",
        **{name: timed[name] for name in _PERCENTILES},
        "tokens_per_second": tokens_per_second(result),
    }


def sentences(tables: Mapping[Table, pd.DataFrame]) -> list[str]:
    """Return sentences on each own model: the best combination, the gain from larger batches, and
    the largest batch."""
    combinations: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows_of(tables, OWN_MODEL):
        combinations[row["model"], row["mode"]].append(row)
    names = {model for model, _ in combinations}
    said = []
    for (model, mode), rows in combinations.items():
        usable = [row for row in rows if row["throughput_median"] and not row["excluded"]]
        about = f"{model}, {mode}" if len(names) > 1 else mode
        found = _about(usable) if usable else [_NONE]
        said += [f"{about}: {text}" for text in found]
    for row in rows_of(tables, LARGEST):
        if row["model"] in names and row["largest_batch"]:
            how = " ".join(str(row[name]) for name in ("mode", "precision", "compiler"))
            said.append(f"{how}: the largest batch that fits is {row['largest_batch']}")
    return said


_NONE = "best: none, as no combination that runs passes verification"


def _about(rows: Sequence[Row]) -> Iterator[str]:
    best = max(rows, key=lambda row: float(row["throughput_median"]))
    samples = best["nodes"] * best["devices_per_node"] * best["batch_per_device"]
    milliseconds = best["p50_ms"] or 1000 * samples / best["throughput_median"]
    figures = [
        f"{formatting.rounded(value, '#.4g')} {unit}"
        for value, unit in (
            (best["throughput_median"], "samples/s"),
            (best["tokens_per_second"], "tokens/s"),
            (milliseconds, "ms per step"),
        )
        if value
    ]
    if memory := best["peak_device_memory_bytes"] or best["peak_host_memory_bytes"]:
        figures.append(f"{memory / 2**30:.3g} GiB of memory")
    verified = "verified" if best["verification"] == PASSED else "not verified"
    text = f" of {len(rows)} combinations" if len(rows) > 1 else ""
    flags = " ".join(flag for flag in best["flags"].split() if flag not in (OWN, UNVERIFIED))
    ends = f" [{flags}]" if flags else ""
    yield f"best{text}: {_combination(best, rows)}: {', '.join(figures)} ({verified}){ends}"
    same = [name for name in KEYS if name != "batch_per_device"]
    alike = [row for row in rows if all(row[name] == best[name] for name in same)]
    least = min(alike, key=lambda row: int(row["batch_per_device"]))
    if least is not best:
        ratio = best["throughput_median"] / least["throughput_median"]
        batches = f"batch {best['batch_per_device']} over {least['batch_per_device']}"
        yield f"{batches}: {ratio:.2f}x samples/s"


def _combination(row: Row, among: Sequence[Row]) -> str:
    """Return the batch of a row, and the values in which it differs from others."""

    def size(row: Row) -> str:
        return topology(row["nodes"], row["devices_per_node"])

    parts = [f"batch {row['batch_per_device']}"]
    parts += [size(row)] if len({*map(size, among)}) > 1 else []
    for name in _TRIED:
        if len({one.get(name) for one in among}) > 1:
            no_compiler = name == "compiler" and row[name] == UNCOMPILED
            parts.append("no compiler" if no_compiler else str(row[name]))
    return " ".join(parts)


OWN_MODEL = declared_table("own_model", rows)
TABLES = (OWN_MODEL,)
