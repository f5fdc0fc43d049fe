"""SVG drawing of the figures, with one panel per model, mode, metric and unit."""

from __future__ import annotations

import re
from collections import defaultdict

from markupsafe import escape

from ....cases.names import topology_of
from ....tables.results import CaseResult
from ..case_notes import flags
from ..format import ExportedFile, Format, Results

#: The report page's colours, which a stand-alone file must include.
_STYLE = (
    "svg{--ink:#1d2329;--muted:#5c6670;--line:#dfe3e6;--accent:#1d5fb8;--alarm:#c2321f;"
    "--series-1:#0072b2;--series-2:#d55e00;--series-3:#00856a;--series-4:#b5478a;"
    "--series-5:#957000;--series-6:#3a93c6;--series-7:#5f6368;--series-8:#6a3fa0;"
    "--series-9:#4d7c0f}"
    "text{font-family:sans-serif}"
)
#: Height of a panel's title in drawing units.
TITLE = 34
#: Width of a character and of the row labels, in drawing units.
CHARACTER, LABELS = 8, 290


def write(results: Results) -> ExportedFile:
    from ....report import plots  # slow to import, and other formats do not need it

    panels: dict[tuple[str, ...], list[CaseResult]] = defaultdict(list)
    for case in results.cases:
        panels[case.case.model, case.case.mode, case.key.metric, case.unit].append(case)
    frameworks = sorted({case.case.framework or "none" for case in results.cases})
    look = plots.Look(frameworks)
    parts: list[str] = []
    drawings: list[tuple[float, str]] = []
    height, beyond = 0.0, 0
    for (model, mode, metric, unit), cases in panels.items():
        rows = [
            plots.PlotRow(
                label=_label(results, case),
                framework=case.case.framework or "none",
                values=case.values,
                note="" if case.values else case.status,
                interval=case.interval,
            )
            for case in cases
        ]
        longest = max(len(row.label) for row in rows)
        drawing = str(plots.strips(rows, look, f"{metric}, {unit}" if unit else metric))
        title = ", ".join(filter(None, (model, mode, metric)))
        parts.append(
            f'<text x="8" y="{height + 22:g}" font-size="15" font-weight="bold" '
            f'fill="var(--ink)">{escape(title)}</text>'
        )
        beyond = max(beyond, CHARACTER * longest - LABELS)
        drawings.append((height, drawing))
        match = re.search(r'height="([0-9.]+)"', drawing)
        assert match, "every drawing has one"
        height += TITLE + float(match[1])
    for top, drawing in drawings:
        opening = f'<svg x="{beyond}" y="{top + TITLE:g}" overflow="visible" '
        parts.append(drawing.replace("<svg ", opening, 1))
    width = plots.WIDTH + beyond
    whole = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height:g}" '
        f'width="{width}" height="{height:g}" role="img"><style>{_STYLE}</style>'
        f'<rect width="100%" height="100%" fill="#ffffff"/>{"".join(parts)}</svg>\n'
    )
    return ExportedFile(whole)


def _label(results: Results, case: CaseResult) -> str:
    """Return the part of the case's name that is not in the title, with its flags."""
    own = {case.case.model, case.case.mode}
    devices = topology_of(case.case)
    parts = [word for word in results.name(case).split("/") if word not in own | {devices}]
    text = " ".join(filter(None, [*parts, devices]))
    return f"{text} [{flags(case)}]" if case.flags else text


FORMATS = [
    Format(
        "svg",
        ".svg",
        "SVG drawing",
        write=write,
        holds="each repeat and the interval of each figure, with its unit",
        flags="in brackets after the name",
        lost="reasons of cases without a figure (only their status)",
    )
]
