"""Commands ``export`` and ``import``, with the commands that read what they wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from framebench import cli

from ....csv_rows import read_rows
from . import samples


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory of the commands."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_figures_go_to_another_tool_and_come_back(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Fail if a set cannot be imported, exported, imported again, reported and compared."""
    (folder / "given.json").write_text(samples.nvidia_report())
    for command in (
        "import --format nvidia-report --from given.json --results one"
        " --facts model=resnet50_v1.5 nodes=1",
        "export --format google-benchmark --results one --to x.json",
        "import --format google-benchmark --from x.json --results two",
        "report --records two --results two",
        "compare --base one --candidate two --results three",
    ):
        assert cli.main(command.split()) == 0, capsys.readouterr().err
    assert "repeat 1: failed: the report has nan for it" in capsys.readouterr().out
    summary = read_rows(folder / "two" / "tables" / "summary.csv")
    assert sorted(row["throughput_median"] for row in summary) == ["1200.5", "410.5"]
    compared = read_rows(folder / "three" / "tables" / "compare.csv")
    ratios = {(row["mode"], row["devices_per_node"]): row["ratio"] for row in compared}
    assert (ratios["train", "1"], ratios["train", "4"]) == ("1.0", ""), "of four it has no figure"


@pytest.mark.parametrize(
    ("command", "status", "reason"),
    [
        ("export --format latx", 1, "format: found 'latx' (did you mean latex?); allowed: bencher"),
        ("import --format pyperf", 2, "the following arguments are required: --from"),
        (
            "import --format pyperf --from given.json",
            1,
            "import: given.json, line 1, column 1: is of another format: version, benchmarks",
        ),
    ],
)
def test_what_cannot_be_transferred_is_refused(
    command: str, status: int, reason: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "given.json").write_text(json.dumps({"hello": 1}))
    assert cli.main(command.split()) == status
    assert reason in capsys.readouterr().err
