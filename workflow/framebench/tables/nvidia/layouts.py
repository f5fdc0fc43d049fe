"""The tables as NVIDIA lays them out: what is printed, and ours, under the headings of the source
and in its order. MXNet's page has mixed precision first, ELECTRA's full precision."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ...cases.names import topology
from .. import view
from ..cells import Cell
from ..columns import CONTRADICTED, LINT, Row
from ..results import UNCOMPILED, marks_of_all, other_marks
from ..table import Layout
from .printed_rows import ACCURACY, AMP, EACH, INFERENCE, SEEDS, TRAINING, Values

#: How the precisions are called there.
_PRECISIONS = {"tf32": "TF32", "fp32": "FP32", AMP: "mixed precision"}
_SCORES = {
    "top1": "Accuracy",
    "accuracy": "Accuracy",
    "exact_match / f1": "Accuracy / F1",
    "exact_match": "Exact Match %",
    "f1": "f1 %",
    "loss": "Final Loss",
}
#: A table of ours is of one of each of these, if they are no columns of the layout.
_APART = ("source", "model", "details", "nodes", "batch_amp", "batch", "accumulation_amp",
          "recipe_epochs", "score", "time_unit")  # fmt: skip
#: Those of :data:`_APART` that a title has, with the words before each.
_NAMED = {
    "model": "", "details": "", "batch_amp": "batch ", "batch": "batch ",
    "accumulation_amp": "accumulation ", "recipe_epochs": "epochs ",
}  # fmt: skip
#: What is in no title because it is the usual.
_USUAL = {"accumulation_amp": "1"}
#: Ours stand in one table, each named by these; its compiler where there is one.
_FRAMEWORK = ("framework", "framework_version")
_COMPILERS = ("compiler_amp", "compiler")


@dataclass(frozen=True)
class Heading:
    """``title``: with {full}, {score}, {metric} and {unit} of the table. ``columns``: of the row,
    in a cell with ``between`` them, or once where they are the same. ``is_figure``: carries marks.
    ``differing``: it is there only where its cells differ."""

    title: str
    columns: tuple[str, ...]
    between: str = " and "
    is_figure: bool = False
    differing: bool = False


def _key(title: str, *columns: str, between: str = " and ", differing: bool = False) -> Heading:
    return Heading(title, columns, between, differing=differing)


def _figure(title: str, column: str) -> Heading:
    return Heading(title, (column,), is_figure=True)


_LATENCIES = {"mean": "Avg", "p50": "50%", "p90": "90%", "p95": "95%", "p99": "99%"}
_BATCHES = ("batch_full", "batch_amp")
_MXNET = {
    TRAINING: (
        _key("GPUs", "devices_per_node"),
        _figure("Throughput - mixed precision", "throughput_amp"),
        _figure("Throughput - {full}", "throughput_full"),
        _figure("Throughput speedup ({full} - mixed precision)", "amp_speedup"),
        _figure("Weak scaling - mixed precision", "weak_amp"),
        _figure("Weak scaling - {full}", "weak_full"),
    ),
    INFERENCE: (
        _key("Batch size", "batch"),
        _figure("Throughput (img/sec) - mixed precision", "inference_throughput"),
        _figure("Throughput - speedup", "amp_speedup"),
        *(
            heading
            for name, title in _LATENCIES.items()
            for heading in (
                _figure(f"{title} latency (ms) - mixed precision", f"latency_{name}"),
                _figure(f"{title} latency - speedup", f"latency_{name}_amp_speedup"),
            )
        ),
    ),
    ACCURACY: (
        _key("GPUs", "devices_per_node"),
        _figure("{score} - mixed precision", "score_amp"),
        _figure("{score} - {full}", "score_full"),
        _figure("Time to train{unit} - mixed precision", "time_amp"),
        _figure("Time to train{unit} - {full}", "time_full"),
        _figure("Time to train - speedup", "time_speedup"),
    ),
    SEEDS: (
        _key("# of epochs", "recipe_epochs"),
        *(
            _figure(f"{precision} {title}", f"seeds_{name}_{side}")
            for name, title in (
                ("mean", "avg {metric}"),
                ("deviation", "standard deviation"),
                ("minimum", "minimum {metric}"),
                ("maximum", "maximum {metric}"),
            )
            for side, precision in ((AMP, "mixed precision"), ("full", "{full}"))
        ),
    ),
}
_ELECTRA = {
    TRAINING: (
        _key("GPUs", "devices_per_node"),
        _key("Batch size / GPU ({full} and mixed precision)", *_BATCHES),
        _key(
            "Accumulation steps ({full} and mixed precision)",
            "accumulation_full", "accumulation_amp",
        ),
        _key("Sequence length", "tokens"),
        _figure("Throughput - {full} (sequences/sec)", "throughput_full"),
        _figure("Throughput - mixed precision (sequences/sec)", "throughput_amp"),
        _figure("Throughput speedup ({full} - mixed precision)", "amp_speedup"),
        _figure("Weak scaling - {full}", "weak_full"),
        _figure("Weak scaling - mixed precision", "weak_amp"),
    ),
    INFERENCE: (
        _key("Batch size", "batch"),
        _key("Sequence length", "tokens"),
        _figure("Throughput Avg (sequences/sec)", "inference_throughput"),
        *(
            _figure(f"Latency {title} (ms)", f"latency_{name}")
            for name, title in _LATENCIES.items()
            if name != "p50"
        ),
    ),
    ACCURACY: (
        _key("DGX System", "system"),
        _key("GPUs", "devices_per_node"),
        _key("SQuAD version", "squad_version", differing=True),
        _key("Batch size / GPU ({full} : mixed precision)", *_BATCHES, between=" : "),
        _key("Accumulation steps", "printed_accumulation"),
        _figure("{score} - {full}", "score_full"),
        _figure("{score} - mixed precision", "score_amp"),
        _figure("Time to train{unit} - {full}", "time_full"),
        _figure("Time to train{unit} - mixed precision", "time_amp"),
        _figure("Time to train speedup ({full} to mixed precision)", "time_speedup"),
    ),
    SEEDS: (
        _key("Accuracy Metric", "score"),
        _key("Seed", EACH),
        _figure("Mean", "seeds_mean"),
        _figure("Standard Deviation", "seeds_deviation"),
    ),
}  # fmt: skip


def of(layout: str) -> Callable[[Sequence[Row]], list[Layout]]:
    """Of the rows of the table with this layout: those of ours first, as its rows are."""

    def layouts(rows: Sequence[Row]) -> list[Layout]:
        parts: dict[tuple[str, ...], list[Row]] = defaultdict(list)
        for row in rows:
            parts[_table_of(row, layout)].append(row)
        made = (_layout(some, layout) for some in parts.values())
        return [one for one in made if one.rows]

    return layouts


def _headings(row: Row, layout: str) -> tuple[Heading, ...]:
    """As those are of whom NVIDIA printed the model; of other models MXNet's."""
    return (_ELECTRA if _is_electra(row) else _MXNET)[layout]


def _is_electra(row: Row) -> bool:
    return str(row["model"]).startswith("electra")


def _table_of(row: Row, layout: str) -> tuple[str, ...]:
    if row["printed_in"]:
        return row["source"], row["printed_in"]
    columns = {name for heading in _headings(row, layout) for name in heading.columns}
    columns |= {"batch"} if layout == SEEDS else set()  # of each precision its own
    precision = row["precision"] if layout == INFERENCE else ""
    apart = (str(row.get(name, "")) for name in _APART if name not in columns)
    return precision, *apart


def _layout(rows: Sequence[Row], layout: str) -> Layout:
    first = rows[0]
    headings = _headings(first, layout)
    everywhere = marks_of_all(row["marks"] for row in rows if _has_figure(row, headings))
    lines = list(_lines(rows, layout))
    words = _words(rows)
    shown = [
        (title, cells)
        for heading in headings
        for title, cells in _columns(heading, [values for _, values in lines], words, everywhere)
    ]
    if not first["printed_in"]:
        shown.insert(0, ("Framework", [Cell(_framework(row), "case") for row, _ in lines]))
    notes = [f"{_name_of(row)}{row['reason']}" for row in rows if row["reason"]]
    if everywhere:
        notes.insert(0, f"Every figure is marked {' '.join(everywhere)}.")
    return Layout(
        _title(rows, {name for heading in headings for name in heading.columns}, layout),
        [title for title, _ in shown],
        [(row, [cells[at] for _, cells in shown]) for at, (row, _) in enumerate(lines)],
        list(dict.fromkeys(notes)),
    )


def _lines(rows: Sequence[Row], layout: str) -> Iterator[tuple[Row, Values]]:
    """A row of theirs, with its values by column: of MXNet's seeds both precisions stand in one,
    and of its inference only mixed precision has one."""
    if _is_electra(rows[0]) or layout not in (INFERENCE, SEEDS):
        yield from ((row, _values(row)) for row in rows)
    elif layout == INFERENCE:
        yield from ((row, _values(row)) for row in rows if row["precision"] == AMP)
    else:
        yield from ((some[0], _both(some)) for some in _pairs(rows))


def _pairs(rows: Sequence[Row]) -> list[list[Row]]:
    """Each in mixed precision with one that is not, of as many epochs on as many devices."""
    pairs: list[list[Row]] = []
    alike = ("line", "devices_per_node", "recipe_epochs")
    for row in rows:
        is_mixed = row["precision"] == AMP
        fitting = (
            some
            for some in pairs
            if all(some[0][name] == row[name] for name in alike)
            and not any((one["precision"] == AMP) == is_mixed for one in some)
        )
        found = next(fitting, None)
        if found is None:
            pairs.append([row])
        else:
            found.append(row)
    return pairs


def _values(row: Row) -> Values:
    return {name: "" if value is None else str(value) for name, value in row.items()}


def _both(rows: Iterable[Row]) -> Values:
    """What is of one precision has its side behind its name."""
    found: Values = {}
    contradicted = []
    for row in rows:
        side = AMP if row["precision"] == AMP else "full"
        values = _values(row)
        found |= values | {f"{name}_{side}": text for name, text in values.items()}
        contradicted += [f"{name}_{side}" for name in values[CONTRADICTED].split()]
    return found | {CONTRADICTED: " ".join(contradicted)}


def _words(rows: Sequence[Row]) -> dict[str, str]:
    """What the titles of a table say."""
    full = [name for row in rows for name in str(row.get("full_precision") or "").split("/")]
    full += [row["precision"] for row in rows if row.get("precision") not in (None, AMP)]
    units = dict.fromkeys(row.get("time_unit", "") for row in rows)
    scores = dict.fromkeys(filter(None, (row.get("score", "") for row in rows)))
    named = dict.fromkeys(_PRECISIONS.get(name, name) for name in full if name)
    return {
        "full": "/".join(named) or "full precision",
        "score": " / ".join(map(_score, scores)),
        "metric": " / ".join(scores),
        "unit": "".join(f" ({unit})" for unit in filter(None, units)),
    }


def _score(name: str) -> str:
    return _SCORES.get(name, name)


def _columns(
    heading: Heading, lines: Sequence[Values], words: dict[str, str], everywhere: Sequence[str]
) -> Iterator[tuple[str, list[Cell]]]:
    """Title and cells: of seeds one column for each; none where nothing is in it."""
    title = heading.title.format(**words)
    if heading.columns == (EACH,):
        every = [line[EACH].split(", ") for line in lines]
        for at in range(max(map(len, every))):
            texts = [some[at] if at < len(some) else "" for some in every]
            if any(texts):
                yield f"{title} {at + 1}", [_cell(text, True) for text in texts]
        return
    texts = [
        heading.between.join(dict.fromkeys(filter(None, map(line.get, heading.columns))))
        for line in lines
    ]
    if not any(texts) or (heading.differing and len(set(texts)) == 1):
        return
    if heading.columns == ("score",):
        texts = list(map(_score, texts))
    if len(heading.columns) > 1 and not any(heading.between in text for text in texts):
        title = title.partition(" (")[0]
    yield (
        title,
        [
            _cell(text, heading.columns != ("system",), _marks(heading, line, everywhere))
            for text, line in zip(texts, lines, strict=True)
        ],
    )


def _cell(text: str, is_number: bool, marks: str = "") -> Cell:
    if not text:
        return Cell(view.DASH, "number missing")
    return Cell(text, "number" if is_number else "case", marks=marks)


def _marks(heading: Heading, line: Values, everywhere: Sequence[str]) -> str:
    if not heading.is_figure:
        return ""
    is_faulty = not {*heading.columns}.isdisjoint(line[CONTRADICTED].split())
    return " ".join([*other_marks(line["marks"], everywhere).split(), *[LINT] * is_faulty])


def _title(rows: Sequence[Row], columns: set[str], layout: str) -> str:
    row = rows[0]
    if row["printed_in"]:
        return f"{row['printed_in']}, as printed ({row['source']})"
    words = [
        f"{before}{row[name]}"
        for name, before in _NAMED.items()
        if name not in columns and row.get(name) and row[name] != _USUAL.get(name)
    ]
    if row["nodes"] and row["nodes"] > 1:
        words.append(f"{row['nodes']} nodes")
    if layout == INFERENCE:
        words.append(_PRECISIONS.get(str(row["precision"]), str(row["precision"])))
    return f"{', '.join(words)} ({row['source']})"


def _name_of(row: Row) -> str:
    """Which row a note is of."""
    if row["printed_in"]:
        return f"{row['line']}: "
    return f"{_framework(row)}, {topology(row['nodes'], row['devices_per_node'])}: "


def _framework(row: Row) -> str:
    """Of ours."""
    words = [str(row[name]) for name in _FRAMEWORK]
    compilers = (str(row.get(name) or "") for name in _COMPILERS)
    words += [f"+ {name}" for name in dict.fromkeys(compilers) if name not in ("", UNCOMPILED)]
    return " ".join(words)


def _has_figure(row: Row, headings: Sequence[Heading]) -> bool:
    names = (name for heading in headings if heading.is_figure for name in heading.columns)
    return any(row.get(name) for name in names)
