"""Table of gains by variant, precision, compiler and devices, over all frameworks and models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from core import precisions

from ...cases.names import topology
from ...statistics.verdicts import FASTER, SLOWER
from ..columns import COUNT, NUMBER, TEXT, WHOLE, Column, Row, shared
from ..results import UNCOMPILED
from ..table import Inputs, Table
from .scaling import STRONG, WEAK
from .speedups import COMPILERS, PRECISIONS
from .variants import VARIANTS

if TYPE_CHECKING:
    import pandas as pd

_SAME_BATCH = {WEAK.name: "same batch per device", STRONG.name: "same total batch"}


def rows(inputs: Inputs) -> Iterator[Row]:
    """Yield a row per change that has ratios in its table, without the baselines."""
    for table in (VARIANTS, PRECISIONS, COMPILERS, WEAK, STRONG):
        made = inputs.made(table)
        ratios = made[made["speedup"].notna() & (made.get("devices", 0) != 1)]
        changes = ratios.assign(change=_changes(table, ratios)).groupby("change", sort=False)
        yield from (_row(table, str(change), some) for change, some in changes)


def _changes(table: Table, ratios: pd.DataFrame) -> Any:
    """Return what each row holds against what, as a column."""
    if table is VARIANTS:
        return ratios["suite_variant"] + " over " + ratios["base_suite_variant"]
    if table is PRECISIONS:
        return ratios["precision"] + " over " + ratios["precision"].map(precisions.baseline)
    if table is COMPILERS:
        return "compiler over none"
    sizes = map(topology, ratios["nodes"], ratios["devices_per_node"])
    return [f"{size} over 1n1g, {_SAME_BATCH[table.name]}" for size in sizes]


def _row(table: Table, change: str, ratios: pd.DataFrame) -> Row:
    ordered = ratios.sort_values(["speedup", "framework", "model"])
    least, most = ordered.iloc[0], ordered.iloc[-1]
    return {
        "change": change,
        "most": most["speedup"],
        "most_of": _case(most, ratios),
        "least": least["speedup"],
        "least_of": _case(least, ratios),
        "ratios": len(ratios),
        "ratio_frameworks": ratios["framework"].nunique(),
        "faster": sum(ratios["verdict"] == FASTER),
        "slower": sum(ratios["verdict"] == SLOWER),
        "perfect": ratios["devices"].iloc[0] if "devices" in ratios else None,
        "of_table": table.name,
        "flags": " ".join(sorted({*most["flags"].split(), *least["flags"].split()})),
    }


def _case(row: pd.Series[Any], ratios: pd.DataFrame) -> str:
    """Return the framework and whatever else distinguishes the case from others in ``ratios``."""
    apart = [
        row[name]
        for name in ("model", "mode", "precision", "compiler")
        if row[name] != UNCOMPILED and ratios[name].nunique() > 1
    ]
    return ", ".join([row["framework"], *apart])


GAINS = Table(
    name="gains",
    title="What variants, precisions, compilers and devices bring",
    explanation="The largest and the smallest ratio of all frameworks and models, from the tables "
    "of variants, speed-ups and scaling, which say what each is of. Faster and slower are counted "
    "by their verdicts, which are adjusted for all ratios of these tables. Devices are held "
    "against as many single ones.",
    columns=(
        Column("change", TEXT, "what against what, everything else equal"),
        Column("most", NUMBER, "largest ratio of medians", flagged=True),
        Column("most_of", TEXT, "framework and case of that", title="of"),
        Column("least", NUMBER, "smallest ratio of medians", flagged=True),
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
        *shared("flags"),
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
