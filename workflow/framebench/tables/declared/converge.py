"""Table of training quality: scores over seeds, time to a target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Any

import pandas as pd

from ...config import measurements
from ...records.fields import NO_TARGET, LearningCurve
from ...records.run import Run
from ...statistics import descriptive
from ..columns import Row, interval_cells
from ..results import CaseResult, case_frame, over_runs, with_cells
from ..table import Inputs, declared_table

#: Numeric parameters of a training, with the value that means "none".
_NUMBERS = {
    "target": NO_TARGET,
    "epochs": None,
    "epoch_steps": 0,
    "warmup": None,
    "learning_rate_batch": 0,
    "label_smoothing": 0,
    "mixup": 0,
}
_TEXTS = ("schedule", "learning_rate", "weight_decay", "momentum")
#: Metrics of which the median over successful repeats counts.
_METRICS = ("time_to_target", "samples_to_target", "time_to_train")
#: Value of ``start`` for randomly initialised weights; value of file and folder parameters that are
#: not set.
SCRATCH, NO_FILE = "scratch", "none"


def results(inputs: Inputs) -> list[CaseResult]:
    """Return the cases of this benchmark, once each regardless of their metrics."""
    return [
        result
        for key, result in inputs.others.items()
        if key.case.mode == measurements.CONVERGE and key == result.runs[0].key
    ]


def curves(result: CaseResult) -> list[LearningCurve]:
    """Return the learning curves of repeats that trained and ended with a score.

    Repeats that did not converge are included."""
    found = [run.curve for run in result.runs if run.status in ("ok", "not_converged")]
    return [curve for curve in found if curve is not None and curve.last is not None]


def rows(inputs: Inputs) -> pd.DataFrame:
    """Return a row per case."""
    found = results(inputs)
    return with_cells(case_frame(found), [{**_recipe(one), **_cells(one)} for one in found])


def _cells(result: CaseResult) -> Row:
    """Return scores over the repeats that have one, and medians over successful repeats."""
    trained = curves(result)
    scores = [curve.last for curve in trained if curve.last is not None]
    others = [dict(curve.others) for curve in trained]
    other = next(iter(others[0]), "") if others else ""
    before = [curve.before for curve in trained if curve.before is not None]
    is_started = dict(result.case.parameters).get("start", NO_FILE) != NO_FILE
    energy = {run.energy_sources for run in result.ok if run.joules}
    return {
        "task": trained[0].task if trained else "",
        "score": trained[0].score if trained else "",
        "seeds": len(scores),
        "converged": len(result.ok),
        "score_mean": _reduced(descriptive.mean, scores),
        "score_deviation": descriptive.deviation(scores),
        "score_minimum": _reduced(min, scores),
        "score_maximum": _reduced(max, scores),
        **interval_cells("score_mean", _mean_interval(scores)),
        "other_score": other,
        "other_score_mean": _reduced(
            descriptive.mean, [score for some in others if (score := some.get(other)) is not None]
        ),
        "score_before": _reduced(descriptive.mean, before) if is_started else None,
        **{name: _median(result, name) for name in _METRICS},
        "energy_joules": over_runs(_joules)(result),
        "energy_sources": " or ".join(sorted(energy)),
        "resumed": sum(curve.resumed_after > 0 for curve in trained),
    }


def _reduced(reduce: Callable[[Sequence[float]], float], values: Sequence[float]) -> float | None:
    return reduce(values) if values else None


def _median(result: CaseResult, metric: str) -> Any:
    return over_runs(lambda run: run.value(metric))(result)


def _joules(run: Run) -> float | None:
    """Return the energy of a whole training; None if it was resumed or is not known.

    The energy of a killed process is lost, so that resumed trainings have none."""
    return None if run.curve is None or run.curve.resumed_after else run.joules


def _mean_interval(scores: Sequence[float]) -> tuple[float, float] | None:
    """Return the interval of the mean score, limited to 0 .. 1."""
    found = descriptive.mean_interval(scores)
    return found and (max(found[0], 0.0), min(found[1], 1.0))


def _recipe(result: CaseResult) -> Row:
    """Return the settings of a training."""
    given = dict(result.case.parameters)
    row: dict[str, Any] = {name: str(given.get(name, "")) for name in _TEXTS}
    for name, nothing in _NUMBERS.items():
        row[name] = None if given.get(name) == nothing else given.get(name)
    start, data = (given.get(name, NO_FILE) for name in ("start", "data"))
    row["start"] = SCRATCH if start == NO_FILE else PurePath(start).name
    row["data_folder"] = "" if data == NO_FILE else PurePath(data).name
    return row


CONVERGE = declared_table("converge", rows)
TABLES = (CONVERGE,)
