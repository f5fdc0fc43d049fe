"""LaTeX table of the cases, by pandas."""

from __future__ import annotations

import pandas as pd

from ....cases.names import topology_of
from ....tables.results import CaseResult
from ..case_notes import flags
from ..format import ExportedFile, Format, Results


def write(results: Results) -> ExportedFile:
    frame = pd.DataFrame(_row(results.name(case), case) for case in results.cases)
    # Text of its own, because Styler does not escape backslashes before braces.
    table = (
        frame.style.hide(axis="index").format(escape="latex").format_index(escape="latex", axis=1)
    )
    text = table.to_latex(environment="longtable", hrules=True)
    return ExportedFile(f"% needs \\usepackage{{booktabs,longtable}}\n{text}")


def _row(name: str, case: CaseResult) -> dict[str, str]:
    low, high = (f"{value:.4g}" for value in case.interval) if case.interval else ("", "")
    is_known = case.throughput is not None
    return {
        "case": name,
        "devices": topology_of(case.case),
        "metric": case.key.metric,
        "median": f"{case.throughput:.4g}" if is_known else case.status,
        "95 % interval": f"{low} to {high}" if low else "none" if is_known else "",
        "unit": case.unit if is_known else "",
        "repeats": str(len(case.values) if is_known else len(case.runs)),
        "flags": flags(case) if is_known else "",
    }


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
