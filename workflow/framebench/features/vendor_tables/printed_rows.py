"""Printed cells of NVIDIA's tables as rows in their layout."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ...tables.columns import HEADINGS
from ...tables.table import Printed

AMP = "amp"
#: Precisions that mixed precision is compared with, by priority.
FULL = ("tf32", "fp32")
TRAINING, INFERENCE, ACCURACY, SEEDS = "training", "inference", "accuracy", "seeds"
#: Column with the score of each seed.
EACH = "each_seed"
#: Part of a quantity's name -> layout with such a quantity; the first match counts.
_TELLING = {
    "latency": INFERENCE,
    "_std": SEEDS,
    "time_to_train": ACCURACY,
    "amp_speedup": TRAINING,
}
_SCORES = ("top1", "exact_match", "f1", "loss")
_STATISTICS = {
    "mean": "seeds_mean",
    "std": "seeds_deviation",
    "min": "seeds_minimum",
    "max": "seeds_maximum",
}

#: Columns by their name in `variant`. Rows of two-phase pre-training have a system each.
_STATED = {
    "seq": "tokens",
    "epochs": "recipe_epochs",
    "squad": "squad_version",
    "phases": "system",
}

#: Values of a row by column.
Values = dict[str, str]


def rows(layout: str, printed: Sequence[Printed]) -> Iterator[Values]:
    """Yield the printed rows of a layout, in printed order; for seeds one per row and precision.

    Tables without a layout, such as those without mixed precision, are left out."""
    tables: dict[tuple[str, str], list[Printed]] = defaultdict(list)
    for one in printed:
        tables[one.cell["source"], one.cell["table"]].append(one)
    for some in tables.values():
        if _layout_of(some) == layout:
            yield from _rows(some, _COLUMNS[layout], layout == SEEDS)


def _layout_of(some: Iterable[Printed]) -> str:
    quantities = " ".join(printed.cell["quantity"] for printed in some)
    return next((layout for part, layout in _TELLING.items() if part in quantities), "")


def _rows(
    some: Sequence[Printed], column_of: Callable[[Mapping[str, str]], str], is_of_seeds: bool
) -> Iterator[Values]:
    lines: dict[tuple[str, str], list[Printed]] = defaultdict(list)
    for printed in some:
        lines[printed.cell["place"], printed.cell["precision"] if is_of_seeds else ""].append(
            printed
        )
    for line in lines.values():
        yield _row(line, column_of)


def _row(line: Sequence[Printed], column_of: Callable[[Mapping[str, str]], str]) -> Values:
    first = line[0].cell
    row = {
        "source": first["source"],
        "framework": first["framework"],
        "framework_version": first["framework_version"],
        "model": first["model"],
        "printed_in": first["table"],
        "line": first["place"],
        "details": first["variant"],
        "nodes": first["nodes"],
        "devices_per_node": first["devices_per_node"],
        "precision": first["precision"],
        "compiler": first["compiler"],
        "batch": first["batch_per_device"],
        **_stated(first),
    }
    figures: dict[str, list[str]] = defaultdict(list)
    faulty: dict[str, str] = {}
    headings: dict[str, str] = {}
    for printed in line:
        cell = printed.cell
        column, side = column_of(cell), _side(cell)
        figures[column].append(cell["printed"])
        headings[column] = _heading(cell["column"], column)
        row[f"batch_{side}"] = cell["batch_per_device"]
        row[f"compiler_{side}"] = cell["compiler"]
        if side == "full":  # on DGX A100, a table has headings with FP32 and with TF32
            named = [*row.get("full_precision", "").split("/"), cell["precision"]]
            row["full_precision"] = "/".join(filter(None, dict.fromkeys(named)))
        if cell["quantity"] == "throughput":
            row["unit"] = cell["unit"]
        elif cell["quantity"] == "time_to_train":
            row["time_unit"] = cell["unit"]
        for words in printed.findings:
            faulty[f"{cell['column']}, {cell['printed']}: {words}"] = column
    row |= {name: (", " if name == EACH else " / ").join(texts) for name, texts in figures.items()}
    row["score"] = " / ".join(
        dict.fromkeys(filter(None, (_score(printed.cell) for printed in line)))
    )
    row[HEADINGS] = "; ".join(f"{column}={text}" for column, text in headings.items())
    row["contradicted"] = " ".join(dict.fromkeys(faulty.values()))
    row["reason"] = "; ".join(faulty)
    return row


def _heading(printed: str, column: str) -> str:
    """Return the heading of a printed cell, without side or number of the seed."""
    if column == EACH:
        return printed.rpartition(" ")[0]
    return printed.partition("): ")[0] + ")" if "): " in printed else printed


def headings_of(row: Mapping[str, Any]) -> dict[str, str]:
    """Return the printed headings of a row by column; {} for our rows."""
    pairs = (part.partition("=") for part in str(row[HEADINGS] or "").split("; ") if part)
    return {column: text for column, _, text in pairs}


def _stated(cell: Mapping[str, str]) -> Values:
    """Return further facts that the source states of a row, by column."""
    pairs = (part.split("=") for part in cell["variant"].split(";") if "=" in part)
    known = {name: value for name, value in pairs if name in _STATED}
    found = {_STATED[name]: value for name, value in known.items() if name != "phases"}
    if "squad_version" in found:
        found["squad_version"] = f"v{found['squad_version']}"
    return found | ({_STATED["phases"]: cell["place"]} if "phases" in known else {})


def _side(cell: Mapping[str, str]) -> str:
    return AMP if cell["precision"] == AMP else "full"


def _score(cell: Mapping[str, str]) -> str:
    """Return the score that a quantity belongs to; "" if none."""
    quantity = cell["quantity"]
    return next((name for name in _SCORES if f"{quantity}_".startswith(f"{name}_")), "")


def _of_training(cell: Mapping[str, str]) -> str:
    names = {"throughput": "throughput", "speedup": "weak", "accumulation_steps": "accumulation"}
    stem = names.get(cell["quantity"])
    return f"{stem}_{_side(cell)}" if stem else cell["quantity"]


def _of_inference(cell: Mapping[str, str]) -> str:
    quantity = cell["quantity"]
    return "inference_throughput" if quantity == "throughput" else quantity


def _of_accuracy(cell: Mapping[str, str]) -> str:
    quantity = cell["quantity"]
    if quantity == "time_to_train":
        return f"time_{_side(cell)}"
    if quantity.startswith("time_to_train"):
        return "time_speedup"
    stem = "accumulation" if quantity == "accumulation_steps" else "score"
    return f"{stem}_{_side(cell)}"


_COLUMNS = {
    TRAINING: _of_training,
    INFERENCE: _of_inference,
    ACCURACY: _of_accuracy,
    SEEDS: lambda cell: _STATISTICS.get(cell["quantity"].rpartition("_")[2], EACH),
}
