"""Table of a user's own model: each combination of batch, precision and compiler, and the best."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import pandas as pd

from ...cases.conditions import KEYS, MODES
from ...cases.names import topology
from ...records.fields.flags import OWN
from ...records.fields.steps import PARTS
from ...records.verifications import PASSED
from ...records.verified import EXCLUDING, UNVERIFIED
from .. import contests, formatting, view
from ..columns import Row
from ..results import UNCOMPILED, CaseResult
from ..table import Inputs, Table, declared_table
from .efficiency import EFFICIENCY
from .largest_batch import LARGEST
from .roofline import ROOFLINE
from .steps import STEP_BREAKDOWN, step_times
from .summary import tokens_per_second

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
        "excluded": contests.exclusion(result) if result.excluded else "",
        **{name: timed[name] for name in _PERCENTILES},
        "tokens_per_second": tokens_per_second(result),
    }


def sentences(tables: Mapping[Table, pd.DataFrame]) -> list[str]:
    """Return what was found about each own model: the best combination, what the batch brings,
    where its time goes, and the largest batch."""
    found: dict[tuple[str, str], list[Row]] = {}
    for row in view.rows_of(tables, OWN_MODEL):
        found.setdefault((row["model"], row["mode"]), []).append(row)
    names = {model for model, _ in found}
    beside = {
        table: {_key(row): row for row in view.rows_of(tables, table)}
        for table in (EFFICIENCY, ROOFLINE, STEP_BREAKDOWN)
    }
    said = []
    for (model, mode), some in found.items():
        usable = [row for row in some if row["throughput_median"] and not row["excluded"]]
        about = f"{model}, {mode}" if len(names) > 1 else mode
        if not usable:
            said.append(f"{about}: best: none, as no combination that runs passes verification")
            continue
        said += [f"{about}: {text}" for text in _about(usable, beside)]
    return [*said, *_largest(view.rows_of(tables, LARGEST), names)]


def _key(row: Row) -> tuple[object, ...]:
    return tuple(row[name] for name in KEYS)


def _about(
    rows: Sequence[Row], beside: Mapping[Table, Mapping[tuple[object, ...], Row]]
) -> Iterator[str]:
    best = max(rows, key=lambda row: float(row["throughput_median"]))
    figures = [f"{formatting.rounded(best['throughput_median'], '#.4g')} samples/s"]
    if best["tokens_per_second"]:
        figures.append(f"{formatting.rounded(best['tokens_per_second'], '#.4g')} tokens/s")
    samples = best["nodes"] * best["devices_per_node"] * best["batch_per_device"]
    milliseconds = best["p50_ms"] or 1000 * samples / best["throughput_median"]
    figures.append(f"{formatting.rounded(milliseconds, '#.4g')} ms per step")
    if memory := best["peak_device_memory_bytes"] or best["peak_host_memory_bytes"]:
        figures.append(f"{memory / 2**30:.3g} GiB of memory")
    verified = "verified" if best["verification"] == PASSED else "not verified"
    text = f" of {len(rows)} combinations" if len(rows) > 1 else ""
    flags = " ".join(flag for flag in best["flags"].split() if flag not in (OWN, UNVERIFIED))
    ends = f" [{flags}]" if flags else ""
    yield f"best{text}: {_combination(best, rows)}: {', '.join(figures)} ({verified}){ends}"
    yield from _batches(best, rows)
    of_best = {table: entry.get(_key(best), {}) for table, entry in beside.items()}
    yield from _time(of_best[STEP_BREAKDOWN])
    yield from _roof(of_best[EFFICIENCY], of_best[ROOFLINE])


def _combination(row: Row, among: Sequence[Row]) -> str:
    """Return the values in which a row differs from others, with its batch."""
    differs = [name for name in _TRIED if len({row.get(name) for row in among}) > 1]
    parts = [f"batch {row['batch_per_device']}"]
    parts += [_size(row)] if len({_size(row) for row in among}) > 1 else []
    for name in differs:
        no_compiler = name == "compiler" and row[name] == UNCOMPILED
        parts += ["no compiler" if no_compiler else str(row[name])]
    return " ".join(parts)


def _size(row: Row) -> str:
    return topology(row["nodes"], row["devices_per_node"])


def _batches(best: Row, rows: Sequence[Row]) -> Iterator[str]:
    """Yield what the best batch brings over the smallest, everything else equal."""
    same = [name for name in KEYS if name not in ("batch_per_device",)]
    alike = [row for row in rows if all(row[name] == best[name] for name in same)]
    least = min(alike, key=lambda row: int(row["batch_per_device"]))
    if least is not best:
        ratio = best["throughput_median"] / least["throughput_median"]
        yield (
            f"batch {best['batch_per_device']} over {least['batch_per_device']}: {ratio:.2f}x "
            "samples/s"
        )


def _time(breakdown: Row) -> Iterator[str]:
    shares = [(part, breakdown.get(f"{part}_share")) for part in PARTS]
    if known := [f"{part.replace('_', '-')} {share:.0%}" for part, share in shares if share]:
        yield f"time of a step: {', '.join(known)}"


def _roof(efficiency: Row, roofline: Row) -> Iterator[str]:
    if efficiency.get("mfu"):
        yield (
            f"{_percent(efficiency['mfu'])} of the peak of a device "
            f"({efficiency['tflops_per_device']:.3g} of {efficiency['peak_tflops']:.3g} TFLOP/s)"
        )
    if roofline.get("reached"):
        limit = roofline["lower_roof"]
        yield f"{_percent(roofline['reached'])} of the roofline of this machine, limited by {limit}"


def _percent(fraction: float) -> str:
    if fraction < 0.0001:
        return "less than 0.01%"
    return f"{fraction:.0%}" if fraction >= 0.1 else f"{100 * fraction:.2g}%"


def _largest(searches: Sequence[Row], names: Collection[str]) -> Iterator[str]:
    for row in searches:
        if row["model"] in names and row["largest_batch"]:
            how = " ".join(str(row[name]) for name in ("mode", "precision", "compiler"))
            yield f"{how}: the largest batch that fits is {row['largest_batch']}"


OWN_MODEL = declared_table("own_model", rows)
TABLES = (OWN_MODEL,)
