"""One self-contained HTML file from a set of records: what was measured on what, tables, plots,
failures with their reasons, and the way from every figure to its record.

The file is a pure function of the records and the tables: it holds no time of its own.
"""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd
from markupsafe import Markup

from ..comparison import compare
from ..config import precisions
from ..config.catalog import load_catalog
from ..files.whole_files import write_whole
from ..machine.identities import UNKNOWN
from ..records.facts import leaves
from ..records.interruptions import Interruption
from ..records.record_sets import RecordSet, load_record, machine_label
from ..records.run import RecordsError, Run
from ..tables import largest_batch, parity_table, scaling
from ..tables.cases import CaseResults
from ..tables.efficiency import OPTIONAL
from ..tables.markdown import words_of
from . import failures, html_tables, memory_curves, panels, scaling_curves
from .html_tables import Link, Table
from .plots import Look, Plot
from .record_links import Links, RecordLinks, to_record

PROJECT = Path(__file__).parents[3]
TEMPLATES = Path(__file__).parent / "templates"
REPORT_PAGE, COMPARISON_PAGE = "report.html", "compare.html"
MAX_SETUPS = 12
MAX_PROBLEMS = 200

#: What names a published cell and what became of it; tables/published.csv has its other keys.
PUBLISHED_COLUMNS = ("place", "column", "framework", "nodes", "devices_per_node", "quantity",
                     "printed", "recomputed", "agrees", "note")  # fmt: skip

Pairs = list[tuple[str, str]]


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


def write(
    record_set: RecordSet,
    cases: CaseResults,
    tables: Mapping[str, pd.DataFrame],
    path: Path,
    title: str,
    published: pd.DataFrame | None = None,
    interrupted: Sequence[Interruption] = (),
) -> None:
    """Write the report to ``path``, whole or not at all. Links to records are relative to its
    folder. Raises OSError when it cannot be written."""
    write_whole(path, render(record_set, cases, tables, path.parent, title, published, interrupted))


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
            marks=words_of([frame]),
            notes=compare.notes(frame),
            report=_beside(path.parent, REPORT_PAGE),
        )
    )
    write_whole(path, html)


def render(
    record_set: RecordSet,
    cases: CaseResults,
    tables: Mapping[str, pd.DataFrame],
    folder: Path,
    title: str,
    published: pd.DataFrame | None = None,
    interrupted: Sequence[Interruption] = (),
) -> str:
    """The report as text, with links relative to ``folder``. ``cases`` and ``tables`` are those of
    the records."""
    runs = record_set.runs
    searched = tables.get("largest_batch", pd.DataFrame(columns=["framework"]))["framework"]
    look = Look(sorted({run.case.framework for run in runs}.union(searched)))
    link = partial(to_record, record_set.root, folder)
    made = _tables(tables, Links(cases, link))
    setups = _setups(runs, look, link)
    known = [setup.facts for setup in setups if setup.facts]
    machine = [fact for fact in known[0] if all(fact in facts for facts in known)] if known else []
    failed, failed_left_out = failures.by_status(cases, link)
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
            statuses=[(status, statuses[status]) for status in failures.ordered(statuses)],
            status_words=panels.STATUS_WORDS,
            frameworks=[(name, look.variable(name)) for name in look.frameworks],
            models=sorted({run.case.model for run in runs}),
            precisions=precisions.known().values(),
            uncompiled=_uncompiled(runs),
            hardware=_machines(runs),
            machine=machine,
            compared_on=_compared_on(runs),
            setups=setups,
            setups_left_out=max(0, len(_setup_groups(runs)) - MAX_SETUPS),
            plots=_plots(cases, tables, look, link),
            tables=made,
            scaling=scaling.KINDS,
            communication=_communication(tables),
            marks=words_of(tables.values()),
            failures=failed,
            failures_left_out=failed_left_out,
            interrupted=[
                (one, Path(record_set.root, f"{one.run}.json").is_file())
                for one in interrupted[-MAX_PROBLEMS:]
            ],
            interrupted_left_out=max(0, len(interrupted) - MAX_PROBLEMS),
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


def _tables(tables: Mapping[str, pd.DataFrame], links: Links) -> dict[str, Table]:
    kinds: dict[str, tuple[str, Callable[[Mapping[str, Any]], RecordLinks]]] = {
        "summary": ("Summary", links.case),
        **{
            name: (f"{kind.name}: speed-up and efficiency", links.case)
            for name, kind in scaling.KINDS.items()
        },
        "amp_speedup": ("Mixed-precision speed-up", links.amp),
        "compiler_speedup": ("Compiler speed-up", links.compiler),
        "latency": ("Latency", links.case),
    }
    made = {
        name: html_tables.of_frame(name, title, _told(tables[name], scaling.COMMUNICATION), rows)
        for name, (title, rows) in kinds.items()
    }
    certificates = parity_table.overview(
        tables["parity"] if "parity" in tables else parity_table.table([])
    )
    if "efficiency" in tables:
        told = _told(tables["efficiency"], OPTIONAL)
        made["efficiency"] = html_tables.of_frame("efficiency", "Efficiency", told, links.case)
    if "split" in tables and tables["split"]["step_ms"].notna().any():
        made["split"] = html_tables.of_frame(
            "split", "Parts of a training step", tables["split"], links.case
        )
    made["parity"] = html_tables.of_frame("parity", "Certificates", certificates)
    searched = {**largest_batch.tables([]), **tables}
    for name, title in (("largest_batch", "Largest batches"), ("largest_batch_attempts", "Tried")):
        # Of a CPU there is no device's memory.
        made[name] = html_tables.of_frame(name, title, _told(searched[name], largest_batch.MEMORY))
    return made


def _told(frame: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Without those of ``columns`` of which nothing is known in any row."""
    there = [name for name in columns if name in frame]
    return frame.drop(columns=[name for name in there if frame[name].isna().all()])


def _communication(tables: Mapping[str, pd.DataFrame]) -> dict[str, str]:
    """What is to be known of the tables that say something of communication."""
    return {
        name: scaling.COMMUNICATION_EXPLANATION
        for name in scaling.KINDS
        if tables[name][[*scaling.COMMUNICATION]].notna().any(axis=None)
    }


def _plots(
    cases: CaseResults,
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
        **{
            name: alone(scaling_curves.panels(tables[name], look, kind))
            for name, kind in scaling.KINDS.items()
        },
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


def _uncompiled(runs: Sequence[Run]) -> list[str]:
    """What a framework does where no compiler is asked for."""
    declared = load_catalog(PROJECT).frameworks
    measured = sorted({run.case.framework for run in runs} & set(declared))
    return [f"{declared[name]['title']}: {declared[name]['none_means']}" for name in measured]


def _compared_on(runs: Sequence[Run]) -> list[str]:
    """The machines that frameworks are compared on; none where there is but one framework."""
    if len({run.case.framework for run in runs}) < 2:
        return []
    return [name for _, name, _ in _machines(runs)]


def _machines(runs: Sequence[Run]) -> list[tuple[str, str, int]]:
    """Of each machine: how conditions name it ("" where there is but one), what it is, its runs."""
    counted = Counter(run.machine if run.hardware else UNKNOWN for run in runs)
    several = len(counted) > 1
    return sorted(
        (
            machine_label(machine) if several and machine.hardware else "",
            str(machine) or "not recorded (imported without its hardware)",
            count,
        )
        for machine, count in counted.items()
    )


def _setup_groups(runs: Sequence[Run]) -> dict[tuple[str, ...], list[Run]]:
    groups: dict[tuple[str, ...], list[Run]] = defaultdict(list)
    for run in runs:
        case = run.case
        key = (case.framework, case.framework_version, case.source)
        groups[(*key, str(run.machine), run.environment)].append(run)
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
                framework=run.case.framework,
                colour=look.variable(run.case.framework),
                version=run.case.framework_version or "not known",
                source=run.case.source,
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
        "modules": "environment modules",
        "container": "a container",
        "hand": "by hand, outside the workflow",
    }
    brought = " ".join([environment.get("image", ""), *environment.get("modules", [])]).strip()
    way = ways[environment["way"]] + (f" ({brought})" if brought else "")
    made = f"{way}, Python {environment['python']}"
    facts = [*_flat(environment["hardware"]), *_flat(environment["system"])]
    details: list[tuple[str, Pairs]] = [
        ("Command of one run", [("", shlex.join(record["command"]))]),
        ("While it was timed", _flat(_watched(record))),
        ("Settings", [*_flat(record["settings"]), *_rank_settings(record)]),
        (
            "Libraries of linear algebra and threads, with the code path that each tells",
            _libraries(record),
        ),
        ("Code", _flat(environment["code"])),
        ("Variables", _flat(environment["variables"])),
        ("Packages", _flat(environment["packages"])),
    ]
    return made, facts, [(name, pairs) for name, pairs in details if pairs]


def _watched(record: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in record.get("watch", {}).items() if key != "raw"}


def _rank_settings(record: Mapping[str, Any]) -> Pairs:
    return _flat(record["ranks"][0].get("settings", {})) if record["ranks"] else []


def _libraries(record: Mapping[str, Any]) -> Pairs:
    found = record["ranks"][0].get("libraries", {}) if record["ranks"] else {}
    return [(name, code_path or "does not tell") for name, code_path in found.items()]


def _flat(facts: Any) -> Pairs:
    """Nested facts as (name, text) pairs, empty ones left away."""
    pairs = []
    for path, value in leaves(facts):
        name = " ".join(map(str, path)).replace("_", " ")
        if name.endswith("bytes") and isinstance(value, int):
            name, value = name.removesuffix("bytes").strip(), f"{value / 2**30:.1f} GiB"
        elif isinstance(value, list):
            value = ", ".join(map(str, value))
        elif isinstance(value, float):
            value = f"{value:.6g}"
        if value not in (None, ""):
            pairs.append((name, str(value)))
    return pairs


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
