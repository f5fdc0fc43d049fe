"""Tables in NVIDIA's layout: printed and our rows under the headings and order of the source.

MXNet's page has mixed precision first, ELECTRA's full precision."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from ...cases.names import topology
from ...tables.columns import CONTRADICTED, LINT, Row
from ...tables.formatting import DASH, Cell
from ...tables.results import UNCOMPILED, flags_of_all, other_flags
from ...tables.table import PublishedLayout
from .printed_rows import ACCURACY, AMP, EACH, INFERENCE, SEEDS, TRAINING, Values, headings_of

#: NVIDIA's names of precisions.
_PRECISIONS = {"tf32": "TF32", "fp32": "FP32", AMP: "mixed precision"}
#: Heading of an unknown score.
_SOME_SCORE = "Score"
_SCORES = {
    "top1": "Accuracy",
    "accuracy": "Accuracy",
    "exact_match / f1": "Accuracy / F1",
    "exact_match": "Exact Match %",
    "f1": "f1 %",
    "loss": "Final Loss",
}
#: Columns with one value per table of ours, unless they are columns of the layout.
_APART = ("source", "model", "details", "nodes", "batch_amp", "batch", "accumulation_amp",
          "recipe_epochs", "score", "time_unit")  # fmt: skip
#: Columns of :data:`_APART` in a title, with the words before each.
_NAMED = {
    "model": "", "details": "", "batch_amp": "batch ", "batch": "batch ",
    "accumulation_amp": "accumulation ", "recipe_epochs": "epochs ",
}  # fmt: skip
#: Columns of mixed precision in a title -> those of full precision.
_OF_FULL = {"batch_amp": "batch_full", "accumulation_amp": "accumulation_full"}
#: Defaults that titles omit.
_USUAL = {"accumulation_amp": "1"}
_MIXED = "mixed precision"
_PHASES = "Phase 1 and Phase 2"
#: Columns that name our rows, and columns of their compiler.
_FRAMEWORK = ("framework", "framework_version")
_COMPILERS = ("compiler_amp", "compiler")


@dataclass(frozen=True)
class Heading:
    """A column of a layout.

    ``title``: format string with {full}, {sides}, {score}, {metric} and {unit}; printed tables have
    their own titles for figures. ``columns``: columns of the row that share a cell, once if equal.
    ``is_figure``: cells carry flags. ``differing``: shown only if its cells differ."""

    title: str
    columns: tuple[str, ...]
    is_figure: bool = False
    differing: bool = False


@dataclass(frozen=True)
class LayoutRow:
    """A row of a layout.

    ``row``: row of the table, the first if several are merged. ``values``, ``flags`` and, for
    printed rows, ``headings``: by column."""

    row: Row
    values: Values
    flags: Mapping[str, str]
    headings: Mapping[str, str]


def _key(title: str, *columns: str, differing: bool = False) -> Heading:
    return Heading(title, columns, differing=differing)


def _figure(title: str, column: str) -> Heading:
    return Heading(title, (column,), is_figure=True)


_LATENCIES = {"mean": "Avg", "p50": "50%", "p90": "90%", "p95": "95%", "p99": "99%"}
_BATCHES = ("batch_full", "batch_amp")
_ACCUMULATION = ("accumulation_full", "accumulation_amp")
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
        _key("Batch size / GPU ({sides})", *_BATCHES),
        _key("Accumulation steps ({sides})", *_ACCUMULATION),
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
        _key("Batch size / GPU ({sides})", *_BATCHES),
        _key("Accumulation steps ({sides})", *_ACCUMULATION),
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


def published_layouts(layout: str) -> Callable[[Sequence[Row]], list[PublishedLayout]]:
    """Return a function that lays out rows; our rows come first, as in the table."""

    def layouts(rows: Sequence[Row]) -> list[PublishedLayout]:
        parts: dict[tuple[str, ...], list[Row]] = defaultdict(list)
        for row in rows:
            parts[_table_of(row, layout)].append(row)
        made = (_layout(some, layout) for some in parts.values())
        return [layout for layout in made if layout.rows]

    return layouts


def _headings(row: Row, layout: str) -> tuple[Heading, ...]:
    """Return the layout of the page on which NVIDIA printed the model, by default MXNet's."""
    return (_ELECTRA if _is_electra(row) else _MXNET)[layout]


def _is_electra(row: Row) -> bool:
    return str(row["model"]).startswith("electra")


def _table_of(row: Row, layout: str) -> tuple[str, ...]:
    if row["printed_in"]:
        return row["source"], row["printed_in"]
    columns = {name for heading in _headings(row, layout) for name in heading.columns}
    columns |= {"batch"} if _joins_precisions(row, layout) else set()  # batches differ by precision
    precision = row["precision"] if _is_of_one_precision(row, layout) else ""
    apart = [_value_text(row, name) for name in _APART if name not in columns]
    return precision, *apart


def _joins_precisions(row: Row, layout: str) -> bool:
    """Return whether both precisions share a row of the layout."""
    return layout == SEEDS and not _is_electra(row)


def _is_of_one_precision(row: Row, layout: str) -> bool:
    """Return whether a layout has one precision, which its title names."""
    return layout == INFERENCE or (layout == SEEDS and _is_electra(row))


def _value_text(row: Row, name: str) -> str:
    """Return a value of a row, with that of full precision if it differs."""
    value = str(row.get(name) or "")
    full = str(row.get(_OF_FULL.get(name, "")) or value)
    if full == value:
        return value
    precision = str(row.get("full_precision") or "full precision")
    return f"{value} ({_PRECISIONS.get(precision, precision)}: {full})"


def _layout(rows: Sequence[Row], layout: str) -> PublishedLayout:
    first = rows[0]
    headings = _headings(first, layout)
    everywhere = flags_of_all(row["flags"] for row in rows if _has_figure(row, headings))
    lines = _lines(rows, layout)
    words = _title_texts(rows, lines, layout)
    shown: dict[str, Callable[[LayoutRow], Cell]] = {}
    if not first["printed_in"]:
        shown["Framework"] = lambda line: Cell(_framework(line.row), "case")
    for heading in headings:
        for title, cell_of in _columns(heading, lines, words, everywhere):
            if title in shown:
                raise ValueError(f"{layout}: two columns are headed {title!r}")
            shown[title] = cell_of
    notes = [f"{_name_of(row)}{row['reason']}" for row in rows if row["reason"]]
    if everywhere:
        notes.insert(0, f"Every figure has the flag {' '.join(everywhere)}.")
    return PublishedLayout(
        _title(rows, {name for heading in headings for name in heading.columns}, layout),
        list(shown),
        [(line.row, {title: cell_of(line) for title, cell_of in shown.items()}) for line in lines],
        list(dict.fromkeys(notes)),
    )


def _lines(rows: Sequence[Row], layout: str) -> list[LayoutRow]:
    """Return the rows of a layout.

    MXNet's seeds merge both precisions; its inference has rows of mixed precision only."""
    if _joins_precisions(rows[0], layout):
        pairs: dict[str, dict[str, Row]] = defaultdict(dict)
        for row in rows:
            side = AMP if row["precision"] == AMP else "full"
            if side in pairs[row["line"]]:
                raise ValueError(f"{layout}: {row['line']} has two rows in {row['precision']}")
            pairs[row["line"]][side] = row
        return [_merged(sides) for sides in pairs.values()]
    if layout == INFERENCE and not _is_electra(rows[0]):
        rows = [row for row in rows if row["precision"] == AMP]
    return [_line(row) for row in rows]


def _line(row: Row) -> LayoutRow:
    faulty = row[CONTRADICTED].split()
    return LayoutRow(
        row,
        {name: "" if value is None else str(value) for name, value in row.items()},
        {name: f"{row['flags']}{f' {LINT}' * (name in faulty)}" for name in row},
        headings_of(row),
    )


def _merged(sides: Mapping[str, Row]) -> LayoutRow:
    """Return both precisions as one row, with the precision appended to column names."""
    lines = {side: _line(row) for side, row in sides.items()}
    first = next(iter(lines.values()))

    def by_side(part: Callable[[LayoutRow], Mapping[str, str]]) -> dict[str, str]:
        return {
            f"{name}_{side}": text
            for side, line in lines.items()
            for name, text in part(line).items()
        }

    return LayoutRow(
        first.row,
        {**first.values, **by_side(lambda line: line.values)},
        by_side(lambda line: line.flags),
        by_side(lambda line: line.headings),
    )


def _title_texts(rows: Sequence[Row], lines: Sequence[LayoutRow], layout: str) -> dict[str, str]:
    """Return the words that complete the titles of a table."""
    full = [name for row in rows for name in str(row.get("full_precision") or "").split("/")]
    full += [row["precision"] for row in rows if row.get("precision") not in (None, AMP)]
    units = dict.fromkeys(row.get("time_unit", "") for row in rows)
    scores = dict.fromkeys(filter(None, (row.get("score", "") for row in rows)))
    named = dict.fromkeys(_PRECISIONS.get(name, name) for name in full if name)
    text = "/".join(named) or "full precision"
    return {
        "full": text,
        "sides": _sides(text, lines, layout),
        "score": " / ".join(map(_score, scores)) or _SOME_SCORE,
        "metric": " / ".join(scores) or _SOME_SCORE.lower(),
        "unit": "".join(f" ({unit})" for unit in filter(None, units)),
    }


def _score(name: str) -> str:
    return _SCORES.get(name, name)


def _sides(full: str, lines: Sequence[LayoutRow], layout: str) -> str:
    """Return the order of the values in a cell, for the brackets of a heading.

    Printed tables use the heading of their accumulation steps."""
    headings = [
        heading for line in lines for name in _ACCUMULATION if (heading := line.headings.get(name))
    ]
    if headings:
        return headings[0].partition("(")[2].rpartition(")")[0]
    of_both = layout == TRAINING and any(line.values.get("accumulation_amp") for line in lines)
    sides = f"{full}{' and ' if of_both else ' : '}{_MIXED}"
    in_phases = layout == ACCURACY and any(" and " in line.values["batch_amp"] for line in lines)
    return f"each {_PHASES}; {sides}" if in_phases else sides


def _columns(
    heading: Heading, lines: Sequence[LayoutRow], words: dict[str, str], everywhere: Sequence[str]
) -> Iterator[tuple[str, Callable[[LayoutRow], Cell]]]:
    """Yield title and cell function of each column of a heading.

    Seeds give a column each; empty columns are left out."""
    title = _title_of(heading, lines, words)
    if heading.columns == (EACH,):
        count = max(len(_seeds(line)) for line in lines)
        for seed in range(1, count + 1):
            if any(_seeds(line).get(seed) for line in lines):
                yield f"{title} {seed}", partial(_cell_of_seed, seed)
        return
    columns = heading.columns
    if len(columns) > 1 and words["sides"] == _PHASES:  # full precision is not printed
        columns = columns[1:]
    between = " : " if " : " in words["sides"] else " and "

    def text(line: LayoutRow) -> str:
        texts = filter(None, (line.values.get(name) for name in columns))
        found = between.join(dict.fromkeys(texts))
        return _score(found) if columns == ("score",) else found

    def cell(line: LayoutRow) -> Cell:
        flags = line.flags.get(columns[0], "") if heading.is_figure else ""
        shown = " ".join(other_flags(flags, everywhere).split())
        return _cell(text(line), columns != ("system",), shown)

    texts = [text(line) for line in lines]
    if not any(texts) or (heading.differing and len(set(texts)) == 1):
        return
    if len(columns) > 1 and not any(between in text for text in texts):
        title = title.partition(" (")[0]
    yield title, cell


def _title_of(heading: Heading, lines: Sequence[LayoutRow], words: dict[str, str]) -> str:
    """Return the title of a heading as printed, or as it would be for our rows."""
    printed = [
        line.headings[name] for line in lines for name in heading.columns if name in line.headings
    ]
    return printed[0] if printed else heading.title.format(**words)


def _seeds(line: LayoutRow) -> dict[int, str]:
    """Return the scores of a line by number of the seed."""
    return dict(enumerate(line.values[EACH].split(", "), 1))


def _cell_of_seed(seed: int, line: LayoutRow) -> Cell:
    return _cell(_seeds(line).get(seed, ""), True)


def _cell(text: str, is_number: bool, flags: str = "") -> Cell:
    if not text:
        return Cell(DASH, "number missing")
    return Cell(text, "number" if is_number else "case", flags=flags)


def _title(rows: Sequence[Row], columns: set[str], layout: str) -> str:
    row = rows[0]
    if row["printed_in"]:
        return f"{row['printed_in']}, as printed ({row['source']})"
    parts = [
        f"{before}{said}"
        for name, before in _NAMED.items()
        if name not in columns and (said := _value_text(row, name)) not in ("", _USUAL.get(name))
    ]
    if row["nodes"] and row["nodes"] > 1:
        parts.append(f"{row['nodes']} nodes")
    if _is_of_one_precision(row, layout):
        parts.append(_PRECISIONS.get(str(row["precision"]), str(row["precision"])))
    return f"{', '.join(parts)} ({row['source']})"


def _name_of(row: Row) -> str:
    """Return the prefix of a note that identifies its row."""
    if row["printed_in"]:
        return f"{row['line']}: "
    return f"{_framework(row)}, {topology(row['nodes'], row['devices_per_node'])}: "


def _framework(row: Row) -> str:
    """Return framework, version and compilers of one of our rows."""
    parts = [str(row[name]) for name in _FRAMEWORK]
    compilers = (str(row.get(name) or "") for name in _COMPILERS)
    parts += [f"+ {name}" for name in dict.fromkeys(compilers) if name not in ("", UNCOMPILED)]
    return " ".join(parts)


def _has_figure(row: Row, headings: Sequence[Heading]) -> bool:
    names = (name for heading in headings if heading.is_figure for name in heading.columns)
    return any(row.get(name) for name in names)
