"""Report of a set of records as one self-contained HTML file.

The page has machines and environments, tables, plots, failures with reasons, and links from each
figure to its record. It is a pure function of the records and tables: it contains no time of its
own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd
from core import bounded, precisions
from markupsafe import Markup

from ..comparison import compare
from ..config.catalog import load_catalog
from ..machine.identities import UNKNOWN
from ..records.record_sets import RecordSet, load_record, machine_label
from ..records.run import RecordsError, Run
from ..records.sidecars.calls import CallEntry
from ..records.sidecars.interruptions import Interruption
from ..tables import answers, contests, coverage, frames, measured, origin, registry, view
from ..tables.columns import VERDICT
from ..tables.declared import efficiency
from ..tables.declared.fastest import FASTEST
from ..tables.declared.variants import VARIANTS
from ..tables.legend import explanations
from ..tables.origin import Origin
from ..tables.table import Inputs, Table
from . import colours, drawings, failures, first_screen, html_tables, page_data, panels, setups
from .html_tables import Section
from .plots import Look, Plot
from .record_links import Link, RowLinks, to_record
from .selection import axes_of, axis_of

PROJECT = Path(__file__).parents[3]
TEMPLATES = Path(__file__).parent / "templates"
REPORT_PAGE, COMPARISON_PAGE = "report.html", "compare.html"
MAX_PROBLEMS = 200
STEPS = "steps"  # key of the step-time plots, which belong to no table
#: Parts of every page's script, in order.
SCRIPTS = ("data.js", "tables.js", "charts.js", "downloads.js", "ask.js", "answers.js", "page.js")
NO_HARDWARE = "not recorded (imported without its hardware)"


def render_comparison(
    frame: pd.DataFrame, folder: Path, base: str, candidate: str, threshold: float
) -> str:
    """Return the page of a comparison (see :func:`compare.compare`).

    ``folder``: folder of the page. ``base``, ``candidate``: where the two sets of records were."""
    counted = Counter(frame["verdict"])
    look = Look(sorted({*frame["framework"]} - {""}))
    shown = html_tables.of_frame(compare.TABLE, frame)
    plots = panels.ratios(
        frame[frame["framework"] != ""], look, "Candidate over base", "ratio",
        "ratio (1 = the same)", "Right of the line the candidate is faster.",
    )  # fmt: skip
    return template("compare.html.j2").render(
        **page_parts(),
        base=base,
        candidate=candidate,
        threshold=f"{threshold:.1%}",
        verdicts=[(name, VERDICT.looks[name], counted[name]) for name in sorted(counted)],
        plots=[(plot, ()) for plot in plots],
        table=shown,
        data=page_data.page_data([shown], RowLinks.none(), (), series_of(look)),
        flags=explanations([frame]),
        notes=compare.notes(frame),
        report=_link(folder, REPORT_PAGE),
    )


def render(
    record_set: RecordSet,
    inputs: Inputs,
    tables: Mapping[Table, pd.DataFrame],
    folder: Path,
    title: str,
    further: Mapping[Table, pd.DataFrame] | None = None,
    interrupted: Sequence[Interruption] = (),
    provenance: Origin | None = None,
    calls: Sequence[CallEntry] = (),
) -> str:
    """Return the report as text.

    ``folder``: folder that links are relative to. ``inputs``, ``tables``: those made from the
    records. ``further``: tables with a section of their own. ``provenance``: overrides the origin
    derived from the runs. ``calls``: known calls that measured."""
    runs = record_set.runs
    cases = {**inputs.cases, **inputs.others}
    searched = {str(result.record["case"]["framework"]) for result in inputs.searches}
    look = Look(sorted({measured.runs_in(run.case) for run in runs} | searched))
    link = partial(to_record, record_set.root, folder)
    links = RowLinks(cases, link)
    ran, ran_left_out = setups.of_runs(runs, look, link)
    known = [setup.facts for setup in ran if setup.facts]
    machine = [fact for fact in known[0] if all(fact in facts for facts in known)] if known else []
    failed, failed_left_out = failures.by_status(inputs.runs, link)
    statuses = Counter(run.status for run in runs)
    found = answers.answers_of(tables, coverage.sentences(inputs))
    answered = [*zip(found.fastest, inputs.once(contests.find_contests), strict=True)]
    own_peak = partial(efficiency.relate_to_peak, inputs)
    shown_answers = _with_axes(found, tables)
    of_variants = [*zip(found.variants, view.rows_of(tables, VARIANTS), strict=True)]
    plots = _plots(inputs, tables, look, link)
    sections = _sections(inputs, tables, links)
    shown_further = [html_tables.of_frame(*item) for item in (further or {}).items()]
    on_page = [table for section in sections for table in section.tables]
    on_page += shown_further
    return template("report.html.j2").render(
        **page_parts(),
        title=title,
        answers=found,
        shown_answers=shown_answers,
        left_out=first_screen.left_out(answered),
        blocks=first_screen.blocks([answered[at] for _, _, at in shown_answers], own_peak),
        shown_variants=[
            (answer, axes_of(row)) for answer, row in of_variants[: first_screen.MAX_ANSWERS]
        ],
        variant_blocks=first_screen.variant_blocks(of_variants),
        variant_looks=VERDICT.looks,
        origin=provenance or origin.describe_origin(runs),
        colour=look.variable,
        comparison=_link(folder, COMPARISON_PAGE),
        runs=len(runs),
        cases=sum(result.runs[0].key == key for key, result in cases.items()),
        superseded=record_set.superseded,
        statuses=[(status, statuses[status]) for status in failures.ordered(statuses)],
        status_words=panels.STATUS_WORDS,
        precisions=precisions.known().values(),
        uncompiled=_uncompiled(runs),
        hardware=_machines(runs),
        machine=machine,
        compared_on=_compared_on(runs),
        setups=ran,
        setups_left_out=ran_left_out,
        plots=plots,
        has_charts=any(some for name, some in plots.items() if name != STEPS),
        sections=sections,
        data=page_data.page_data(
            on_page,
            links,
            calls,
            series_of(look),
            partial(first_screen.data, answered, found.everywhere, own_peak),
        ),
        flags=explanations(tables.values()),
        failures=failed,
        failures_left_out=failed_left_out,
        interrupted=[
            (interruption, Path(record_set.root, f"{interruption.run}.json").is_file())
            for interruption in interrupted[-MAX_PROBLEMS:]
        ],
        interrupted_left_out=max(0, len(interrupted) - MAX_PROBLEMS),
        problems=record_set.problems[:MAX_PROBLEMS],
        problems_left_out=max(0, len(record_set.problems) - MAX_PROBLEMS),
        further=shown_further,
    )


def _link(folder: Path, page: str) -> str:
    """Return a relative link to another page in ``folder``; "" if it does not exist."""
    return page if (folder / page).is_file() else ""


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


def page_parts() -> dict[str, Markup]:
    """Return the style and script of every page."""
    script = "\n".join(bounded.read_text(TEMPLATES / "script" / name) for name in SCRIPTS)
    return {
        "style": Markup(bounded.read_text(TEMPLATES / "report.css")),
        "script": Markup('"use strict";\n(() => {\n' + script + "})();"),
    }


def series_of(look: Look) -> dict[str, int]:
    """Return the colour number of each framework, for charts drawn in the browser."""
    return {name: colours.number(name) for name in look.frameworks}


def _with_axes(
    found: answers.Answers, tables: Mapping[Table, pd.DataFrame]
) -> list[tuple[answers.Answer, dict[str, str], int]]:
    """Return the first screen's answers, each with its axes and its row number in the table."""
    rows = view.records(tables[FASTEST])
    of_answer = {
        id(answer): ({axis: str(axis_of(row, axis)) for axis in FASTEST.axes}, at)
        for at, (answer, row) in enumerate(zip(found.fastest, rows, strict=True))
    }
    return [
        (answer, *of_answer[id(answer)]) for answer in found.most_compared(first_screen.MAX_ANSWERS)
    ]


def _sections(
    inputs: Inputs, tables: Mapping[Table, pd.DataFrame], links: RowLinks
) -> list[Section]:
    """Return the page's sections.

    If steps were timed, tables without rows that explain their absence are included."""
    known = {
        table: tables[table] if table in tables else frames.frame(table, ())
        for table in registry.known().values()
        if table in tables or (table.absent and inputs.cases)
    }
    every = known | {**tables}
    return html_tables.sections(
        [html_tables.of_frame(table, frame, links) for table, frame in every.items()]
    )


def _plots(
    inputs: Inputs,
    tables: Mapping[Table, pd.DataFrame],
    look: Look,
    link: Callable[[Run, str], Link],
) -> dict[str, Sequence[tuple[Plot, Sequence[Link]]]]:
    """Return plots with links, by the table that they precede; step times are under STEPS."""

    def load(run: Run) -> dict[str, Any]:
        if run.record is None:
            raise RecordsError(f"{run.origin} has no record")
        return load_record(run.record)

    def alone(plots: Sequence[Plot]) -> list[tuple[Plot, Sequence[Link]]]:
        return [(plot, ()) for plot in plots]

    return {
        **{
            table.name: alone(drawings.of_table(table, frame, inputs, look))
            for table, frame in tables.items()
        },
        STEPS: [
            (plot, [link(run, f"record of repeat {run.repeat}")])
            for plot, run in panels.step_times(inputs.cases, look, load)
        ],
    }


def _uncompiled(runs: Sequence[Run]) -> list[str]:
    """Return how each measured framework runs without a compiler."""
    declared = load_catalog(PROJECT).frameworks
    measured = sorted({run.case.framework for run in runs} & set(declared))
    return [f"{declared[name]['title']}: {declared[name]['none_means']}" for name in measured]


def _compared_on(runs: Sequence[Run]) -> list[str]:
    """Return the machines of the runs; [] if fewer than two frameworks were measured."""
    if len({run.case.framework for run in runs if run.case.framework}) < 2:
        return []
    machines = {run.machine if run.hardware else UNKNOWN for run in runs}
    return sorted({str(machine) or NO_HARDWARE for machine in machines})


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
