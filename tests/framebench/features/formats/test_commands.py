"""Commands ``export`` and ``import``, with the commands that read their output."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from framebench import cli

from ....commands import read_rows
from . import samples


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_figures_go_to_another_tool_and_come_back(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "given.csv").write_text(samples.csv())
    for command in (
        "import --format csv --from given.csv --results one",
        "export --format csv --results one --to x.csv",
        "import --format csv --from x.csv --results two",
        "report --records two --results two",
        "compare --base one --candidate two --results three",
    ):
        assert cli.main(command.split()) == 0, capsys.readouterr().err
    one, two = (read_rows(folder / name / "runs" / "runs.csv") for name in ("one", "two"))
    assert one == two
    compared = read_rows(folder / "three" / "tables" / "compare.csv")
    assert {row["ratio"] for row in compared} == {"1.0"}


@pytest.mark.parametrize(
    ("command", "status", "reason"),
    [
        ("export --format latx", 1, "format: found 'latx' (did you mean latex?); allowed: bencher"),
        ("export --format csv --records x.csv --to x.csv", 1, "--to: found x.csv, a file of the"),
        ("import --format superbench", 2, "the following arguments are required: --from"),
        (
            "import --format superbench --from given.json",
            1,
            "import: given.json, line 1: ",
        ),
    ],
)
def test_what_cannot_be_transferred_is_refused(
    command: str, status: int, reason: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "given.json").write_text(json.dumps({"hello": 1}))
    (folder / "x.csv").write_text(samples.csv())
    assert cli.main(command.split()) == status
    assert reason in capsys.readouterr().err
