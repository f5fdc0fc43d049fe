"""Bisection: next version, state of each version, and final message."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from framebench import cli
from framebench.cases import matrix
from framebench.config.settings import load_settings
from framebench.config.validation import ConfigError
from framebench.features.gate import bisect, command
from framebench.features.gate.bisect import CHANGED, OPEN, SKIPPED, UNCHANGED, BisectStep
from framebench.machine import local
from framebench.records.run import RecordsError
from framebench.runs import snakemake_calls
from framebench.tables.results import group

from ....commands import git
from ....packages import write_wheel
from ...comparison.made_up_sides import paired_sides
from ...made_up_runs import changed
from ...settings import CATALOG, CONFIG

#: Verdicts by letter.
LETTERS = {"C": CHANGED, "U": UNCHANGED, "S": SKIPPED, "?": OPEN}


def looked(states: str) -> tuple[int, list[int]]:
    """Return the exit status of a bisection of versions with these states, and what it measured."""
    path = []

    def measured(version: str) -> BisectStep:
        assert int(version) not in path, "looked at twice"
        path.append(int(version))
        return BisectStep(version, LETTERS[states[int(version)]], "why", 0.93, (0.91, 0.95), 12, 40)

    names = [str(number) for number in range(len(states))]
    return bisect.search_versions(names, measured, 0.05), path


@pytest.mark.parametrize("count", [2, 3, 6, 9])
def test_every_place_of_a_change_is_found_in_the_fewest_steps(
    count: int, capsys: pytest.CaptureFixture[str]
) -> None:
    for index in range(1, count):
        status, path = looked("U" * index + "C" * (count - index))
        said = capsys.readouterr().out
        assert f"\nfirst changed in {index}: changed: 0.930 [0.910, 0.950], 12 pairs" in said
        assert f"last without the change: {index - 1}" in said
        assert (status, path[0]) == (0, count - 1), "first of all there must be a change"
        assert len(path) <= 1 + (count - 2).bit_length()


@pytest.mark.parametrize(
    ("states", "status", "ending", "path"),
    [
        ("UUUUUU", 1, "not changed: 5 is within 5.0% of 0\n", [5]),
        ("UCS", 3, "Choose a bad version that runs", [2]),
        ("USSUCC", 0, "first changed in 4: changed", [5, 2, 3, 4]),
        ("UUSSCCC", 3, "changed in 2 or 3 or 4: changed", [6, 3, 2, 4, 1]),
        ("USSSSSC", 3, "changed in 1 or 2 or 3 or 4 or 5 or 6", [6, 3, 2, 4, 1, 5]),
        ("UU?", 3, "with --pairs 40 goes on from here", [2]),
        ("UUUU?UCCC", 3, "4: cannot tell: 0.930", [8, 4]),
        ("UCUCC", 0, "first changed in 3", [4, 2, 3]),  # the bisection finds one of two changes
    ],
)
def test_each_end_says_what_it_is(
    states: str, status: int, ending: str, path: list[int],
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    assert looked(states) == (status, path)
    assert ending in capsys.readouterr().out


@pytest.mark.parametrize(
    ("factor", "state"),
    [(0.9, CHANGED), (1.1, CHANGED), (0.97, UNCHANGED), (0.95, OPEN), (1 / 0.95, OPEN)],
)
def test_a_change_is_shown_in_either_direction_or_not(factor: float, state: str) -> None:
    good, other = (group(side, None) for side in paired_sides(factor))
    step = bisect.judge("2", good, other, 0.05)
    assert step.state == state
    assert step.ratio == pytest.approx(factor, rel=0.01)
    assert step.interval is not None
    assert step.pairs == 8
    assert step.next_look == (12 if state == OPEN else None)


def test_a_failing_version_is_skipped_unless_it_is_the_known_good_one() -> None:
    good, other = paired_sides(1.0)
    dead = [
        replace(
            run, status="failed", reason="no kernel", metrics=(run.metrics[0]._replace(value=None),)
        )
        for run in other
    ]
    step = bisect.judge("2", group(good, None), group(dead, None), 0.05)
    assert (step.state, step.ratio) == (SKIPPED, None)
    assert "no kernel" in step.reason
    with pytest.raises(RecordsError, match="the good version is failed: no kernel"):
        bisect.judge("2", group(dead, None), group(good, None), 0.05)
    with pytest.raises(RecordsError, match="has no run"):
        bisect.judge("2", {}, group(good, None), 0.05)


MODEL = 'FRAMEWORK = "pytorch"\ndef make(batch_size): ...\n'


def test_versions_of_a_model_are_the_commits_that_changed_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "models").mkdir()
    file = tmp_path / "models" / "net.py"
    beside = file.with_name("layers.py")
    file.write_text(f"import layers\n{MODEL}")
    for title in ("zero", "one", "other", "two"):
        path = tmp_path / "other.txt" if title == "other" else beside
        path.write_text(f"# {title}\n")
        git(tmp_path, "add", ".")
        git(tmp_path, "commit", "-qm", title)
    monkeypatch.chdir(tmp_path / "models")
    actual = bisect.model_versions("HEAD~3:models/net.py", "HEAD:models/net.py")
    contents = [actual.side(name).files["models/layers.py"] for name in actual.names]
    assert contents == [b"# zero\n", b"# one\n", b"# two\n"]
    beside.write_text("# three\n")
    actual = bisect.model_versions("HEAD~3:models/net.py", "net.py")
    assert actual.side(actual.names[-1]).files["layers.py"] == b"# three\n"
    assert len(actual.names) == 4
    with pytest.raises(ConfigError, match=r"--bad: found HEAD:models/net\.py, which equals HEAD"):
        bisect.model_versions("HEAD:models/net.py", "HEAD:models/net.py")


USUAL = ["--package", "torch", "--good", "1.0", "--bad", "1.2", "--config", "frameworks=pytorch"]
#: Case of the suite on this machine, whose batch grows with the cores.
CASE = (
    f"pytorch resnet50_v1.5 train fp32 none 1n1g batch {2 * (local.detect().physical_cores or 1)}"
)
BAD = {
    "no package": (
        ["--package", "jax", *USUAL[2:], f"cases={CASE}"],
        "found no jax",
    ),
    "many cases": (USUAL, "--config: cases: found"),
    "no case": ([*USUAL, f"cases={CASE}1"], f"did you mean {CASE}"),
    "no version": (
        [*USUAL[:5], "1.22", *USUAL[6:], f"cases={CASE}"],
        "--good, --bad: found 1.0 and 1.22; allowed: two versions of torch",
    ),
    "no package or model": (["--good", "1", "--bad", "2"], "allowed: two versions with --package"),
    "a good model of no commit": (["--good", "x.py", "--bad", "y.py"], "REVISION:FILE.py"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_said_before_anything_starts(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for version in ("1.0", "1.1", "1.2"):
        write_wheel(tmp_path / "wheels", "torch", version, [])
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    given, message = BAD[name]
    assert cli.main(["bisect", *given, "--results", str(tmp_path / "out")]) == 4
    said = capsys.readouterr().err
    assert message in said
    assert "Traceback" not in said
    assert not (tmp_path / "out").exists()


def test_both_sides_are_cases_of_the_suite_that_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    git(tmp_path, "init", "-q")
    for title in ("one", "two"):
        Path("net.py").write_text(f"{MODEL}# {title}\n")
        git(tmp_path, "add", ".")
        git(tmp_path, "commit", "-qm", title)
    axes = {"mode": ["train"], "nodes": [1], "devices_per_node": [1], "batch_per_device": [2]}
    suite = {"axes": axes, "steps": {"warmup": 1, "timed": 5}}
    Path("one.yaml").write_text(yaml.safe_dump(suite))
    actual: list[str] = []

    def measure(suite: Path, folder: Path, config: Sequence[str], arguments: Sequence[str]) -> None:
        given = {key: text for key, _, text in (word.partition("=") for word in config)}
        settings = load_settings(
            {**CONFIG, **given, "suite": str(suite), "results": str(folder)}, CATALOG
        )
        catalog = CATALOG
        for model in settings.own_models:
            catalog = model.among(catalog)
        cases = matrix.narrow(matrix.cases(settings.suite, catalog), settings)
        actual.extend(case.variant for case in cases)
        (folder / "runs").mkdir()

    monkeypatch.setattr(snakemake_calls, "measure", measure)
    both = zip(paired_sides(0.9), ("net@1", "net@2"), strict=True)
    results = [group([changed(run, model=name) for run in runs], None) for runs, name in both]
    cases = iter(command.called(side, "net") for side in results)
    monkeypatch.setattr(command, "grouped", lambda source: next(cases))
    sides = ["--good", "HEAD~1:net.py", "--bad", "net.py"]
    arguments = [*sides, "--config", "suite=one.yaml", "--results", "out"]
    assert cli.main(["bisect", *arguments]) == 0
    assert sorted(actual) == ["base", "candidate"]
    assert re.search(r"first changed in \w+: changed: 0\.9", capsys.readouterr().out)
