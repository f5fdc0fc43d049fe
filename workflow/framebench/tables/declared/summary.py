"""Tables with a row per case: throughput, step times, input pipelines, a user's own model.

Further tables: runs without a figure (a row per reason), and searches for the largest batch.

A step is one batch on every device."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from ...cases.conditions import KEYS, MODES, Key
from ...cases.names import topology
from ...config.statuses import FOR_PEOPLE
from ...records.flags import OWN
from ...records.run import Run
from ...records.verifications import PASSED
from ...records.verified import EXCLUDING, UNVERIFIED
from ...statistics import descriptive, intervals
from ...statistics.intervals import median_interval
from .. import formatting
from ..columns import Row, interval_cells
from ..contests import exclusion
from ..measured import runs_in
from ..results import UNCOMPILED, CaseResult, over_runs
from ..table import Inputs, Table, declared_table, rows_of

#: Target width of the interval for ``repeats_needed``, end to end, as a fraction of the median.
WIDTH = 0.01
#: Fraction of the steps at or below each percentile.
PERCENTILES = {
    "p50_ms": 0.5,
    "p90_ms": 0.9,
    "p95_ms": 0.95,
    "p99_ms": 0.99,
    "p99_9_ms": 0.999,
}
#: Fraction by which loader and compute rates must differ for one to be the limit.
CLEAR = 0.05
LOADER, COMPUTE, BOTH = "loader", "compute", "both"
#: Outcome of the verification, by the flag of an excluded figure.
_OUTCOMES = {flag: outcome for outcome, flag in EXCLUDING.items()}
#: Axes that distinguish combinations of an own model, besides batch and devices.
_TRIED = ("precision", "compiler", "suite_variant")
#: Memory of an attempt of a search: key by column.
_MEMORY = {
    "device_memory_gib": "peak_device_memory_bytes",
    "host_memory_gib": "peak_host_memory_bytes",
    "memory_limit_gib": "memory_limit_bytes",
}


def _summary(result: CaseResult) -> Row:
    return {
        "repeats_needed": intervals.repeats_for_width(result.values, WIDTH),
        "tokens_per_second": _tokens_per_second(result),
    }


def _tokens_per_second(result: CaseResult) -> float | None:
    """Return tokens per second, padding included; None unless samples are sequences."""
    work = (result.ok or result.runs)[0].sample_work
    length: int | None = work.tokens if work else result.case.sequence_length
    if result.throughput is None or length is None:
        return None
    return result.throughput * length


def failures(inputs: Inputs) -> Iterator[Row]:
    """Yield a row per status and reason, most frequent reasons first within a status."""
    failed: dict[tuple[str, str], list[Run]] = defaultdict(list)
    results = (*inputs.cases.values(), *inputs.others.values())
    # Count each run once, regardless of its metrics.
    for run in {id(run): run for result in results for run in result.runs}.values():
        if run.status != "ok":
            failed[run.status, run.reason].append(run)
    for (status, reason), runs in sorted(
        sorted(failed.items()), key=lambda pair: (FOR_PEOPLE.index(pair[0][0]), -len(pair[1]))
    ):
        yield {
            "status": status,
            "failed_runs": len(runs),
            "failed_cases": len({run.keys for run in runs}),
            "failed_in": ", ".join(sorted({runs_in(run.case) for run in runs})),
            "reason": reason,
        }


def searched(inputs: Inputs) -> Iterator[Row]:
    """Yield a row per search, with the memory at its largest batch.

    Memory is that of the fullest device, and that of all processes on the host together."""
    for result in inputs.searches:
        attempts, parameters = result.record["attempts"], result.record["parameters"]
        last = next(attempt for attempt in attempts if attempt["batch_per_device"] == result.batch)
        yield {
            **Key(result.case, result.conditions, unit="").row,
            "largest_batch": result.batch if result.status == "ok" else None,
            "status": result.status,
            "reason": result.reason,
            "attempts": len(attempts),
            **{column: last[key] and last[key] / 2**30 for column, key in _MEMORY.items()},
            "multiple_of": parameters["multiple_of"],
            "at_most": parameters["at_most"],
        }


# ---- step times of inference ---------------------------------------------------------------------


def _step_times(result: CaseResult) -> Row:
    """Return mean and percentiles of the steps of an inference case."""
    waited = [run for run in result.ok if run.waited_seconds]
    repeats = [sorted(1000 * s for s in run.waited_seconds) for run in waited]
    percentiles: dict[str, float | None] = {}
    for name, part in PERCENTILES.items():
        figures = [descriptive.percentile(steps, part) for steps in repeats]
        median, ends = _over_repeats(figures)
        percentiles |= {name: median, **interval_cells(name, ends)}
    missing = [name for name in PERCENTILES if percentiles[name] is None]
    return {
        "samples": sum(map(len, repeats)),
        "mean_ms": _over_repeats([descriptive.mean(steps) for steps in repeats])[0],
        **percentiles,
        "waited_in": ", ".join(sorted({run.waited_in or "not recorded" for run in waited})),
        "note": _why_missing(result, repeats, missing),
    }


def _over_repeats(
    figures: Sequence[float | None],
) -> tuple[float | None, tuple[float, float] | None]:
    """Return the median over the repeats' figures, and its interval.

    Steps of one repeat are correlated, so pooled steps would give too narrow an interval. Repeats
    are independent, so it is computed from one figure per repeat (independent replications:
    Law, *Simulation Modeling and Analysis*, 5th ed., 2015, chapter 9). None if a repeat has no
    figure."""
    present = [figure for figure in figures if figure is not None]
    if not present or len(present) < len(figures):
        return None, None
    return descriptive.median(present), median_interval(present)


def _why_missing(
    result: CaseResult, repeats: Sequence[Sequence[float]], missing: Sequence[str]
) -> str:
    """Return why there is no figure, or why the percentiles in ``missing`` are missing."""
    if result.status != "ok":
        return f"{result.status}: {result.reason}"
    if not repeats:
        return "no step times in these records"
    needed = [
        f"{name.removesuffix('_ms').replace('_', '.')} needs "
        f"{descriptive.samples_needed(PERCENTILES[name])}"
        for name in missing
    ]
    return f"{min(map(len, repeats))} steps in a repeat: {', '.join(needed)}" if needed else ""


# ---- steps with an input pipeline ---------------------------------------------------------------


def _pipeline(case: CaseResult) -> Row | None:
    """Return the figures of a case; None without an input pipeline."""
    if not any(run.input_pipeline for run in case.ok):
        return None

    def median(name: str) -> Any:
        return over_runs(lambda run: getattr(run.input_pipeline, name, None))(case)

    total = over_runs(lambda run: run.throughput if run.input_pipeline else None)(case)
    compute, loader, wait, copy = map(median, ("compute", "loader", "wait", "copy"))
    return {
        "total_throughput": total,
        "compute_throughput": compute,
        "loader_throughput": loader,
        "limited_by": limit(compute, loader),
        "wait_ms": 1e3 * wait,
        "copy_ms": 1e3 * copy,
        "of_compute": total / compute,
        "skipped_images": over_runs(lambda run: getattr(run.input_pipeline, "skipped", None), max)(
            case
        ),
    }


def limit(compute: float, loader: float | None) -> str:
    """Return which rate is lower by more than CLEAR, or BOTH; "" without a loader rate."""
    if loader is None:
        return ""
    if loader < (1 - CLEAR) * compute:
        return LOADER
    return COMPUTE if compute < (1 - CLEAR) * loader else BOTH


# ---- a user's own model: each combination of batch, precision and compiler -----------------------


def _own_model(inputs: Inputs, result: CaseResult) -> Row | None:
    """Return the figures of a case; None if the model is not the user's own."""
    if result.case.model not in inputs.own_models or result.case.mode not in MODES:
        return None
    timed = _step_times(result)
    outcome = UNVERIFIED if UNVERIFIED in result.flags else PASSED
    return {
        "verification": _OUTCOMES.get(result.standing, outcome) if result.ok else "",
        "excluded": exclusion(result) if result.excluded else "",
        **{name: timed[name] for name in ("p50_ms", "p90_ms", "p99_ms")},
        "tokens_per_second": _tokens_per_second(result),
    }


def own_model_sentences(tables: Mapping[Table, pd.DataFrame]) -> list[str]:
    """Return sentences on each own model: the best combination, the gain from larger batches, and
    the largest batch."""
    combinations: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows_of(tables, OWN_MODEL):
        combinations[row["model"], row["mode"]].append(row)
    names = {model for model, _ in combinations}
    sentences = []
    for (model, mode), rows in combinations.items():
        usable = [row for row in rows if row["throughput_median"] and not row["excluded"]]
        about = f"{model}, {mode}" if len(names) > 1 else mode
        none = "best: none, as no combination that runs passes verification"
        found = _about(usable) if usable else [none]
        sentences += [f"{about}: {text}" for text in found]
    for row in rows_of(tables, LARGEST):
        if row["model"] in names and row["largest_batch"]:
            how = " ".join(str(row[name]) for name in ("mode", "precision", "compiler"))
            sentences.append(f"{how}: the largest batch that fits is {row['largest_batch']}")
    return sentences


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


SUMMARY = declared_table("summary", lambda inputs: inputs.cases_with(_summary))
FAILURES = declared_table("failures", failures)
LARGEST = declared_table("largest_batch", searched)
STEP_TIME = declared_table(
    "inference_step_time",
    lambda inputs: inputs.cases_with(
        lambda result: _step_times(result) if result.case.mode == "inference" else None
    ),
)
INPUT_PIPELINE = declared_table("input_pipeline", lambda inputs: inputs.cases_with(_pipeline))
OWN_MODEL = declared_table(
    "own_model", lambda inputs: inputs.cases_with(lambda result: _own_model(inputs, result))
)
TABLES = (SUMMARY, FAILURES, LARGEST, STEP_TIME, INPUT_PIPELINE, OWN_MODEL)
