"""Table of all frameworks by setting: each figure, and its fraction of the best."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ...cases.conditions import KEYS
from ...cases.names import topology
from ...config import catalog
from ...records.fields import curves
from .. import contests, measured
from ..columns import CASE_COLUMNS, NUMBER, TEXT, THOUSANDTHS, Column, Row, shared
from ..contests import ON_MACHINE
from ..formatting import Cell, own_parameters
from ..results import UNCOMPILED, CaseResult
from ..table import Crosstab, Inputs, Table

if TYPE_CHECKING:
    import pandas as pd

DEFAULT, COMPILED = "default", "compiled"
#: Modes with training.
TRAINING = ("train", curves.KIND)


def rows(inputs: Inputs) -> pd.DataFrame:
    """Return a row per case.

    The best is determined per setting, separately for compiled and other cases. There is none while
    a framework of the suite is unmeasured at that setting."""
    import pandas as pd  # slow to import, and plans make no rows

    listed = [
        (
            result,
            contest.machine,
            _compilation(result),
            at,
            bool(contest.missing),
            result.better,
            result.compared,
        )
        for at, contest in enumerate(inputs.once(contests.find_contests))
        for result in sorted(contest.results, key=_compilation, reverse=True)
    ]
    names = ["result", ON_MACHINE.name, "compilation", "contest", "lacks", "better", "figure"]
    cases = pd.DataFrame(listed, columns=names).astype({"figure": "float64"})
    figures = cases.groupby(["contest", "compilation"])["figure"]
    is_higher = cases["better"] == "higher"
    best = figures.transform("max").where(is_higher, figures.transform("min"))
    part = cases["figure"] / best.where((best != 0) & ~cases["lacks"])
    cases["part_of_best"] = part.where(is_higher, 1 / part)
    return cases[["result", ON_MACHINE.name, "compilation", "part_of_best"]]


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
        return Cell(row["status"], f"number missing status {row['status']}", "", row["reason"])
    shown = compares and row["part_of_best"] is not None
    part = f" ({row['part_of_best']:.2f})" if shown else ""
    return Cell(f"{row['median']:.4g}{part}", "number", repr(row["median"]), flags=row["flags"])


OVERVIEW = Table(
    name="overview",
    title="All frameworks side by side",
    explanation="The median of each framework at each setting and, in brackets, its part of the "
    "best at that setting. What ran with a compiler is apart from what did not, but for the one "
    "that nobody trains a framework without. Of several variants of a framework the fastest stands "
    "here; all are in the CSV. Of several models in a single framework, files have a table "
    "for each mode, with the models down.",
    columns=(
        *CASE_COLUMNS,
        ON_MACHINE,
        measured.PARAMETERS,
        measured.METRIC,
        Column("compilation", TEXT, "`compiled`, or `default`: without a compiler, or with "
               "the one that nobody trains without"),
        measured.MEDIAN,
        *shared("unit"),
        Column(
            "part_of_best", NUMBER, "the figure over that of the best framework here, or its "
            "inverse where less is better", form=THOUSANDTHS, title="part of the best",
        ),
        *shared("status", "reason", "flags"),
    ),
    rows=rows,
    group="Answers",
    always=True,
    keys=(*KEYS, ON_MACHINE.name, "parameters", "metric", "unit"),
    crosstabs=crosstabs,
    of_page=by_model,
    axes=("model", "mode", "precision", "devices"),
)  # fmt: skip
TABLES = (OVERVIEW,)
