"""Results in formats of other tools, through the real workflow."""

from __future__ import annotations

import json

from ..csv_rows import read_rows
from ..framebench.features.formats import samples
from .conftest import Project


def ran(project: Project, target: str, *config: str) -> str:
    done = project.run("--cores", "1", target, "--config", *config)
    assert done.returncode == 0, done.stdout
    return str(done.stdout)


def test_figures_go_to_another_tool_and_come_back(project: Project) -> None:
    """Fail if a set cannot be imported, exported for another tool, re-imported, reported and
    compared. Nothing is measured."""
    folder = project.folder
    (folder / "given.json").write_text(samples.nvidia_report())
    facts = "facts={model: resnet50_v1.5, nodes: 1}"
    ran(project, "import", "format=nvidia-report", "from=given.json", "results=one", facts)
    said = ran(
        project, "export", "format=google-benchmark", "records=one", "results=one", "to=x.json"
    )
    assert "repeat 1: failed: the report has nan for it" in said
    ran(project, "import", "format=google-benchmark", "from=x.json", "results=two")
    ran(project, "report", "records=two", "results=two")
    summary = read_rows(folder / "two" / "tables" / "summary.csv")
    assert sorted(row["throughput_median"] for row in summary) == ["1200.5", "410.5"]
    ran(project, "compare", "base=one", "candidate=two", "results=three")
    compared = read_rows(folder / "three" / "tables" / "compare.csv")
    ratios = {(row["mode"], row["devices_per_node"]): row["ratio"] for row in compared}
    assert (ratios["train", "1"], ratios["train", "4"]) == ("1.0", ""), "of four it has no figure"
    assert not (folder / "results").exists() or not project.records()


def test_what_cannot_be_transferred_ends_with_one_message(project: Project) -> None:
    (project.folder / "given.json").write_text(json.dumps({"hello": 1}))
    wrong = [
        ("export", "format=latx", "format: found 'latx' (did you mean latex?); allowed: bencher, "),
        ("export", "from=given.json", "from: found 'given.json' for export; allowed with the"),
        ("import", "format=pyperf", "import: needs a file or a folder: --config from=PATH"),
    ]
    for target, config, expected in wrong:
        refused = project.run("--cores", "1", target, "--config", config)
        assert refused.returncode != 0
        assert expected in refused.stdout, refused.stdout
        assert "Traceback" not in refused.stdout
    foreign = project.run(
        "--cores", "1", "import", "--config", "format=pyperf", "from=given.json", "results=r"
    )
    said = "import: given.json, line 1, column 1: is of another format: version, benchmarks missing"
    assert foreign.returncode == 1
    last = foreign.stdout.rstrip().splitlines()[-1]
    assert last.startswith(f"framebench: {said}"), "something follows the refusal"
