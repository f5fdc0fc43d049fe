"""The Markdown of the table of efficiencies."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from .efficiency import OPTIONAL
from .markdown_cells import MISSING, Cell, Footnotes, Row, escape, marked, number

EXPLANATION = (
    "TFLOP/s of one device: throughput times the operations of the model, which are two for each "
    "multiply-add of its forward pass, three times that in training, and nothing for what is "
    "computed again. MFU is its part of the peak, measured on this device: the fastest products "
    "of two matrices in this precision that any framework reached. The vendor's value stands "
    "beside it where there is one. Memory is the most that any rank took."
)


def values(notes: Footnotes, rows: Sequence[Row]) -> list[tuple[str, Cell]]:
    """Header and cell of each column; those of what the machine tells nothing of are left out."""

    def utilisation(row: Row) -> str:
        if pd.isna(row["mfu"]):
            return MISSING + notes.mark(row["reason"])
        return f"{100 * row['mfu']:.1f} %{marked(row)}"

    columns: list[tuple[str, str, Cell]] = [
        ("", "Throughput", lambda row: number(row["throughput_median"]) + marked(row)),
        ("", "TFLOP/s", lambda row: _significant(row["tflops_per_device"])),
        ("", "Peak", lambda row: _significant(row["peak_tflops"])),
        ("", "Peak by", lambda row: escape(row["peak_by"]) or MISSING),
        ("datasheet_tflops", "Datasheet", lambda row: _significant(row["datasheet_tflops"])),
        ("", "MFU", utilisation),
        (
            "energy_joules_per_sample",
            "J/sample",
            lambda row: _significant(row["energy_joules_per_sample"]),
        ),
        (
            "peak_device_memory_bytes",
            "Device memory (GiB)",
            lambda row: _gibibytes(row["peak_device_memory_bytes"]),
        ),
        ("", "Host memory (GiB)", lambda row: _gibibytes(row["peak_host_memory_bytes"])),
    ]
    unknown = {name for name in OPTIONAL if all(pd.isna(row[name]) for row in rows)}
    return [(header, cell) for name, header, cell in columns if name not in unknown]


def _significant(value: float) -> str:
    return MISSING if pd.isna(value) else f"{value:.3g}"


def _gibibytes(value: int) -> str:
    return MISSING if pd.isna(value) else number(value / 2**30)
