"""Tables as Markdown for reading, in the shape of the seeds' tables.

Numbers are rounded here and nowhere else: throughputs, ratios and milliseconds to two decimals.
A missing number is "-" with a footnote that says why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pandas as pd

from ..cases.conditions import CONDITIONS
from ..plan import side_by_side
from ..records import proofs
from ..statistics import intervals
from . import (
    condition_words,
    efficiency_cells,
    markdown_scaling,
    parity_table,
    scaling,
    split_table,
)
from .markdown_cells import MISSING, Cell, Footnotes, Row, escape, grid, marked, number
from .markdown_sections import interval, sections, speedup, topology

TITLES = {
    "summary": "Throughput",
    **{name: kind.title for name, kind in scaling.KINDS.items()},
    "amp_speedup": "Speed-up by mixed precision",
    "compiler_speedup": "Speed-up by the framework's compiler",
    "latency": "Inference latency",
    "efficiency": "Efficiency",
    "split": "Where the time of a training step goes",
    "parity": "Parity: do all frameworks compute the same?",
    "published": "Published figures, recomputed from their runs",
    "compare": "Comparison",
    "lint": "Figures that contradict others",
    "largest_batch": "Largest batch per device",
    "largest_batch_attempts": "Batches tried on the way to the largest",
}
EXPLANATIONS = {
    "summary": "Global samples per second: the median over repeats, its extremes, and a "
    "distribution-free 95 % interval of the median. bsz is the batch size per device; 2n8g is 2 "
    "nodes with 8 devices each.",
    "compare": "Candidate over base: the ratio, its 95 % interval, the p-value adjusted for the "
    "number of cases, and the verdict. Of pairs, runs close in time, from the signed ranks of "
    "their ratios; else the ratio of the medians and a rank sum test. No difference is shown where "
    "the interval excludes every one above the threshold. An interval is that of one case, not "
    "adjusted: it may exclude 1 where the verdict, which is, shows no difference.",
    **{name: kind.explanation for name, kind in scaling.KINDS.items()},
    "amp_speedup": "The framework's own mixed precision against fp32, at the same batch size per "
    "device. Ratios come from unrounded medians.",
    "compiler_speedup": "The framework's graph compiler against no compiler, everything else "
    "equal. Ratios come from unrounded medians.",
    "latency": "Milliseconds of one step (one batch on every device): each figure is the median "
    "over repeats of that of one repeat. Percentiles are nearest-rank and need enough steps in "
    "every repeat to exist (Samples: steps of all repeats).",
    "efficiency": efficiency_cells.EXPLANATION,
    "split": split_table.EXPLANATION,
    "parity": "Relative errors against a float64 reference from the same weights and batch: the "
    "certificate of each case is its worst quantity, with all of them in parity.csv. Outputs, loss "
    "and gradients before any step; losses over five optimizer steps. Counts must agree exactly.",
    "lint": "A figure is wrong where no number that would be printed so follows from the others.",
    "largest_batch": "In steps of multiple_of, up to at_most. Memory is the most that the fullest "
    "device, and all processes on the host together, held while this batch was tried.",
    "largest_batch_attempts": "In the order of the tries. Memory that nobody knows is missing.",
    "published": "A figure agrees if it lies within half a unit of the last printed digit of what "
    "the runs give.",
}
MARKS = {
    "few": "fewer repeats than an interval of the median needs, or fewer timed steps than it takes "
    "to see whether they are steady",
    "noisy": "the interval is wider than 5 % of the median, or the repeats have two modes; with "
    "fewer than six repeats, which have no interval, nothing is said",
    "unsteady": "the step times of a repeat changed within its timed window, or had not settled "
    "before it, or one step of it stalled",
    "disturbed": "while a repeat was timed, others used its cores, its GPU or the machine, or "
    "these were throttled",
    "shared": "there were fewer physical cores than cores were asked for: two threads of one core "
    "count as two, and slow each other down",
    "parity": "the framework computed something else than the reference (see the parity table): "
    "do not compare this figure",
    "unproved": "nothing shows that this code, in this environment and with these variables, "
    f"computed the same as the reference: {proofs.HOW}",
}
_BESIDE = condition_words.TITLES["side_by_side"]
WORDS = {**MARKS, _BESIDE: side_by_side.MEANING}


def render(name: str, table: pd.DataFrame) -> str:
    """The whole Markdown file of the table called `name`; any other frame gets its own columns."""
    rows: list[Row] = [dict(zip(table.columns, r, strict=True)) for r in table.itertuples(False)]
    words = words_of([table])
    shared = _shared(rows)
    notes = Footnotes()
    lines = [f"# {TITLES.get(name, name)}", ""]
    lines += [EXPLANATIONS[name], ""] if name in EXPLANATIONS else []
    lines += [f"All rows: {escape(', '.join(shared))}.", ""] if shared else []
    if not rows:
        none = "Nothing was found." if name == "lint" else "There is no such case among these runs."
        lines += [none, ""]
    elif name in scaling.KINDS:
        lines += markdown_scaling.render(scaling.KINDS[name], rows, notes)
    elif name == "published":
        lines += _published(rows)
    elif name == "parity":
        lines += _parity(table, notes)
    elif name == "efficiency":
        lines += sections(rows, efficiency_cells.values(notes, rows))
    elif name in _VALUES:
        lines += sections(rows, _VALUES[name](notes))
    else:
        needless = set(CONDITIONS).difference(condition_words.differing(rows))
        columns = [name for name in table.columns if name not in needless]
        cells = ([_plain(row[name]) for name in columns] for row in rows)
        lines += [*grid(columns, cells), ""]
    for note in notes.lines():
        lines += [note, ""]
    lines += [line for word, meaning in words for line in (f"*{word}*: {meaning}", "")]
    return "\n".join(lines).rstrip() + "\n"


def words_of(tables: Iterable[pd.DataFrame]) -> list[tuple[str, str]]:
    """The marks and other words in the tables that need an explanation, and it."""
    words = set()
    for table in tables:
        marks = table["marks"].unique() if "marks" in table else ()
        words |= {word for cell in marks for word in str(cell).split()}
        if "side_by_side" in table and any(table["side_by_side"]):
            words.add(_BESIDE)
    return [(word, meaning) for word, meaning in WORDS.items() if word in words]


def _shared(rows: Sequence[Row]) -> list[str]:
    """What all rows have in common (source, conditions), for a caption."""
    common = [f"{title} {value}" for title, value in condition_words.shared(rows)]
    sources = {row["source"] for row in rows if {"source", "model"} <= row.keys()}
    return [*(f"source {source}" for source in sources if len(sources) == 1), *common]


# ---- one section per model and mode -------------------------------------------------------------


def _summary_values(notes: Footnotes) -> list[tuple[str, Cell]]:
    few = (
        "a 95 % interval of the median takes at least "
        f"{intervals.repeats_for_interval()} successful repeats"
    )

    def median(row: Row) -> str:
        if row["status"] == "ok":
            noted = notes.mark(row["reason"]) + notes.mark(row["remarks"])
            return number(row["throughput_median"]) + marked(row) + noted
        return f"{MISSING} {row['status']}{notes.mark(row['reason'])}"

    def of_median(row: Row) -> str:
        if row["status"] != "ok":
            return MISSING
        if pd.isna(row["throughput_ci_low"]):
            return MISSING + notes.mark(few)
        return interval(row, "throughput")

    return [
        ("Throughput", median),
        ("Min", lambda row: number(row["throughput_min"])),
        ("Max", lambda row: number(row["throughput_max"])),
        ("95 % interval", of_median),
        ("Repeats", lambda row: str(row["repeats"])),
    ]


def _speedup_values(new: str, base: str) -> Callable[[Footnotes], list[tuple[str, Cell]]]:
    def values(notes: Footnotes) -> list[tuple[str, Cell]]:
        return [
            (f"Throughput, {new}", lambda row: number(row[f"throughput_{new}"])),
            (f"Throughput, {base}", lambda row: number(row[f"throughput_{base}"])),
            ("Speed-up", lambda row: speedup(row, notes)),
            ("95 % interval", lambda row: interval(row, "speedup")),
        ]

    return values


def _latency_values(notes: Footnotes) -> list[tuple[str, Cell]]:
    def milliseconds(column: str) -> Cell:
        def cell(row: Row) -> str:
            if pd.isna(row[column]):
                return MISSING + notes.mark(row["note"])
            return number(row[column]) + marked(row)

        return cell

    return [
        ("Avg latency (ms)", milliseconds("mean_ms")),
        ("50 %", milliseconds("p50_ms")),
        ("90 %", milliseconds("p90_ms")),
        ("95 %", milliseconds("p95_ms")),
        ("99 %", milliseconds("p99_ms")),
        ("Samples", lambda row: str(row["samples"])),
    ]


def _compare_values(notes: Footnotes) -> list[tuple[str, Cell]]:
    def ratio(row: Row) -> str:
        return number(row["ratio"], 3) + marked(row)

    def of_ratio(row: Row) -> str:
        low, high = row["ratio_ci_low"], row["ratio_ci_high"]
        return MISSING if pd.isna(low) else f"{number(low, 3)} .. {number(high, 3)}"

    return [
        ("Base", lambda row: number(row["base_median"])),
        ("Candidate", lambda row: number(row["candidate_median"])),
        ("Ratio", ratio),
        ("95 % interval", of_ratio),
        ("Pairs", lambda row: str(row["pairs"]) if row["pairs"] else MISSING),
        ("p, adjusted", lambda row: number(row["p_adjusted"], 4)),
        ("Verdict", lambda row: row["verdict"] + notes.mark(row["reason"])),
        ("Differences", lambda row: notes.mark(row["differences"]).strip() or MISSING),
    ]


_VALUES: dict[str, Callable[[Footnotes], list[tuple[str, Cell]]]] = {
    "summary": _summary_values,
    "amp_speedup": _speedup_values("amp", "fp32"),
    "compiler_speedup": _speedup_values("compiled", "none"),
    "latency": _latency_values,
    "compare": _compare_values,
    "split": split_table.values,
}


# ---- parity: a row for each certificate ---------------------------------------------------------


def _parity(table: pd.DataFrame, notes: Footnotes) -> Iterator[str]:
    frame = parity_table.overview(table)
    names = list(frame.columns)
    rows = [dict(zip(names, row, strict=True)) for row in frame.itertuples(False)]
    blank = {
        name for name in parity_table.CONDITIONS if not any(map(condition_words.text, frame[name]))
    }
    columns = [name for name in names if name not in {"reason", *blank}]
    cells = (
        [
            f"{row[name]:.1e}"
            if name in parity_table.SHOWN and not pd.isna(row[name])
            else MISSING
            if name in parity_table.SHOWN
            else escape(condition_words.text(row[name]))
            for name in columns
        ]
        for row in rows
    )
    marks = (notes.mark(row["reason"]) for row in rows)
    yield from grid(
        [name.replace("_", " ").capitalize() for name in columns],
        ([*row[:-1], row[-1] + mark] for row, mark in zip(cells, marks, strict=True)),
    )
    yield ""


# ---- published figures: those with runs one by one, the others by what is missing ---------------


def _published(rows: Sequence[Row]) -> Iterator[str]:
    checked = [row for row in rows if not pd.isna(row["agrees"])]
    others = [row for row in rows if pd.isna(row["agrees"])]
    agreeing = sum(bool(row["agrees"]) for row in checked)
    yield (
        f"{len(rows)} printed cells; {len(checked)} with runs, of which {agreeing} agree and "
        f"{len(checked) - agreeing} differ; {len(others)} without runs."
    )
    yield ""
    header = ["Table", "Place", "Column", "Devices", "Quantity", "Printed", "Recomputed", "Agrees"]
    yield from grid([*header, "Cause"], (_published_cells(row) for row in checked))
    yield ""
    counted: dict[str, int] = {}
    for row in others:
        counted[row["note"]] = counted.get(row["note"], 0) + 1
    yield from grid(
        ["Cells without runs", "Why"], ([str(n), escape(why)] for why, n in counted.items())
    )
    yield ""


def _published_cells(row: Row) -> list[str]:
    decimals = len(row["printed"].partition(".")[2]) + 1  # one more than printed: ties show
    return [
        escape(row["table"]),
        escape(row["place"]),
        escape(row["column"]),
        topology(row),
        row["quantity"],
        escape(row["printed"]),
        number(row["recomputed"], decimals),
        _plain(bool(row["agrees"])),
        escape(row["note"]),
    ]


def _plain(value: Any) -> str:
    """A cell of a table that has no form of its own."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return number(value, 4)
    return MISSING if value is None or value is pd.NA else escape(str(value))
