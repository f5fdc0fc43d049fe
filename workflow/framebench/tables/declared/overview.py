"""Table of all frameworks by setting: each figure, and its fraction of the best."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence

from core.case import Case

from ...cases.names import topology
from ...config import catalog
from ...config.measurements import CONVERGE
from .. import contests, measured
from ..columns import PRINTED, TEXT, Column, Row
from ..contests import ON_MACHINE
from ..formatting import DASH, Cell, own_parameters
from ..results import UNCOMPILED, CaseResult, flags_of, fraction_of_best
from ..table import Inputs, declared_table

DEFAULT, COMPILED = "default", "compiled"
#: Modes with training.
TRAINING = ("train", CONVERGE)


def rows(inputs: Inputs) -> Iterator[Row]:
    """Yield a row per case.

    The best is determined per setting, separately for compiled and other cases. There is none while
    a framework of the suite is unmeasured at that setting."""
    for contest in contests.find_contests(inputs):
        results = sorted(contest.results, key=lambda result: compilation(result.case), reverse=True)
        best: dict[str, CaseResult] = {}
        for result in contests.ranked(results):
            best.setdefault(compilation(result.case), result)
        for result in results:
            own = compilation(result.case)
            top, value = best.get(own), result.compared
            part = None
            if value is not None and top and top.compared:
                part = fraction_of_best(value, top.compared, result.better)
            yield {
                **result.key.row,
                ON_MACHINE: contest.machine,
                "parameters": measured.parameters_text(result.case),
                "metric": result.key.metric,
                "compilation": own,
                "median": result.throughput,
                "unit": result.unit,
                "part_of_best": None if contest.missing else part or None,
                "status": result.status,
                "reason": result.reason,
                "flags": flags_of(result),
            }


def compilation(case: Case) -> str:
    """Return COMPILED for a compiler other than the one that a framework is always trained with."""
    declared = catalog.framework_declaration(case.framework)
    usual = declared.get("trained_with") if case.mode in TRAINING else None
    return DEFAULT if case.compiler in ("", UNCOMPILED, usual) else COMPILED


def crosstab(rows: Sequence[Row]) -> tuple[list[Column], list[Row]]:
    """Return a crosstab: settings of each model and mode as rows, frameworks as columns, those with
    most figures first.

    If a framework has several cases at a setting, the one nearest to the best is shown."""
    parameters_of = own_parameters(rows)
    measured_rows: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        title = ", ".join(filter(None, [row["model"], row["mode"], parameters_of(row)]))
        measured_rows[f"{title} ({row['unit']})"].append(row)
    settings: dict[tuple[str, str], dict[str, Row]] = defaultdict(dict)
    for title, some in measured_rows.items():
        name = _settings(some)
        for row in some:
            best = settings[title, name(row)]
            known = best.setdefault(row["framework"], row)
            if (row["part_of_best"] or 0) > (known["part_of_best"] or 0):
                best[row["framework"]] = row
    figures = Counter(row["framework"] for row in rows if row["median"] is not None)
    names = sorted({row["framework"] for row in rows}, key=lambda name: (-figures[name], name))
    titles = {name: name or measured.NO_FRAMEWORK for name in names}
    return (
        [
            *(Column(title, TEXT, "") for title in ("measured", "setting")),
            *(Column(title, TEXT, "", title=title, form=PRINTED) for title in titles.values()),
        ],
        [
            {
                **next(iter(best.values())),
                "measured": title,
                "setting": setting,
                **{titles[name]: _cell(best.get(name)) for name in names},
            }
            for (title, setting), best in settings.items()
        ],
    )


def _settings(rows: Sequence[Row]) -> Callable[[Row], str]:
    """Return a function that names a row's setting: precision, devices, and what else differs."""
    batches = len({row["batch_per_device"] for row in rows}) > 1

    def name(row: Row) -> str:
        parts = [row["precision"], topology(row["nodes"], row["devices_per_node"])]
        parts += [f"batch {row['batch_per_device']}"] * batches
        parts += [COMPILED] * (row["compilation"] == COMPILED)
        return " ".join(filter(None, parts))

    return contests.named(rows, name)


def _cell(row: Row | None) -> Cell:
    """Return a figure with its fraction of the best, or a word that says why there is none."""
    if row is None or row["median"] is None:
        return Cell(DASH, "number missing", row["status"] if row else "not run")
    part = "" if row["part_of_best"] is None else f" ({row['part_of_best']:.2f})"
    return Cell(f"{row['median']:.4g}{part}", "number", flags=row["flags"])


OVERVIEW = declared_table("overview", rows, overview=crosstab)
TABLES = (OVERVIEW,)
