"""Table of gains by precision, compiler and devices, over all frameworks and models."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from core import precisions

from ...cases.names import topology
from ...statistics.verdicts import FASTER, SLOWER
from ..columns import COUNT, NUMBER, TEXT, WHOLE, Column, Row, shared
from ..results import UNCOMPILED
from ..table import Inputs, Table
from .scaling import STRONG, WEAK
from .speedups import COMPILERS, PRECISIONS

_SAME_BATCH = {WEAK.name: "same batch per device", STRONG.name: "same total batch"}


def rows(inputs: Inputs) -> Iterator[Row]:
    """Yield a row per change that has ratios in its table, without the baselines."""
    for table in (PRECISIONS, COMPILERS, WEAK, STRONG):
        changes: dict[str, list[Row]] = defaultdict(list)
        for row in table.rows(inputs):
            if row["speedup"] is not None and row.get("devices") != 1:
                changes[_change(table, row)].append(row)
        for change, some in changes.items():
            yield _row(table, change, some)


def _change(table: Table, row: Row) -> str:
    if table is PRECISIONS:
        return f"{row['precision']} over {precisions.baseline(row['precision'])}"
    if table is COMPILERS:
        return "compiler over none"
    size = topology(row["nodes"], row["devices_per_node"])
    return f"{size} over 1n1g, {_SAME_BATCH[table.name]}"


def _row(table: Table, change: str, rows: Sequence[Row]) -> Row:
    ordered = sorted(rows, key=lambda row: (row["speedup"], row["framework"], row["model"]))
    least, most = ordered[0], ordered[-1]
    verdicts = [row["verdict"] for row in rows]
    return {
        "change": change,
        "most": most["speedup"],
        "most_of": _case(most, rows),
        "least": least["speedup"],
        "least_of": _case(least, rows),
        "ratios": len(rows),
        "ratio_frameworks": len({row["framework"] for row in rows}),
        "faster": verdicts.count(FASTER),
        "slower": verdicts.count(SLOWER),
        "perfect": rows[0].get("devices"),
        "of_table": table.name,
        "marks": " ".join(sorted({*most["marks"].split(), *least["marks"].split()})),
    }


def _case(row: Row, rows: Sequence[Row]) -> str:
    """Return the framework and whatever else distinguishes the case from others in ``rows``."""
    words: Mapping[str, str] = {
        name: str(row[name]) for name in ("model", "mode", "precision", "compiler")
    }
    apart = [
        word
        for name, word in words.items()
        if word != UNCOMPILED and len({other[name] for other in rows}) > 1
    ]
    return ", ".join([row["framework"], *apart])


GAINS = Table(
    name="gains",
    title="What precisions, compilers and devices bring",
    explanation="The largest and the smallest ratio of all frameworks and models, from the tables "
    "of speed-ups and of scaling, which say what each is of. Faster and slower are counted by "
    "their verdicts, which are adjusted for all ratios of these tables. Devices are held against "
    "as many single ones.",
    columns=(
        Column("change", TEXT, "what against what, everything else equal"),
        Column("most", NUMBER, "largest ratio of medians", marked=True),
        Column("most_of", TEXT, "framework and case of that", title="of"),
        Column("least", NUMBER, "smallest ratio of medians", marked=True),
        Column("least_of", TEXT, "framework and case of that", title="of"),
        Column("ratios", WHOLE, "how many ratios there are"),
        Column("ratio_frameworks", WHOLE, "of how many frameworks", title="frameworks"),
        Column("faster", WHOLE, "ratios that are shown to be above 1; of devices, above `perfect`"),
        Column("slower", WHOLE, "ratios that are shown to be below it"),
        Column(
            "perfect", COUNT, "how many times as many devices there are", optional=True,
            why=lambda row: "",
        ),
        Column("of_table", TEXT, "the table that they are from", title="table"),
        *shared("marks"),
    ),
    rows=rows,
    group="Answers",
    always=True,
    keys=("change",),
    answers=("most", "least", "faster", "slower", "ratios"),
    order="most",
    axes=(),
)  # fmt: skip
TABLES = (GAINS,)
