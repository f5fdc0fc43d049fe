"""Tables in the layout of NVIDIA's DeepLearningExamples: printed figures next to ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ...tables.columns import COLUMNS, CONTRADICTED, HEADINGS, PRINTED, TEXT, Column, Row, shared
from ...tables.declared.converge import CONVERGE
from ...tables.table import Inputs, Table
from . import layouts, measured_rows, printed_rows
from .printed_rows import Values

_NUMBERS = ("nodes", "devices_per_node")
#: Prefixes of columns that do not identify a row.
_BESIDE = ("source", "framework_version", "full_precision", "accumulation", "compiler")
_LATENCIES = {"mean": "average", "p50": "50 %", "p90": "90 %", "p95": "95 %", "p99": "99 %"}


def _rows(
    layout: str, measured: Callable[[Inputs], Iterator[Values]], names: tuple[str, ...]
) -> Callable[[Inputs], Iterator[Row]]:
    """Return a function that yields our rows, followed by printed rows of the same models.

    Without any measured case, all printed rows are returned."""

    def rows(inputs: Inputs) -> Iterator[Row]:
        ours = list(measured(inputs))
        models = {measured_rows.PRINTED_AS.get(row["model"], row["model"]) for row in ours}
        every = not (inputs.cases or inputs.others)
        cells = inputs.of_features.get("printed", list)() if models or every else []
        printed = printed_rows.rows(layout, cells)
        for row in [*ours, *(row for row in printed if every or row["model"] in models)]:
            yield {n: int(row[n]) if n in _NUMBERS else row.get(n, "") for n in names}

    return rows


def _why(row: Row) -> str:
    return "not printed" if row["printed_in"] else "" if row["reason"] else "nothing to divide by"


def _text(name: str, explanation: str, title: str = "", **shown: Any) -> Column:
    return Column(name, TEXT, explanation, title=title, **shown)


def _figure(name: str, explanation: str, title: str, unit: str = "") -> Column:
    return Column(
        name, TEXT, f"{explanation}; as printed, or as our records give it", unit, title=title,
        form=PRINTED, flagged=True, why=_why,
    )  # fmt: skip


_OF = (
    *shared("source", "framework", "framework_version", "model"),
    _text("printed_in", "the table that it is printed in; nothing where we measured", "printed in"),
    _text("line", "its row there; of our scores over seeds a number that both precisions share"),
    _text(
        "details",
        "machine and what else is said; of our own runs their conditions",
    ),
    *shared("nodes", "devices_per_node"),
)
_PRECISION = COLUMNS["precision"]
_TOKENS = _text("tokens", "sequence length", "sequence length")
_EPOCHS = _text("recipe_epochs", "epochs of training", "epochs")
_BATCH = _text("batch", "batch of each device", "batch per device")
_SCORE = CONVERGE.by_name["score"]
_SPEEDUP = "throughput in mixed over that in full precision"
_FULL = _text("full_precision", "what mixed precision is compared with", "full precision")
_LAST = (
    _text(
        CONTRADICTED,
        "columns of this row about which lint has a finding; they are marked",
        hidden=True,
    ),
    _text(HEADINGS, "headings of its figures, as printed: COLUMN=HEADING; ..", hidden=True),
    *shared("flags", "reason"),
)


def _amp_and_full(stem: str, explanation: str) -> tuple[Column, Column]:
    """Return columns for mixed and for full precision."""
    return (
        _text(f"{stem}_amp", f"{explanation}, in mixed precision", f"{stem}, mixed"),
        _text(f"{stem}_full", f"{explanation}, in full precision", f"{stem}, full"),
    )


def _figures(stem: str, explanation: str, title: str, unit: str = "") -> tuple[Column, Column]:
    return (
        _figure(f"{stem}_amp", f"{explanation}, in mixed precision", f"{title}, mixed", unit),
        _figure(f"{stem}_full", f"{explanation}, in full precision", f"{title}, full", unit),
    )


def _table(
    layout: str,
    title: str,
    explanation: str,
    measured: Callable[[Inputs], Iterator[Values]],
    keys: tuple[Column, ...],
    figures: tuple[Column, ...],
) -> Table:
    columns = (*_OF, *keys, *figures, *_LAST)
    names = tuple(column.name for column in columns)
    axes = ("framework", "model", "devices", *(["precision"] if _PRECISION in keys else []))
    return Table(
        name=f"nvidia_{layout}",
        title=title,
        explanation=explanation,
        columns=columns,
        rows=_rows(layout, measured, names),
        group="NVIDIA's layout",
        heading="In the layout of NVIDIA's tables",
        keys=tuple(column.name for column in (*_OF, *keys) if not column.name.startswith(_BESIDE)),
        layouts=layouts.published_layouts(layout),
        axes=axes,
    )


_UNIT = COLUMNS["unit"]
TRAINING = _table(
    printed_rows.TRAINING,
    "Training throughput, as NVIDIA prints it",
    "Throughput in mixed and in full precision, the speed-up of the one over the other, and weak "
    "scaling: throughput over that of one device with the same batch. Ours: the case in mixed "
    "precision beside the one in TF32, or else FP32, with as many samples an update.",
    measured_rows.training,
    (
        _FULL,
        *_amp_and_full("batch", "batch of each device"),
        *_amp_and_full("accumulation", "micro-steps of an update"),
        *_amp_and_full("compiler", "graph compiler"),
        _TOKENS,
    ),
    (
        *_figures("throughput", "throughput", "throughput", "samples/s"),
        _figure("amp_speedup", _SPEEDUP, "speed-up"),
        *_figures("weak", "throughput over that of one device", "weak scaling"),
        _UNIT,
    ),
)
INFERENCE = _table(
    printed_rows.INFERENCE,
    "Inference, as NVIDIA prints it",
    "Throughput and latency, with the speed-ups of mixed precision: of a latency that in full "
    "precision over that in mixed. Ours are the times of steps in a closed loop, the median over "
    "repeats; percentiles are nearest-rank. ELECTRA's are printed as 90, 95 and 99 % but are means "
    "of the fastest: they lie below the average.",
    measured_rows.inference,
    (_PRECISION, COLUMNS["compiler"], _BATCH, _TOKENS),
    (
        _figure("inference_throughput", "throughput", "throughput", "samples/s"),
        _figure("amp_speedup", _SPEEDUP, "speed-up"),
        *(
            column
            for name, title in _LATENCIES.items()
            for column in (
                _figure(f"latency_{name}", f"{title} latency", f"{title} ms", "ms"),
                _figure(
                    f"latency_{name}_amp_speedup",
                    f"{title} latency in full over that in mixed precision",
                    f"{title} speed-up",
                ),
            )
        ),
        _UNIT,
    ),
)
ACCURACY = _table(
    printed_rows.ACCURACY,
    "Accuracy and time to train, as NVIDIA prints them",
    "What was learned in mixed and in full precision, and how long that took. Ours are of the "
    "kind converge, over seeds: mean scores in percent, medians of the times with evaluations.",
    measured_rows.accuracy,
    (
        _FULL,
        *_amp_and_full("batch", "batch of each device"),
        *_amp_and_full("accumulation", "micro-steps of an update"),
        _SCORE,
        _EPOCHS,
        _text("system", "of pre-training on many machines: which", "DGX system"),
        _text("squad_version", "of SQuAD", "SQuAD version"),
        _text("time_unit", "of the times; nothing where none is printed", "unit of time"),
    ),
    (
        *_figures("score", "the score", "score"),
        *_figures("time", "time to train", "time"),
        _figure("time_speedup", "time in full over that in mixed precision", "speed-up"),
    ),
)
SEEDS = _table(
    printed_rows.SEEDS,
    "Scores over seeds, as NVIDIA prints them",
    "Mean, standard deviation and extremes of the score over seeds. Ours are of the kind converge, "
    "in percent; deviations too, which NVIDIA's of MXNet are not.",
    measured_rows.seeds,
    (_PRECISION, _BATCH, _EPOCHS, _SCORE),
    (
        _figure("seeds_mean", "mean over seeds", "mean"),
        _figure("seeds_deviation", "standard deviation over seeds", "deviation"),
        _figure("seeds_minimum", "least of a seed", "minimum"),
        _figure("seeds_maximum", "most of a seed", "maximum"),
        _text("each_seed", "the score of each, as far as they are printed", "of each"),
    ),
)
TABLES = (TRAINING, INFERENCE, ACCURACY, SEEDS)
