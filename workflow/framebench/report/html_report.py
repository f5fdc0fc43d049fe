"""Report of a set of records as one self-contained HTML file.

The first screen answers; folded parts have tables, plots, failures with reasons, and links from
each figure to its record. The page is a pure function of the records and tables: it contains no
time of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import jinja2
import pandas as pd
from core import bounded
from markupsafe import Markup

from ..machine.identities import UNKNOWN
from ..records.record_sets import RecordSet, machine_label
from ..records.run import Run
from ..records.sidecars import Interruption
from ..tables import first_screen, measured, origin
from ..tables.declared.summary import SUMMARY
from ..tables.legend import explanations
from ..tables.origin import Origin
from ..tables.setting_answers import FirstScreen
from ..tables.table import Inputs, Table
from . import bars, colours, drawings, page_data, page_tables
from .plots import Look, Plot
from .record_links import RowLinks, to_record

TEMPLATES = Path(__file__).parent / "templates"
MAX_PROBLEMS = 200
#: Parts of every page's script, in order.
SCRIPTS = ("data.js", "tables.js", "page.js")
NO_HARDWARE = "not recorded (imported without its hardware)"


def render(
    record_set: RecordSet,
    inputs: Inputs,
    tables: Mapping[Table, pd.DataFrame],
    folder: Path,
    title: str,
    further: Mapping[Table, pd.DataFrame] | None = None,
    interrupted: Sequence[Interruption] = (),
    provenance: Origin | None = None,
    answered: FirstScreen | None = None,
) -> str:
    """Return the report as text.

    ``folder``: folder that links are relative to. ``inputs``, ``tables``: those made from the
    records. ``further``: tables with a part of their own. ``provenance``: overrides the origin
    derived from the runs. ``answered``: content of the first screen, where it is known."""
    runs = record_set.runs
    searched = {str(result.record["case"]["framework"]) for result in inputs.searches}
    look = Look(sorted({measured.runs_in(run.case) for run in runs} | searched))
    links = RowLinks({**inputs.cases, **inputs.others}, partial(to_record, record_set.root, folder))
    provenance = provenance or origin.describe_origin(runs)
    screen = answered or first_screen.first_screen(inputs, tables, runs, provenance)
    shown, folded = bars.settings_with_bars(screen)
    on_page = [
        page_tables.page_table(table, frame)
        for table, frame in {**tables, **(further or {})}.items()
        if not table.needs or len(frame.query(table.needs))
    ]
    return template("report.html.j2").render(
        **page_files(),
        title=title,
        screen=screen,
        shown=shown,
        folded=folded,
        has_several=len({bar.axes["framework"] for one in shown for bar in one.bars}) > 1,
        has_summary=SUMMARY in tables,
        parts=page_tables.parts_of(on_page, _plots(inputs, tables, look)),
        data=page_data.page_data(on_page, links),
        flags=explanations(tables.values()),
        interrupted=[
            (interruption, Path(record_set.root, f"{interruption.run}.json").is_file())
            for interruption in interrupted
        ],
        problems=record_set.problems[:MAX_PROBLEMS],
        problems_name=f"Ignored files: {len(record_set.problems)}",
        problems_left_out=max(0, len(record_set.problems) - MAX_PROBLEMS),
        hardware=_machines(runs),
    )


def template(name: str) -> jinja2.Template:
    """Return the page template in the file ``name``."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, trim_blocks=True,
        lstrip_blocks=True, undefined=jinja2.StrictUndefined,
    )  # fmt: skip
    environment.filters["with_code"] = _with_code
    return environment.get_template(name)


def _with_code(text: str) -> Markup:
    """Return text as markup, with parts between backticks as code."""
    parts = text.split("`")
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if at % 2 else part for at, part in enumerate(parts)
    )


def page_files() -> dict[str, Markup]:
    """Return the style and script of every page."""
    script = "\n".join(bounded.read_text(TEMPLATES / "script" / name) for name in SCRIPTS)
    style = bounded.read_text(TEMPLATES / "report.css")
    for theme, series in (("light", colours.LIGHT), ("dark", colours.DARK)):
        style = style.replace(f"/* {theme} series */", colours.declarations(series))
    return {
        "style": Markup(style),
        "script": Markup('"use strict";\n(() => {\n' + script + "})();"),
    }


def _plots(
    inputs: Inputs, tables: Mapping[Table, pd.DataFrame], look: Look
) -> dict[str, list[Plot]]:
    """Return plots by the name of the table that they precede."""
    return {
        table.name: drawings.draw_table(table, frame, inputs, look)
        for table, frame in tables.items()
    }


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
