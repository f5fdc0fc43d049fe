"""Coverage of a suite: cases that have been measured, by framework."""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import chain
from typing import TYPE_CHECKING

from ..columns import TEXT, WHOLE, Column, shared
from ..measured import NO_FRAMEWORK
from ..results import CaseResult
from ..table import Inputs, Table

if TYPE_CHECKING:
    import pandas as pd

#: Framework of a suite's total.
ALL = "all"


def results_by_folder(inputs: Inputs) -> dict[str, CaseResult]:
    """Return cases by the folder of their records below ``runs``."""
    results = chain(inputs.cases.values(), inputs.others.values())
    return {os.path.dirname(run.origin): result for result in results for run in result.runs}


def rows(inputs: Inputs) -> pd.DataFrame:
    """Return a row per known suite and one per framework of it, in the order of the suites."""
    import pandas as pd  # slow to import, and plans need only names

    measured = results_by_folder(inputs)
    listed = [
        (case.suite, case.case.framework, measured.get(case.folder)) for case in inputs.expected
    ]
    cases = pd.DataFrame(listed, columns=["suite", "framework", "result"], dtype=object)
    cases["measured"] = cases["result"].notna()
    cases["ended"] = [entry is not None and not entry.values for entry in cases["result"]]
    cases["suite"] = pd.Categorical(cases["suite"], cases["suite"].unique())
    parts = [cases.assign(framework=ALL), cases.sort_values("framework").replace("", NO_FRAMEWORK)]
    counted = (
        pd.concat(parts)
        .groupby(["suite", "framework"], sort=False, observed=True)
        .agg(
            expected_cases=("suite", "size"),
            measured_cases=("measured", "sum"),
            without_figure=("ended", "sum"),
        )
        .sort_index(level="suite", sort_remaining=False, kind="stable")
        .reset_index()
    )
    missing = counted["expected_cases"] - counted["measured_cases"]
    return counted.assign(missing_cases=missing)


def sentences(tables: Mapping[Table, pd.DataFrame]) -> list[str]:
    """Return how many cases of each suite are measured, as sentences; [] if no suite is known.

    A second sentence names the frameworks with unmeasured cases."""
    from .. import view  # slow to import, and plans need only names

    rows, lines = view.rows_of(tables, COVERAGE), []
    for row in rows:
        if row["framework"] != ALL:
            continue
        of = f"{row['measured_cases']} of {row['expected_cases']} cases of suite {row['suite']}"
        text = f"{of} measured"
        if row["without_figure"]:
            text += f", {row['without_figure']} without a figure"
        lines.append(text)
        lacking = [
            f"{entry['framework']} ({entry['missing_cases']} of {entry['expected_cases']})"
            for entry in rows
            if entry["suite"] == row["suite"]
            and entry["framework"] != ALL
            and entry["missing_cases"]
        ]
        if lacking:
            lines.append(f"Not yet measured: {', '.join(lacking)}")
    return lines


COVERAGE = Table(
    name="coverage",
    title="Cases measured",
    explanation="How many cases of the suite, as far as they can run here, have a record. A case "
    "that ended without a figure, such as one that a framework does not support, is measured: its "
    "status is the result.",
    columns=(
        Column("suite", TEXT, "name of the suite"),
        *shared("framework"),
        Column("expected_cases", WHOLE, "cases of the suite that can run here", title="cases"),
        Column("measured_cases", WHOLE, "those with a record", title="measured"),
        Column(
            "without_figure", WHOLE, "of these, those that ended without a figure",
            title="without a figure",
        ),
        Column("missing_cases", WHOLE, "those without a record yet", title="not yet measured"),
    ),
    rows=rows,
    group="Answers",
    keys=("suite", "framework"),
    answers=("measured_cases", "expected_cases", "without_figure", "missing_cases"),
    axes=("framework",),
)  # fmt: skip
TABLES = (COVERAGE,)
