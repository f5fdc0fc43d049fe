"""Report of a set of records as one self-contained HTML file.

The first screen answers; folded parts have tables, plots, failures with reasons, and links from
each figure to its record. The page is a pure function of the records and tables: it contains no
time of its own."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd
from core import bounded
from markupsafe import Markup

from ..machine.identities import UNKNOWN
from ..records.record_sets import RecordSet, machine_label
from ..records.run import Run
from ..records.sidecars import Interruption
from ..tables import first_screen, measured
from ..tables.frames import explanations
from ..tables.results import fraction_of_best
from ..tables.setting_answers import (
    MOST_SETTINGS,
    Entrant,
    FirstScreen,
    SettingAnswer,
    describe_origin,
)
from ..tables.table import Inputs, Table
from . import line_panels, measured_panels, page_data, page_tables, panels
from .page_data import RowLinks
from .plots import Look, Plot
from .selection import axes_of
from .svg import DARK, LIGHT, colour_number

TEMPLATES = Path(__file__).parent / "templates"
MAX_PROBLEMS = 200
#: Parts of every page's script, in order.
SCRIPTS = ("data.js", "tables.js", "page.js")
#: Dots of each state.
DOTS = {"sure": "●●●", "order sure": "●●○", "open": "●○○", "": ""}
#: Functions that draw a table from its rows and inputs, by name of the drawing. Their last argument
#: is the drawing's subject.
DRAWERS: Mapping[str, Callable[[Table, pd.DataFrame, Inputs, Look, str], Sequence[Plot]]] = {
    "throughput": lambda _, __, inputs, look, ___: panels.throughput(inputs.cases, look),
    "metrics": lambda _, __, inputs, look, kind: measured_panels.panels(inputs.others, look, kind),
    "ratios": lambda _, frame, __, look, title: panels.ratios(frame, look, title),
    "scaling": lambda table, frame, _, look, __: line_panels.scaling(frame, look, table.title),
    "roofline": lambda _, frame, __, look, ___: panels.rooflines(frame, look),
    "learning": lambda _, __, inputs, look, ___: line_panels.learning(inputs, look),
}
NO_HARDWARE = "not recorded (imported without its hardware)"


def render(
    record_set: RecordSet,
    inputs: Inputs,
    tables: Mapping[Table, pd.DataFrame],
    folder: Path,
    title: str,
    further: Mapping[Table, pd.DataFrame] | None = None,
    interrupted: Sequence[Interruption] = (),
    answered: FirstScreen | None = None,
) -> str:
    """Return the report as text.

    ``folder``: folder that links are relative to. ``inputs``, ``tables``: made from the records.
    ``further``: additional tables. ``answered``: content of the first screen, if already known."""
    runs = record_set.runs
    searched = {str(result.record["case"]["framework"]) for result in inputs.searches}
    look = Look(sorted({measured.runs_in(run.case) for run in runs} | searched))
    links = RowLinks({**inputs.cases, **inputs.others}, record_set.root, folder)
    screen = answered or first_screen.first_screen(inputs, tables, runs, describe_origin(runs))
    settings = [_with_bars(setting) for setting in screen.settings]
    shown, rest = settings[:MOST_SETTINGS], settings[MOST_SETTINGS:]
    folded: dict[str, list[SettingBars]] = defaultdict(list)
    for one in sorted(rest, key=lambda one: one.setting.title):
        folded[one.setting.title].append(one)
    plots = {table.name: draw_table(table, frame, inputs, look) for table, frame in tables.items()}
    on_page = [
        page_tables.page_table(table, frame)
        for table, frame in {**tables, **(further or {})}.items()
        if not table.needs or len(frame.query(table.needs))
    ]
    return render_page(
        "report.html.j2",
        title=title,
        screen=screen,
        shown=shown,
        folded=folded,
        has_several=len({bar[0].axes["framework"] for one in shown for bar in one.bars}) > 1,
        parts=page_tables.parts_of(on_page, plots),
        data=page_data.page_data(on_page, links),
        flags=explanations(tables.values()),
        interrupted=[
            (interruption, Path(record_set.root, f"{interruption.run}.json").is_file())
            for interruption in interrupted
        ],
        problems=record_set.problems[:MAX_PROBLEMS],
        problems_left_out=max(0, len(record_set.problems) - MAX_PROBLEMS),
        hardware=_machines(runs),
    )


def render_page(name: str, **content: Any) -> str:
    """Render the template file ``name`` with the style and script that all pages share."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, trim_blocks=True,
        lstrip_blocks=True, undefined=jinja2.StrictUndefined,
    )  # fmt: skip
    environment.filters["with_code"] = _with_code
    script = "\n".join(bounded.read_text(TEMPLATES / "script" / part) for part in SCRIPTS)
    style = bounded.read_text(TEMPLATES / "report.css")
    for theme, series in (("light", LIGHT), ("dark", DARK)):
        declared = (f"--series-{at}: {colour};" for at, colour in enumerate(series, 1))
        style = style.replace(f"/* {theme} series */", " ".join(declared))
    return environment.get_template(name).render(
        style=Markup(style),
        script=Markup('"use strict";\n(() => {\n' + script + "})();"),
        **content,
    )


def _with_code(text: str) -> Markup:
    """Return text as markup, with parts between backticks as code."""
    parts = text.split("`")
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if at % 2 else part for at, part in enumerate(parts)
    )


def without_links(html: str) -> str:
    """Return a page with file names in place of links to other files, for use without them."""
    link = r'<a href="(?!#|https?:)([^"]*)"([^>]*)>(.*?)</a>'
    return re.sub(link, r'<span title="\1"\2>\3</span>', html, flags=re.DOTALL)


def draw_table(table: Table, frame: pd.DataFrame, inputs: Inputs, look: Look) -> Sequence[Plot]:
    """Return the plots of a table, as its declaration names them."""
    if not table.drawing:
        return ()
    return DRAWERS[table.drawing](table, frame, inputs, look, table.drawing_of)


def _machines(runs: Sequence[Run]) -> list[tuple[str, str, int]]:
    """Return label, description and number of runs of each machine.

    The label is "" if there is one machine only."""
    counted = Counter(run.machine if run.hardware else UNKNOWN for run in runs)
    several = len(counted) > 1
    return sorted(
        (
            machine_label(machine) if several and machine.hardware else "",
            (machine.in_full if several else str(machine)) or NO_HARDWARE,
            count,
        )
        for machine, count in counted.items()
    )


# ---- bars of the first screen, as fractions of their track's width -------------------------------


@dataclass(frozen=True)
class SettingBars:
    """A setting of the first screen. ``axes``: values for the page's filter.

    ``bars``: entrant, colour, width in percent of the track, and left and width of the 95 %
    interval, None with too few repeats."""

    setting: SettingAnswer
    bars: Sequence[tuple[Entrant, str, float, tuple[float, float] | None]]
    axes: Mapping[str, str]
    dots: str


def _with_bars(setting: SettingAnswer) -> SettingBars:
    best = setting.entrants[0].value if setting.entrants else 1.0

    def share(value: float) -> float:
        return fraction_of_best(value, best or 1.0, setting.better)

    ends = [sorted(map(share, entrant.interval or ())) for entrant in setting.entrants]
    widest = max([1.0, *(high for _, high in filter(None, ends))])

    def percent(part: float) -> float:
        return round(100 * part / widest, 1)

    bars = [
        (
            entrant,
            f"var(--series-{colour_number(entrant.axes['framework']) + 1})",
            percent(share(entrant.value)),
            (percent(some[0]), percent(some[1] - some[0])) if some else None,
        )
        for entrant, some in zip(setting.entrants, ends, strict=True)
    ]
    own = tuple(setting.entrants[0].axes) if setting.entrants else ()
    return SettingBars(setting, bars, axes_of(setting.row, own), DOTS[setting.state])
