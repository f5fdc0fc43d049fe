"""One self-contained HTML file from a set of records: what was measured on what, tables, plots,
failures with their reasons, and the way from every figure to its record.

The file is a pure function of the records and the tables: it holds no time of its own.
"""

from __future__ import annotations

import os
import shlex
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jinja2
import pandas as pd
from markupsafe import Markup

from . import html_tables, memory_curves, panels, parity, searches
from .efficiency import OPTIONAL
from .files import write_whole
from .html_tables import Link, Table
from .markdown import MARKS
from .panels import Cases
from .plots import Look, Plot
from .records import RecordSet, load_record
from .run import RecordsError, Run

TEMPLATES = Path(__file__).parent / "templates"
REPORT_PAGE, COMPARISON_PAGE = "report.html", "compare.html"
MAX_SETUPS = 12
MAX_FAILURES = 300
MAX_TRACEBACKS = 10
MAX_PROBLEMS = 200

#: What names a published cell and what became of it; tables/published.csv has its other keys.
PUBLISHED_COLUMNS = ("place", "column", "framework", "nodes", "devices_per_node", "quantity",
                     "printed", "recomputed", "agrees", "note")  # fmt: skip

Pairs = list[tuple[str, str]]
RecordLinks = Sequence[tuple[str, Sequence[Link]]]


@dataclass(frozen=True)
class Setup:
    """One framework as it ran on one kind of machine: facts from one of its records."""

    framework: str
    colour: str
    version: str
    source: str
    runs: int
    ok: int
    made: str
    facts: Sequence[tuple[str, str]]
    details: Sequence[tuple[str, Sequence[tuple[str, str]]]]
    record: Sequence[Link]


@dataclass(frozen=True)
class Failure:
    """The repeats of one case that ended alike."""

    case: str
    framework: str
    status: str
    reason: str
    count: int
    links: Sequence[Link]
    traceback: str


def write(
    record_set: RecordSet,
    tables: Mapping[str, pd.DataFrame],
    path: Path,
    title: str,
    published: pd.DataFrame | None = None,
) -> None:
    """Write the report to ``path``, whole or not at all. Links to records are relative to its
    folder. Raises OSError when it cannot be written."""
    write_whole(path, render(record_set, tables, path.parent, title, published))


def write_comparison(
    frame: pd.DataFrame, path: Path, base: str, candidate: str, threshold: float
) -> None:
    """The page of a comparison (see :func:`compare.compare`), whole or not at all. ``base`` and
    ``candidate`` say where the two sets were."""
    counted = Counter(frame["verdict"])
    look = Look(sorted(set(frame["framework"])))
    html = (
        _environment()
        .get_template("compare.html.j2")
        .render(
            **_page(),
            base=base,
            candidate=candidate,
            threshold=f"{threshold:.1%}",
            verdicts=[
                (name, html_tables.VERDICTS[name], counted[name]) for name in sorted(counted)
            ],
            plots=[(plot, ()) for plot in panels.comparison(frame, look)],
            table=html_tables.of_frame("compare", "Every case", frame),
            marks=_legend({"compare": frame}),
            report=_beside(path.parent, REPORT_PAGE),
        )
    )
    write_whole(path, html)


def render(
    record_set: RecordSet,
    tables: Mapping[str, pd.DataFrame],
    folder: Path,
    title: str,
    published: pd.DataFrame | None = None,
) -> str:
    """The report as text, with links relative to ``folder``."""
    runs = record_set.runs
    cases = panels.by_case(runs)
    searched = tables.get("largest_batch", pd.DataFrame(columns=["framework"]))["framework"]
    look = Look(sorted({run.framework for run in runs}.union(searched)))
    link = partial(_link, record_set.root, folder)
    links = _Links(cases, link)
    made = _tables(tables, links)
    setups = _setups(runs, look, link)
    known = [setup.facts for setup in setups if setup.facts]
    machine = [fact for fact in known[0] if all(fact in facts for facts in known)] if known else []
    failures, failures_left_out = _failures(cases, link)
    statuses = Counter(run.status for run in runs)
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            **_page(),
            title=title,
            comparison=_beside(folder, COMPARISON_PAGE),
            runs=len(runs),
            cases=len(cases),
            superseded=record_set.superseded,
            statuses=[(status, statuses[status]) for status in _ordered(statuses)],
            status_words=panels.STATUS_WORDS,
            frameworks=[(name, look.variable(name)) for name in look.frameworks],
            models=sorted({run.model for run in runs}),
            hardware=_hardware(runs),
            machine=machine,
            setups=setups,
            setups_left_out=max(0, len(_setup_groups(runs)) - MAX_SETUPS),
            plots=_plots(cases, tables, look, link),
            tables=made,
            marks=_legend(tables),
            failures=failures,
            failures_left_out=failures_left_out,
            problems=record_set.problems[:MAX_PROBLEMS],
            problems_left_out=max(0, len(record_set.problems) - MAX_PROBLEMS),
            published=None if published is None else _published(published),
        )
    )


def _beside(folder: Path, page: str) -> str:
    """A link to another page of these results, where it has been made."""
    return page if (folder / page).is_file() else ""


def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, trim_blocks=True,
        lstrip_blocks=True, undefined=jinja2.StrictUndefined,
    )  # fmt: skip


def _page() -> dict[str, Markup]:
    """Style and script of every page."""
    files = {"style": "report.css", "script": "report.js"}
    return {k: Markup((TEMPLATES / file).read_text(encoding="utf-8")) for k, file in files.items()}


class _Links:
    """Record links of a row, for each kind of table."""

    def __init__(self, cases: Cases, link: Callable[[Run, str], Link]) -> None:
        self.cases = cases
        self.link = link

    def case(self, row: Mapping[str, Any], label: str = "", **other: Any) -> RecordLinks:
        runs = self.cases.get(html_tables.key_of(row, **other), ())
        return [(label, _numbered(runs, self.link))] if runs else []

    def amp(self, row: Mapping[str, Any]) -> RecordLinks:
        return [link for p in ("fp32", "amp") for link in self.case(row, p, precision=p)]

    def compiler(self, row: Mapping[str, Any]) -> RecordLinks:
        return [link for c in ("none", row["compiler"]) for link in self.case(row, c, compiler=c)]


def _legend(tables: Mapping[str, pd.DataFrame]) -> list[tuple[str, str]]:
    """The marks that stand in a table, and what they mean."""
    cells = [cell for table in tables.values() if "marks" in table for cell in table["marks"]]
    used = {mark for cell in cells for mark in cell.split()}
    return [(mark, meaning) for mark, meaning in MARKS.items() if mark in used]


def _tables(tables: Mapping[str, pd.DataFrame], links: _Links) -> dict[str, Table]:
    kinds: dict[str, tuple[str, Callable[[Mapping[str, Any]], RecordLinks]]] = {
        "summary": ("Summary", links.case),
        "weak_scaling": ("Speed-up and efficiency", links.case),
        "amp_speedup": ("Mixed-precision speed-up", links.amp),
        "compiler_speedup": ("Compiler speed-up", links.compiler),
        "latency": ("Latency", links.case),
    }
    made = {
        name: html_tables.of_frame(name, title, tables[name], rows)
        for name, (title, rows) in kinds.items()
    }
    certificates = parity.overview(tables["parity"] if "parity" in tables else parity.table([]))
    if "efficiency" in tables:
        told = tables["efficiency"].drop(
            columns=[name for name in OPTIONAL if tables["efficiency"][name].isna().all()]
        )
        made["efficiency"] = html_tables.of_frame("efficiency", "Efficiency", told, links.case)
    if "split" in tables and tables["split"]["step_ms"].notna().any():
        made["split"] = html_tables.of_frame(
            "split", "Parts of a training step", tables["split"], links.case
        )
    made["parity"] = html_tables.of_frame("parity", "Certificates", certificates)
    searched = {**searches.tables([]), **tables}
    for name, title in (("largest_batch", "Largest batches"), ("largest_batch_attempts", "Tried")):
        # Of a CPU there is no device's memory.
        frame = searched[name]
        unknown = [column for column in searches.MEMORY if frame[column].isna().all()]
        made[name] = html_tables.of_frame(name, title, frame.drop(columns=unknown))
    return made


def _plots(
    cases: Cases,
    tables: Mapping[str, pd.DataFrame],
    look: Look,
    link: Callable[[Run, str], Link],
) -> dict[str, Sequence[tuple[Plot, Sequence[Link]]]]:
    def load(run: Run) -> dict[str, Any]:
        if run.record is None:
            raise RecordsError(f"{run.origin} has no record")
        return load_record(run.record)

    def alone(plots: Sequence[Plot]) -> list[tuple[Plot, Sequence[Link]]]:
        return [(plot, ()) for plot in plots]

    return {
        "throughput": alone(panels.throughput(cases, look)),
        "weak_scaling": alone(panels.weak_scaling(tables["weak_scaling"], look)),
        "amp_speedup": alone(panels.ratios(tables["amp_speedup"], look, "amp against fp32")),
        "compiler_speedup": alone(
            panels.ratios(tables["compiler_speedup"], look, "compiled against not compiled")
        ),
        "largest_batch": alone(
            memory_curves.panels(tables["largest_batch_attempts"], look)
            if "largest_batch_attempts" in tables
            else []
        ),
        "steps": [
            (plot, [link(run, f"record of repeat {run.repeat}")])
            for plot, run in panels.step_times(cases, look, load)
        ],
    }


def _link(root: Path, folder: Path, run: Run, text: str) -> Link:
    """To the run's record, or to the CSV file whose line it is."""
    target = run.record or root / run.origin.rpartition(":")[0]
    href = quote(os.path.relpath(target, folder).replace(os.sep, "/"))
    if run.record is None:
        return Link(run.origin, href, run.origin)
    return Link(text, href, f"record of repeat {run.repeat}")


def _numbered(runs: Sequence[Run], link: Callable[[Run, str], Link]) -> list[Link]:
    """A link for each repeat; of lines of one CSV file, only the first says the file's name."""
    links = [link(run, str(run.repeat)) for run in runs]
    named = ""
    for place, (run, one) in enumerate(zip(runs, links, strict=True)):
        name, _, line = run.origin.rpartition(":")
        if run.record is None and name == named:
            links[place] = Link(f":{line}", one.href, one.label)
        named = name
    return links


def _hardware(runs: Sequence[Run]) -> list[tuple[str, int]]:
    counted = Counter(run.hardware for run in runs)
    return sorted(
        (name or "not recorded (imported without its hardware)", count)
        for name, count in counted.items()
    )


def _setup_groups(runs: Sequence[Run]) -> dict[tuple[str, ...], list[Run]]:
    groups: dict[tuple[str, ...], list[Run]] = defaultdict(list)
    for run in runs:
        groups[
            run.framework, run.framework_version, run.source, run.hardware, run.environment
        ].append(run)
    return groups


def _setups(runs: Sequence[Run], look: Look, link: Callable[[Run, str], Link]) -> list[Setup]:
    groups = _setup_groups(runs)
    setups = []
    for key in sorted(groups)[:MAX_SETUPS]:
        group = groups[key]
        # A run that was ok knows most about its environment.
        run = next((run for run in group if run.status == "ok"), group[0])
        made = "imported: no environment recorded"
        facts: Pairs = []
        details: list[tuple[str, Pairs]] = []
        if run.record is not None:
            try:
                made, facts, details = _facts(load_record(run.record))
            except RecordsError as error:
                made = f"not known: the record could not be read again ({error})"
        setups.append(
            Setup(
                framework=run.framework,
                colour=look.variable(run.framework),
                version=run.framework_version or "not known",
                source=run.source,
                runs=len(group),
                ok=sum(other.status == "ok" for other in group),
                made=made,
                facts=facts,
                details=details,
                record=[link(run, f"record of repeat {run.repeat}")],
            )
        )
    return setups


def _facts(record: Mapping[str, Any]) -> tuple[str, Pairs, list[tuple[str, Pairs]]]:
    """How the environment was made, its hardware and system, and the rest to be unfolded."""
    environment = record["environment"]
    ways = {
        "venv": "a venv that the workflow built",
        "conda": "a conda environment that Snakemake built",
        "interpreter": "an interpreter named in the config",
        "hand": "by hand, outside the workflow",
    }
    made = f"{ways[environment['way']]}, Python {environment['python']}"
    facts = [*_flat(environment["hardware"]), *_flat(environment["system"])]
    details: list[tuple[str, Pairs]] = [
        ("Command of one run", [("", shlex.join(record["command"]))]),
        ("While it was timed", _flat(_watched(record))),
        ("Settings", [*_flat(record["settings"]), *_rank_settings(record)]),
        ("Code", _flat(environment["code"])),
        ("Variables", _flat(environment["variables"])),
        ("Packages", _flat(environment["packages"])),
    ]
    return made, facts, [(name, pairs) for name, pairs in details if pairs]


def _watched(record: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in record.get("watch", {}).items() if key != "raw"}


def _rank_settings(record: Mapping[str, Any]) -> Pairs:
    return _flat(record["ranks"][0].get("settings", {})) if record["ranks"] else []


def _flat(value: Any, name: str = "") -> Pairs:
    """Nested facts as (name, text) pairs, empty ones left away."""
    if isinstance(value, dict):
        return [
            pair
            for key, inner in value.items()
            for pair in _flat(inner, f"{name} {key}".strip().replace("_", " "))
        ]
    if name.endswith("bytes") and isinstance(value, int):
        return [(name.removesuffix("bytes").strip(), f"{value / 2**30:.1f} GiB")]
    if isinstance(value, list):
        if any(isinstance(inner, (dict, list)) for inner in value):
            return [p for i, inner in enumerate(value) for p in _flat(inner, f"{name} {i}".strip())]
        value = ", ".join(map(str, value))
    if isinstance(value, float):
        value = f"{value:.6g}"
    return [] if value in (None, "") else [(name, str(value))]


def _failures(
    cases: Cases, link: Callable[[Run, str], Link]
) -> tuple[dict[str, list[Failure]], dict[str, int]]:
    """By status, and how many are left out of each."""
    grouped: dict[tuple[Any, ...], list[Run]] = defaultdict(list)
    for key, runs in cases.items():
        for run in runs:
            if run.status != "ok":
                grouped[(run.status, run.reason, *key)].append(run)
    found: dict[str, list[Failure]] = defaultdict(list)
    left_out: Counter[str] = Counter()
    read = 0
    for runs in grouped.values():
        run = runs[0]
        if len(found[run.status]) >= MAX_FAILURES:
            left_out[run.status] += 1
            continue
        traceback = ""
        if run.status == "failed" and run.record is not None and read < MAX_TRACEBACKS:
            traceback = _traceback(run.record)
            read += 1
        found[run.status].append(
            Failure(
                case=", ".join(
                    part
                    for part in (
                        run.model, run.mode, panels.scale(run), f"batch {run.batch_per_device}",
                        run.precision, "" if run.compiler == "none" else run.compiler,
                    )
                    if part
                ),
                framework=f"{run.framework} {run.framework_version}".strip(),
                status=run.status,
                reason=run.reason,
                count=len(runs),
                links=_numbered(runs, link),
                traceback=traceback,
            )
        )  # fmt: skip
    return {status: found[status] for status in _ordered(found) if found[status]}, dict(left_out)


def _traceback(path: Path) -> str:
    try:
        ranks = load_record(path)["ranks"]
    except RecordsError:
        return ""
    return next((rank["traceback"] for rank in ranks if rank.get("traceback")), "")


def _published(frame: pd.DataFrame) -> dict[str, Any]:
    agrees = [None if pd.isna(value) else bool(value) for value in frame["agrees"]]
    order = {False: 0, None: 2, True: 1}
    ranked = frame.assign(_rank=[order[value] for value in agrees]).sort_values(
        "_rank", kind="stable"
    )
    shown = ranked[[column for column in PUBLISHED_COLUMNS if column in ranked]]
    return {
        "table": html_tables.of_frame("published", "Published cells", shown),
        "agree": agrees.count(True),
        "differ": agrees.count(False),
        "without": agrees.count(None),
    }


def _ordered(statuses: Any) -> list[str]:
    known = ("ok", "failed", "oom", "timeout", "unsupported")
    return sorted(statuses, key=lambda status: known.index(status) if status in known else 9)
