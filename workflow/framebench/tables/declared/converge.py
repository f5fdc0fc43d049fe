"""Tables of training quality: scores over seeds, time to a target, equivalence of cases."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from ...cases.conditions import CONDITIONS, Key
from ...records.fields.curves import KIND, NO_TARGET, LearningCurve
from ...records.run import Run
from ...statistics import descriptive, equivalence
from .. import training
from ..columns import NUMBER, TEXT, WHOLE, Column, Form, Row, Value, interval, shared
from ..measured import AXES
from ..results import CaseResult, over_runs
from ..table import Drawing, Inputs, Table

if TYPE_CHECKING:
    import pandas as pd

#: Margin within which scores are equivalent: one percentage point.
MARGIN = 0.01
#: Fields in which compared cases agree, besides their settings and conditions.
_IN_COMMON = ("model", "nodes", "devices_per_node", "batch_per_device")
_SCORE = Form(spec=".4f")
_POINTS = Form(spec="+.4f")
_SECONDS = Form(spec=".3g")


def results(inputs: Inputs) -> list[CaseResult]:
    """Return the cases of this benchmark, once each regardless of their metrics."""
    return [
        result
        for key, result in inputs.others.items()
        if key.case.mode == KIND and key == result.runs[0].key
    ]


def curves(result: CaseResult) -> list[LearningCurve]:
    """Return the learning curves of repeats that trained and ended with a score.

    Repeats that did not converge are included."""
    found = [run.curve for run in result.runs if run.status in ("ok", "not_converged")]
    return [curve for curve in found if curve is not None and curve.last is not None]


def scores(result: CaseResult) -> list[float]:
    """Return the score of each repeat after its last epoch."""
    return list(scores_of(result).values())


def scores_of(result: CaseResult) -> dict[int, float]:
    """Return the score after the last epoch by number of the repeat."""
    return {
        run.repeat: run.curve.last
        for run in result.runs
        if run.status in ("ok", "not_converged") and run.curve and run.curve.last is not None
    }


def rows(inputs: Inputs) -> pd.DataFrame:
    """Return a row per case."""
    from ..case_frame import case_frame, with_cells  # slow to import, and plans make no rows

    found = results(inputs)
    return with_cells(case_frame(found), training.paths([result.case for result in found]))


def by_case(inputs: Inputs) -> dict[Key, Row]:
    """Return the rows by key of the case."""
    from ..view import records  # as above

    made = records(inputs.made(CONVERGE))
    return {result.key: row for result, row in zip(results(inputs), made, strict=True)}


def _of_curves(
    figure: Callable[[LearningCurve], Any], reduce: Callable[[Sequence[Any]], Any]
) -> Value:
    """Return a function of a case that reduces a figure of its repeats with a score.

    Repeats without the figure are left out; the function returns None if all are."""

    def value(result: CaseResult) -> Any:
        found = [value for curve in curves(result) if (value := figure(curve)) is not None]
        return reduce(found) if found else None

    return value


def _of_scores(reduce: Callable[[Sequence[float]], Any]) -> Value:
    return _of_curves(attrgetter("last"), reduce)


def _of_first(name: str) -> Value:
    """Return a function of a case that gives a text of its first repeat; "" without one."""
    return lambda result: getattr(trained[0], name) if (trained := curves(result)) else ""


def _other_score(result: CaseResult) -> str:
    trained = curves(result)
    return trained[0].others[0][0] if trained and trained[0].others else ""


def _other_score_mean(result: CaseResult) -> float | None:
    """Return the mean of the second score after the last epoch, over repeats that have it."""
    name = _other_score(result)
    mean = _of_curves(lambda curve: dict(curve.others).get(name), descriptive.mean)
    found: float | None = mean(result)
    return found


def _score_before(result: CaseResult) -> float | None:
    if not training.is_started(result.case):
        return None
    found: float | None = _of_curves(attrgetter("before"), descriptive.mean)(result)
    return found


def _energy_sources(result: CaseResult) -> str:
    return " or ".join(sorted({run.energy_sources for run in result.ok if run.joules}))


def _joules(run: Run) -> float | None:
    """Return the energy of a whole training; None if it was resumed or is not known.

    The energy of a killed process is lost, so that resumed trainings have none."""
    return None if run.curve is None or run.curve.resumed_after else run.joules


def median(metric: str) -> Value:
    """Return a function of a case that gives a metric's median over its successful repeats."""
    return over_runs(lambda run: run.value(metric))


def _interval(result: CaseResult) -> tuple[float, float] | None:
    """Return the interval of the mean score, limited to 0 .. 1."""
    found = equivalence.mean_interval(scores(result))
    return found and (max(found[0], 0.0), min(found[1], 1.0))


def pairs(inputs: Inputs) -> Iterator[Row]:
    """Yield a row per pair of cases that should learn the same.

    The cases have no target, so that they train to the end. They differ in the framework, with any
    compilers, or only in precision or compiler."""
    known = [result for result in results(inputs) if _without_target(result) and scores(result)]
    paths = training.paths([result.case for result in known])
    path_of = {id(result): path for result, path in zip(known, paths, strict=True)}
    for first, second in combinations(known, 2):
        if not _comparable(first, second):
            continue
        compared = equivalence.compare(scores(first), scores(second), MARGIN)
        mean, (low, high), verdict = compared or (None, (None, None), equivalence.CANNOT_TELL)
        other = second.key.row
        yield {
            "result": first,
            **path_of[id(first)],
            **{f"other_{name}": other[name] for name in _APART},
            "score": curves(first)[0].score,
            "fewest_seeds": min(len(scores(first)), len(scores(second))),
            "difference": mean,
            "difference_low": low,
            "difference_high": high,
            "margin": MARGIN,
            "equivalence": verdict,
        }


_APART = ("framework", "framework_version", "precision", "compiler")
#: Allowed differences. Another framework has another version and compiler.
_COMPARED = (
    {"framework", "framework_version"},
    {"framework", "framework_version", "compiler"},
    {"precision"},
    {"compiler"},
)


def _without_target(result: CaseResult) -> bool:
    return bool(dict(result.case.parameters).get("target", NO_TARGET) == NO_TARGET)


def _comparable(first: CaseResult, second: CaseResult) -> bool:
    apart = {axis for axis in _APART if _differ(first, second, axis)}
    if "framework" in apart:
        apart.add("framework_version")  # two frameworks may have equal version numbers
    return bool(
        apart in _COMPARED
        and not any(_differ(first, second, axis) for axis in _IN_COMMON)
        and first.case.parameters == second.case.parameters
        and first.conditions == second.conditions
    )


def _differ(first: CaseResult, second: CaseResult, axis: str) -> bool:
    return bool(getattr(first.case, axis) != getattr(second.case, axis))


def lead(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a sentence that counts the verdicts of the pairs."""
    counted: Mapping[str, int] = {
        verdict: sum(row["equivalence"] == verdict for row in rows)
        for verdict in dict.fromkeys(row["equivalence"] for row in rows)
    }
    if rows:
        counts = ", ".join(f"{count} {verdict}" for verdict, count in counted.items())
        yield f"Of {len(rows)} pairs: {counts}. The margin is {rows[0]['margin']:g}."


def _needs_two(row: Row) -> str:
    return "needs 2 seeds" if row["seeds"] else ""


def _why_no_interval(row: Row) -> str:
    return "all seeds have the same" if row["seeds"] > 1 else _needs_two(row)


def _why_no_energy(row: Row) -> str:
    if not row["converged"]:
        return "none converged"
    return "resumed" if row["resumed"] else "no energy could be read"


def _needs_two_each(row: Row) -> str:
    return "needs 2 seeds of each" if row["fewest_seeds"] < 2 else ""


def _of_target(row: Row) -> str:
    return "no target" if row["target"] is None else ""


CONVERGE = Table(
    name="converge",
    title="Training to a target",
    explanation="Scores of trainings over seeds; each repeat has its own seed. A score is that of "
    "held-out data after the last epoch. A case with a target ends when it reaches the target; "
    "one without trains for all its epochs. Repeats that missed their target count in the scores, "
    "but not in the times, which are medians. The interval is Student's, of the mean.",
    columns=(
        *shared(*AXES),
        *shared(*CONDITIONS),
        *training.COLUMNS,
        Column("task", TEXT, "what is learned", value=_of_first("task"), hoisted=True),
        Column("score", TEXT, "score of the task", value=_of_first("score"), hoisted=True),
        Column(
            "seeds", WHOLE, "repeats that trained and have a score",
            value=lambda case: len(scores(case)),
        ),
        Column(
            "converged", WHOLE, "of them, those that did not miss a target",
            value=lambda case: len(case.ok),
        ),
        Column(
            "score_mean", NUMBER, "mean of the scores",
            value=_of_scores(descriptive.mean), title="mean", form=_SCORE, figure=True
        ),
        Column(
            "score_deviation", NUMBER, "their standard deviation",
            value=_of_scores(equivalence.deviation), title="deviation", form=_SCORE,
            why=_needs_two,
        ),
        Column(
            "score_minimum", NUMBER, "the least of them",
            value=_of_scores(min), title="min \N{EN DASH} max", form=_SCORE,
            to="score_maximum",
        ),
        Column("score_maximum", NUMBER, "the highest of them", value=_of_scores(max)),
        *interval(
            "score_mean", "the mean score", value=_interval, form=_SCORE, why=_why_no_interval,
        ),
        Column(
            "score_best", NUMBER, "highest score of any epoch",
            value=_of_curves(attrgetter("best"), max), title="best", form=_SCORE,
        ),
        Column("other_score", TEXT, "the second score", value=_other_score, hoisted=True),
        Column(
            "other_score_mean", NUMBER, "its mean after the last epoch",
            value=_other_score_mean, form=_SCORE,
            optional=True,
        ),
        Column(
            "score_before", NUMBER, "mean score before training, of weights that it starts from",
            value=_score_before,
            title="before training", form=_SCORE, optional=True, why=training.why_not_started,
        ),
        Column(
            "time_to_target", NUMBER,
            "median over repeats that reached it: training steps with their input pipeline", "s",
            value=median("time_to_target"),
            title="time to target s", form=_SECONDS, why=_of_target,
        ),
        Column(
            "samples_to_target", NUMBER, "median over the same", "samples",
            value=median("samples_to_target"), form=Form(spec=".0f"),
            why=_of_target,
        ),
        Column(
            "time_to_train", NUMBER, "median over converged repeats, with evaluations", "s",
            value=median("time_to_train"),
            title="time to train s", form=_SECONDS,
        ),
        Column(
            "energy_joules", NUMBER, "median over converged repeats that were not resumed, from "
            "the first step to the end of the last evaluation", "J",
            value=over_runs(_joules), title="energy", form=_SECONDS,
            why=_why_no_energy,
        ),
        Column(
            "energy_sources", TEXT,
            "what was read: processors (`package`), memory (`dram`), `gpu`; a "
            "package counts idle cores too", value=_energy_sources, title="energy of", hoisted=True,
        ),
        Column(
            "resumed", WHOLE, "of the seeds, those that went on from a checkpoint",
            value=lambda case: sum(curve.resumed_after > 0 for curve in curves(case)), optional=True
        ),
        *shared("status", "reason"),
    ),
    rows=rows,
    group="Other measurements",
    heading="Training to a target",
    drawings=(Drawing("learning"),),
    answers=("score_mean", "time_to_target", "status"),
    keys=(*AXES, *CONDITIONS, *training.NAMES),
    axes=("framework", "model", "precision", "devices", "compiler"),
)  # fmt: skip
_OTHER = tuple(
    Column(f"other_{name}", TEXT, f"{name} of the second case", title=f"other {name}")
    for name in _APART
)
EQUIVALENCE = Table(
    name="converge_equivalence",
    title="Do they learn the same?",
    explanation="Two cases that trained for the same epochs with the same recipe: mean score of "
    "the second minus that of the first, with its 90 % interval (Welch). The same within the "
    "margin: the whole interval lies within the margin (two one-sided tests at 5 %). The margin "
    "is one percentage point. A missing difference alone would "
    "show nothing. The claim is about the held-out samples.",
    columns=(
        *shared(*_IN_COMMON),
        *shared(*CONDITIONS),
        *training.RECIPE,
        *shared(*_APART),
        *_OTHER,
        Column("score", TEXT, "score of the task", hoisted=True),
        Column("fewest_seeds", WHOLE, "seeds of the case with fewer of them", title="seeds"),
        Column(
            "difference", NUMBER, "mean score of the second case minus that of the first",
            form=_POINTS, why=_needs_two_each,
        ),
        Column(
            "difference_low", NUMBER, "lower end of its 90 % interval", title="90 % interval",
            form=_POINTS, to="difference_high", why=_needs_two_each,
        ),
        Column("difference_high", NUMBER, "upper end of its 90 % interval"),
        Column(
            "margin", NUMBER, "that scores may be apart and be the same", hoisted=True,
            form=Form(spec="g"),
        ),
        Column(
            "equivalence", TEXT, "`same within the margin`, `apart by more`, or `cannot tell`",
            form=Form(looks={equivalence.SAME: "ok", equivalence.ANOTHER: "failed"}),
        ),
    ),
    rows=pairs,
    group="Other measurements",
    heading="Training to a target",
    lead=lead,
    keys=(*_IN_COMMON, *CONDITIONS, *training.NAMES[1:], *_APART,
          *(column.name for column in _OTHER)),
    answers=("equivalence", "difference"),
    axes=("framework", "model", "precision", "devices", "compiler"),
)  # fmt: skip
TABLES = (CONVERGE, EQUIVALENCE)
