"""Tables of other projects, drawn from layouts: cell by cell as their sources print them."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
from framebench import cli

from ....conftest import ROOT
from ...figures import DLPERF
from ...table_rows import shown

KEPT = ROOT / "tests" / "data" / "vendor_tables"


def drawn(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert cli.main(["layout", *arguments]) == 0
    return capsys.readouterr().out


def tables(text: str) -> dict[str, list[dict[str, str]]]:
    parts = re.split("^## ", text, flags=re.M)[1:]
    return {part.partition("\n")[0]: shown(part) for part in parts}


@pytest.mark.parametrize("name", ["nvidia-mxnet-resnet50", "nvidia-tensorflow2-electra"])
def test_nvidias_tables_are_those_that_it_prints(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    made = tables(drawn(capsys, "nvidia", "--records", str(ROOT / "results" / "published" / name)))
    kept = {
        heading: rows
        for path in sorted((KEPT / name).glob("*.md"))
        for heading, rows in tables(path.read_text().replace(" *lint*", "")).items()
    }
    assert {*made} == {*kept}
    for heading, rows in kept.items():
        assert [[*row.items()] for row in made[heading]] == [[*row.items()] for row in rows], (
            heading
        )


def test_dlperfs_headline_tables_follow_from_its_runs(capsys: pytest.CaptureFixture[str]) -> None:
    made = tables(drawn(capsys, "dlperf", "--records", str(DLPERF)))
    rows = [(*heading.split(", "), *row.values()) for heading, some in made.items() for row in some]
    cells = {row[:-2]: dict(zip(("throughput", "speedup"), row[-2:], strict=True)) for row in rows}
    with (DLPERF / "causes.csv").open() as file:
        contradicted = {(cause["table"], cause["place"], cause["column"])
                        for cause in csv.DictReader(file)}  # fmt: skip
    compared = 0
    with (DLPERF / "published.csv").open() as file:
        for cell in csv.DictReader(file):
            place = (cell["table"], cell["place"], cell["column"])
            if (cell["nodes"], cell["devices_per_node"]) != ("4", "8") or place in contradicted:
                continue
            key = [
                cell[name]
                for name in ("model", "precision", "framework", "framework_version", "source",
                             "compiler", "input_pipeline", "variant", "batch_per_device")
            ]  # fmt: skip
            key[-2] = key[-2] or "-"
            if (found := cells.get(tuple(key))) and cell["printed"] != "-":
                digits = len(cell["printed"].partition(".")[2])
                value = float(found[cell["quantity"]].split()[0])
                assert f"{value:.{digits}f}" == cell["printed"], key
                compared += 1
    assert compared >= 10


def test_an_unknown_layout_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert cli.main(["layout", "dlpref", "--records", str(DLPERF)]) != 0
    assert "found 'dlpref'; allowed: dlperf, nvidia, or a YAML file" in capsys.readouterr().err
    own = tmp_path / "own.yaml"
    own.write_text("tables: [{of: cases, rows: [framework]}]")
    assert cli.main(["layout", str(own), "--records", str(DLPERF)]) != 0
    assert "found ['rows']" in capsys.readouterr().err
