"""LaTeX table of the cases, with booktabs rules."""

from __future__ import annotations

from ....cases.names import topology_of
from ....tables import latex
from ....tables.results import CaseResult
from ..case_notes import flags
from ..format import ExportedFile, Format, Results

HEADER = ("case", "devices", "metric", "median", "95 % interval", "unit", "repeats", "flags")


def write(results: Results) -> ExportedFile:
    body = [_row(results.name(case), case) for case in results.cases]
    table = latex.grid("longtable", "lllrrlrl", HEADER, body)
    return ExportedFile("\n".join([r"% needs \usepackage{booktabs,longtable}", *table, ""]))


def _row(name: str, case: CaseResult) -> tuple[str, ...]:
    devices = topology_of(case.case)
    if case.throughput is None:
        return (name, devices, case.key.metric, case.status, "", "", str(len(case.runs)), "")
    low, high = (f"{value:.4g}" for value in case.interval) if case.interval else ("", "")
    text = f"{low} to {high}" if low else "none"
    figure = f"{case.throughput:.4g}"
    return (
        name, devices, case.key.metric, figure, text, case.unit, str(len(case.values)), flags(case),
    )  # fmt: skip


FORMATS = [
    Format(
        "latex",
        ".tex",
        "LaTeX table (booktabs, longtable)",
        write=write,
        holds="one row per figure: median, interval, unit, repeats",
        flags="column `flags`",
        lost="single repeats; digits after the fourth; reasons of cases without a figure (only "
        "their status)",
    )
]
