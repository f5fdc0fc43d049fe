"""Table of all frameworks by setting: each figure, and its fraction of the best."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

from ...cases.names import topology
from ...config import catalog
from ...records.fields import curves
from .. import contests, measured
from ..columns import Row
from ..contests import ON_MACHINE
from ..formatting import Cell, own_parameters
from ..results import UNCOMPILED, CaseResult, flags_of
from ..table import Crosstab, Inputs, declared_table

DEFAULT, COMPILED = "default", "compiled"
#: Modes with training.
TRAINING = ("train", curves.KIND)


def rows(inputs: Inputs) -> Iterator[Row]:
    """Yield a row per case.

    The best is determined per setting, separately for compiled and other cases. There is none while
    a framework of the suite is unmeasured at that setting."""
    for contest in inputs.once(contests.find_contests):
        results = sorted(contest.results, key=_compilation, reverse=True)
        best = {}
        for compilation in (DEFAULT, COMPILED):
            some = [result for result in results if _compilation(result) == compilation]
            best[compilation] = next(iter(contests.ranked(some)), None)
        for result in results:
            compilation = _compilation(result)
            first = None if contest.missing else best[compilation]
            yield {
                **result.key.row,
                ON_MACHINE: contest.machine,
                "parameters": measured.parameters_text(result.case),
                "metric": result.key.metric,
                "compilation": compilation,
                "median": result.throughput,
                "unit": result.unit,
                "part_of_best": _part(result, first),
                "status": result.status,
                "reason": result.reason,
                "flags": flags_of(result),
            }


def _part(result: CaseResult, best: CaseResult | None) -> float | None:
    """Return a figure over the best one, or its inverse where less is better."""
    value, of = result.compared, best and best.compared
    if value is None or not of:
        return None
    if result.better == "higher":
        return value / of
    return of / value if value else None


def usual_compiler(framework: str, mode: str) -> str:
    """Return the compiler that a framework is always trained with; ``none`` if there is none."""
    with_one = (
        catalog.framework_declaration(framework).get("trained_with") if mode in TRAINING else None
    )
    return str(with_one or UNCOMPILED)


def compilation_of(framework: str, mode: str, compiler: str) -> str:
    """Return COMPILED for a compiler other than the framework's usual one, otherwise DEFAULT."""
    usual = usual_compiler(framework, mode)
    return DEFAULT if compiler in ("", UNCOMPILED, usual) else COMPILED


def _compilation(result: CaseResult) -> str:
    return compilation_of(result.case.framework, result.case.mode, result.case.compiler)


def crosstabs(rows: Sequence[Row]) -> list[Crosstab]:
    """Return the crosstabs of files, by default as :func:`by_model`.

    Several models in a single framework give a table per mode and unit: models down, settings
    across."""
    frameworks, models = ({row[name] for row in rows} for name in ("framework", "model"))
    alone = len(frameworks) == 1 and len(models) > 1 and "" not in models
    return _tables(rows, "framework", "model") if alone else by_model(rows)


def by_model(rows: Sequence[Row]) -> list[Crosstab]:
    """Return a crosstab per model, mode and unit: frameworks down, settings across."""
    return _tables(rows, "model", "framework")


def _tables(rows: Sequence[Row], group: str, down: str) -> list[Crosstab]:
    parameters_of = own_parameters(rows)
    parts: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        title = [row[group], row["mode"], parameters_of(row)]
        parts[f"{', '.join(filter(None, title))} ({row['unit']})"].append(row)
    return [_crosstab(title, some, down) for title, some in parts.items()]


def _crosstab(title: str, rows: Sequence[Row], down: str) -> Crosstab:
    name = _settings(rows)
    settings: dict[str, Row] = {}
    for row in rows:
        settings.setdefault(name(row), row)
    cells: dict[tuple[str, str], Row] = {}
    for row in rows:
        cell = (row[down], name(row))
        if cell not in cells or (row["part_of_best"] or 0) > (cells[cell]["part_of_best"] or 0):
            cells[cell] = row
    compares = down == "framework"
    return Crosstab(
        title,
        settings,
        {
            heading or measured.NO_FRAMEWORK: {
                setting: _cell(cells.get((heading, setting)), compares) for setting in settings
            }
            for heading in sorted({row[down] for row in rows})
        },
        down,
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


def _cell(row: Row | None, compares: bool) -> Cell | None:
    """Return the cell of a row. ``compares``: add its fraction of the best."""
    if row is None:
        return None
    if row["median"] is None:
        return Cell(row["status"], f"number missing status {row['status']}", row["reason"])
    shown = compares and row["part_of_best"] is not None
    part = f" ({row['part_of_best']:.2f})" if shown else ""
    return Cell(f"{row['median']:.4g}{part}", "number", flags=row["flags"])


OVERVIEW = declared_table("overview", rows, crosstabs=crosstabs, of_page=by_model)
TABLES = (OVERVIEW,)
