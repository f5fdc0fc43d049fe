"""Figures of NVIDIA's layouts are in the row of their case and under their heading."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from framebench.report import html_tables
from framebench.tables import frames
from framebench.tables.table import Table

from ...known_cells import ENDS, PLACES, KnownTables, Of, close, known_tables, markdown_rows, ratio


@pytest.fixture(scope="module", params=list(product(ENDS, PLACES)), ids=lambda pair: " ".join(pair))
def made(request: pytest.FixtureRequest) -> KnownTables:
    return known_tables(*request.param)


def layout_rows(tables: Mapping[Table, Any], name: str) -> Iterator[dict[str, str]]:
    """Yield our rows in a layout of NVIDIA's, from the file and then from the page."""
    ((table, rows),) = ((t, rows) for t, rows in tables.items() if t.name == name)
    text = frames.files({table: rows}, Path("t"))[Path("t", f"{name}.md")]
    yield from (row for title, row in markdown_rows(text) if "Framework" in row)
    for layout, lines in html_tables.of_frame(table, rows).layouts:
        for _, cells in lines:
            yield {title: cells[title].text for title in layout.header}


def test_nvidias_layout_of_training_has_both_precisions_of_one_case(made: Any) -> None:
    known, _, tables = made
    actual = list(layout_rows(tables, "nvidia_training"))
    amps = [axes for axes in known if axes.precision == "amp" and axes.mode == "train"]
    assert len(actual) == 2 * len(amps)
    for row in actual:
        framework, _, *compiler = row["Framework"].split()
        axes = Of(framework, "train", "amp", bool(compiler), int(row["GPUs"]))
        full = axes.but(precision="fp32")
        assert close(row["Throughput - mixed precision"], known[axes]), row
        assert close(row["Throughput - FP32"], known[full]), row
        assert close(row["Throughput speedup (FP32 - mixed precision)"], ratio(known, axes, full))
        weak = ratio(known, axes, axes.but(devices=1))
        assert close(row.get("Weak scaling - mixed precision", ""), weak), row


def test_nvidias_layouts_of_scores_have_both_precisions_of_one_case(made: Any) -> None:
    _, scores, tables = made
    for name, title in (("nvidia_accuracy", "Accuracy - {}"), ("nvidia_seeds", "{} avg accuracy")):
        ((table, rows),) = ((t, rows) for t, rows in tables.items() if t.name == name)
        assert len(html_tables.of_frame(table, rows).layouts) == 1, "one table of one title"
        actual = list(layout_rows(tables, name))
        assert len(actual) % 2 == 0
        assert actual
        for row in actual:
            framework = row["Framework"].split()[0]
            for precision, words in (("amp", "mixed precision"), ("fp32", "FP32")):
                value = scores.get((framework, precision))
                assert close(row[title.format(words)], value), (name, row)
