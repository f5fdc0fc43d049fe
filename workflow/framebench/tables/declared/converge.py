"""Table of training quality: scores over seeds, time to a target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import methodcaller
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
#: Value of ``start`` for randomly initialised weights; value of file and folder parameters that are
#: not set.
SCRATCH, NO_FILE = "scratch", "none"


def results(inputs: Inputs) -> list[CaseResult]:
    """Return each case of this benchmark once, regardless of its metrics."""
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
    ends = descriptive.mean_interval(scores)
    return {
        "task": trained[0].task if trained else "",
        "score": trained[0].score if trained else "",
        "seeds": len(scores),
        "converged": len(result.ok),
        "score_mean": _reduced(descriptive.mean, scores),
        "score_deviation": descriptive.deviation(scores),
        "score_minimum": _reduced(min, scores),
        "score_maximum": _reduced(max, scores),
        # The mean of scores lies in 0 .. 1.
        **interval_cells("score_mean", ends and (max(ends[0], 0.0), min(ends[1], 1.0))),
        "other_score": other,
        "other_score_mean": _reduced(
            descriptive.mean, [score for some in others if (score := some.get(other)) is not None]
        ),
        "score_before": _reduced(descriptive.mean, before) if is_started else None,
        **{
            name: over_runs(methodcaller("value", name))(result)
            for name in ("time_to_target", "samples_to_target", "time_to_train")
        },
        "energy_joules": over_runs(_joules)(result),
        "energy_sources": " or ".join(sorted(energy)),
        "resumed": sum(curve.resumed_after > 0 for curve in trained),
    }


def _reduced(reduce: Callable[[Sequence[float]], float], values: Sequence[float]) -> float | None:
    return reduce(values) if values else None


def _joules(run: Run) -> float | None:
    """Return the energy of a whole training; None if it was resumed or is not known.

    The energy of a killed process is lost, so that resumed trainings have none."""
    return None if run.curve is None or run.curve.resumed_after else run.joules


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
