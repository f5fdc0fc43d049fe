"""Bisection: next version, state of each version, and final message."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from framebench.cases import matrix
from framebench.config.catalog import load_catalog
from framebench.config.settings import load_settings
from framebench.config.validation import ConfigError
from framebench.environments import other_version
from framebench.environments.venvs import read_environment_file
from framebench.features.gate import measuring
from framebench.features.gate.bisect import candidates, command, messages, steps, versions
from framebench.features.gate.bisect.search import (
    CHANGED,
    OPEN,
    SKIPPED,
    UNCHANGED,
    BisectStep,
    most_steps,
    search,
)
from framebench.features.gate.bisect.steps import BisectSetup
from framebench.machine import local
from framebench.records.run import RecordsError
from framebench.runs import snakemake_calls
from framebench.statistics.margins import LEVEL
from framebench.tables.grouping import group

from ....conftest import ROOT
from ...comparison.made_up_sides import paired_sides
from ...made_up_runs import changed
from ...settings import CONFIG
from .bisections import Bisections, bisections

CATALOG = load_catalog(ROOT)
ASKED = messages.BisectRequest("torch", "0", "9", "pytorch x", 0.05)


def looked(states: Sequence[str]) -> tuple[Any, list[str]]:
    """Return the end of a search over versions 0, 1, .. with these states, and the
    versions tested."""
    names, known = [str(number) for number in range(len(states))], dict[str, str]()
    while (now := search(names, known)).following:
        assert now.following not in known, "looked at twice"
        assert now.path == tuple(known), "it does not go on where it was"
        known[now.following] = states[int(now.following)]
    return now, [*known]


@pytest.mark.parametrize("count", range(2, 18))
def test_every_place_of_a_change_is_found_in_the_fewest_steps(count: int) -> None:
    names = [str(number) for number in range(count)]
    for index in range(1, count):
        states = [UNCHANGED] * index + [CHANGED] * (count - index)
        actual, path = looked(states)
        assert (actual.before, actual.changed) == (str(index - 1), str(index))
        assert path[0] == str(count - 1), "first of all there must be a change"
        assert len(path) <= most_steps(names)
    assert most_steps([str(number) for number in range(9)]) == 4


def test_a_figure_that_changed_and_changed_back_has_one_of_its_changes_named() -> None:
    for states in ("UCUCC", "UCCUUUCUC", "UUCUCUC"):
        named = [CHANGED if state == "C" else UNCHANGED for state in states]
        actual, _ = looked(named)
        assert int(actual.changed) == int(actual.before) + 1
        assert named[int(actual.before)] == UNCHANGED
        assert named[int(actual.changed)] == CHANGED


def test_without_a_change_at_the_end_nothing_is_looked_for() -> None:
    actual, path = looked([UNCHANGED] * 6)
    assert (actual.changed, path) == ("", ["5"])
    assert messages.status(actual) == 1
    actual, path = looked([UNCHANGED, CHANGED, SKIPPED])
    assert (actual.changed, path, messages.status(actual)) == ("", ["2"], 3)


def test_what_is_skipped_is_gone_around_and_named_where_it_may_be_the_one() -> None:
    actual, path = looked([UNCHANGED, SKIPPED, SKIPPED, UNCHANGED, CHANGED, CHANGED])
    assert (actual.before, actual.changed, actual.skipped) == ("3", "4", ())
    assert messages.status(actual) == 0
    actual, path = looked([UNCHANGED, UNCHANGED, SKIPPED, SKIPPED, CHANGED, CHANGED, CHANGED])
    assert (actual.before, actual.changed, actual.skipped) == ("1", "4", ("2", "3"))
    assert messages.status(actual) == 3, "one of three is no answer"
    all_skipped, path = looked([UNCHANGED, *[SKIPPED] * 5, CHANGED])
    assert len(path) == 6
    assert len(all_skipped.skipped) == 5


def test_what_is_unknown_waits_for_more() -> None:
    names = [str(number) for number in range(9)]
    assert search(names, {"8": OPEN}).open == "8"
    waiting = search(names, {"8": CHANGED, "4": OPEN, "6": UNCHANGED})
    assert (waiting.open, waiting.following) == ("4", "")
    assert messages.status(waiting) == 3
    assert search(names, {"8": CHANGED, "4": CHANGED}).following == "2", "it does not go on"


def judged(factor: float, slower: bool | None = None, apart: float = 1) -> BisectStep:
    sides = [group(paired_side, None) for paired_side in paired_sides(factor, apart)]
    return steps.judge("2", *sides, 0.05, slower)


@pytest.mark.parametrize(
    ("factor", "slower", "state"),
    [
        (0.9, None, CHANGED),
        (1.1, None, CHANGED),
        (1.0, None, UNCHANGED),
        (0.97, None, UNCHANGED),
        (0.95, None, OPEN),
        (1 / 0.95, None, OPEN),
        (0.9, True, CHANGED),
        (1.1, True, UNCHANGED),  # a change in the other direction
        (1.1, False, CHANGED),
        (0.9, False, UNCHANGED),
    ],
)
def test_a_change_is_shown_in_either_direction_or_not(
    factor: float, slower: bool | None, state: str
) -> None:
    step = judged(factor, slower)
    assert step.state == state
    assert step.ratio == pytest.approx(factor, rel=0.01)
    assert step.interval is not None
    assert step.pairs == 8


def test_versions_in_between_are_judged_by_half_of_a_large_change() -> None:
    assert steps.halfway(BisectStep("9", CHANGED, ratio=0.36), 0.05) == pytest.approx(0.4)
    assert steps.halfway(BisectStep("9", CHANGED, ratio=1 / 0.36), 0.05) == pytest.approx(0.4)
    assert steps.halfway(BisectStep("9", CHANGED, ratio=0.92), 0.05) == 0.05
    sides = [group(paired_side, None) for paired_side in paired_sides(0.9, 20)]
    assert steps.judge("2", *sides, 0.05, True).state == OPEN
    assert steps.judge("2", *sides, 0.4, True).state == UNCHANGED


@pytest.mark.parametrize(
    ("sampled", "right", "wrong"),
    [
        (Bisections("normal", 0.9), (0.97, 1), (0, LEVEL)),
        (Bisections("drift", 2.0), (0.97, 1), (0, LEVEL)),
        (Bisections("busy", 0.3), (0.95, 1), (0, LEVEL)),
        (Bisections("drift", 1.0), (0, 0), (0, LEVEL)),
    ],
    ids=str,
)
def test_a_bisection_names_the_right_version_as_often_as_promised(
    sampled: Bisections, right: tuple[float, float], wrong: tuple[float, float]
) -> None:
    actual = bisections(np.random.default_rng(0), sampled, 200)
    assert right[0] <= actual["right"] <= right[1] + 1e-9
    assert wrong[0] <= actual["wrong"] <= wrong[1]


def test_what_scatters_says_how_many_pairs_it_takes() -> None:
    step = judged(0.94, apart=20)
    assert step.state == OPEN
    assert step.needed is not None
    assert step.needed > 8
    actual = search(["0", "2"], {"2": OPEN})
    lines = messages.ending(actual, {"2": step}, replace_asked("2"))
    assert lines[0].startswith("cannot tell of 2: cannot tell: 0.9")
    assert lines[1] == f"The same command with --pairs {step.needed} goes on from here."
    limit = judged(0.95)
    assert limit.needed is None
    assert "choose another margin" in messages.ending(actual, {"2": limit}, replace_asked("2"))[1]


def replace_asked(bad: str) -> messages.BisectRequest:
    return replace(ASKED, bad=bad)


def test_a_version_that_fails_is_skipped_and_a_good_one_must_not() -> None:
    good, other = paired_sides(1.0)
    dead = [
        replace(
            run, status="failed", reason="no kernel", metrics=(run.metrics[0]._replace(value=None),)
        )
        for run in other
    ]
    step = steps.judge("2", group(good, None), group(dead, None), 0.05, None)
    assert (step.state, step.ratio) == (SKIPPED, None)
    assert "no kernel" in step.reason
    with pytest.raises(RecordsError, match="the good version is failed: no kernel"):
        steps.judge("2", group(dead, None), group(good, None), 0.05, None)
    with pytest.raises(RecordsError, match="has no run"):
        steps.judge("2", {}, group(good, None), 0.05, None)


def test_versions_of_a_model_are_judged_though_their_names_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    actual = [
        group([changed(run, model=name) for run in runs], None)
        for runs, name in zip(paired_sides(0.9), ("net@1", "net@2"), strict=True)
    ]
    monkeypatch.setattr(measuring, "results", lambda folder: tuple(actual))
    versions_of = candidates.ModelVersions("net", ["1", "2"], {}, {})
    bench = BisectSetup(versions_of, "toy x", {}, 0.05, 12, [], [], tmp_path)
    assert bench.judge("2", None).state == CHANGED


@dataclass(frozen=True)
class Scripted(BisectSetup):
    """Bisection that returns listed answers, and notes its questions."""

    answers: Mapping[str, BisectStep] = field(default_factory=dict)
    asked: list[tuple[str, bool | None]] = field(default_factory=list)
    margins: list[float] = field(default_factory=list)

    def look(self, version: str, slower: bool | None) -> BisectStep:
        self.asked.append((version, slower))
        self.margins.append(self.margin)
        return self.answers[version]


def scripted(folder: Path, answers: Sequence[BisectStep]) -> Scripted:
    actual: Any = None
    told = {answer.version: answer for answer in answers}
    return Scripted(actual, "toy x", {}, 0.05, 12, [], [], folder, told)


def test_the_end_names_the_version_with_its_figure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ["0", "1", "2", "3", "4"]
    answers = [
        BisectStep("4", CHANGED, "", 0.93, (0.91, 0.95), 12),
        BisectStep("2", SKIPPED, "cannot be installed: no wheel"),
        BisectStep("1", UNCHANGED, "", 1.0, (0.99, 1.01), 12),
        BisectStep("3", UNCHANGED, "", 0.99, (0.98, 1.01), 12, moved="numpy 1 -> 2"),
    ]
    bench = scripted(tmp_path, answers)
    asked = replace(ASKED, bad="4")
    assert command.go(bench, names, asked) == 0
    said = capsys.readouterr().out
    assert "\nfirst changed in 4: changed: 0.930 [0.910, 0.950], 12 pairs\n" in said, said
    assert "3: not changed: 0.990 [0.980, 1.010], 12 pairs (with numpy 1 -> 2)" in said
    assert bench.asked[0] == ("4", None)
    assert {slower for _, slower in bench.asked[1:]} == {True}, "another change was looked for"
    table = pd.read_csv(tmp_path / "tables" / "bisect.csv")
    assert table["version"].tolist() == [4, 2, 1, 3]
    assert table["verdict"].tolist() == [CHANGED, SKIPPED, UNCHANGED, UNCHANGED]
    note = (tmp_path / "bisect.md").read_text()
    assert note.startswith("**Framebench bisect: torch 0 to 4**")
    assert "- 2: skipped: cannot be installed: no wheel" in note


def test_other_ends_say_what_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = replace(ASKED, bad="2")
    same = scripted(tmp_path, [BisectStep("2", UNCHANGED, "", 0.99, (0.97, 1.01), 12)])
    assert command.go(same, ["0", "1", "2"], asked) == 1
    assert "not changed: 2 is within 5.0% of 0: 0.990 [0.970, 1.010]" in capsys.readouterr().out
    dead = scripted(tmp_path, [BisectStep("2", SKIPPED, "the candidate is failed: x")])
    assert command.go(dead, ["0", "1", "2"], asked) == 3
    assert "choose a bad version that runs" in capsys.readouterr().out
    gap = scripted(
        tmp_path,
        [
            BisectStep("2", CHANGED, "", 1.4, (1.25, 1.5), 12),
            BisectStep("1", SKIPPED, "cannot be installed: y"),
        ],
    )
    assert command.go(gap, ["0", "1", "2"], asked) == 3
    said = capsys.readouterr().out
    assert "changed in 1 or 2: changed: 1.400" in said
    assert gap.asked[1] == ("1", False), "the bad one is faster"
    assert gap.margins == [0.05, pytest.approx(1 - 1.4**-0.5)]
    assert "margin 5.0%, and 15.5% for" in (tmp_path / "bisect.md").read_text()


def test_versions_are_those_between_both() -> None:
    known = ["1.0", "1.1", "1.2", "1.3"]
    assert versions.between("1.0", "1.2", known, "x") == ["1.0", "1.1", "1.2"]
    for good, bad, message in (
        ("1.2", "1.1", "comes after the good"),
        ("1.1", "1.1", "comes after the good"),
        ("1.1", "1.22", "did you mean 1.2"),
        ("0.9", "1.1", "--good: found '0.9'"),
    ):
        with pytest.raises(ConfigError, match=message):
            versions.between(good, bad, known, "x")
    assert versions.listed("1.0, 1.1") == ["1.0", "1.1"]
    for wrong in ("1.0,,1.1", "1.0,1.0", "../x", ""):
        with pytest.raises(ConfigError, match="--versions: found"):
            versions.listed(wrong)
    assert [versions.is_early(text) for text in ("2.1.0rc1", "2.1.0.dev3", "2.1.0")] == [
        *(True, True, False)
    ]


def git(folder: Path, *arguments: str) -> None:
    options = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", *options, *arguments], cwd=folder, check=True, capture_output=True)


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
    actual = candidates.models("HEAD~3:models/net.py", "HEAD:models/net.py", (), CATALOG)
    assert [actual.moved(name) for name in actual.names[1:]] == ["commit 'one'", "commit 'two'"]
    contents = [actual.side(name).files["models/layers.py"] for name in actual.names]
    assert contents == [b"# zero\n", b"# one\n", b"# two\n"]
    good, case = actual.names[0], "pytorch {} train fp32 none 1n1g batch 2"
    names = [actual.side(name).name for name in actual.names]
    assert actual.case(actual.names[2], case.format(names[0])) == case.format(names[2])
    assert actual.case(good, case.format(names[0])) == case.format(names[0])
    beside.write_text("# three\n")
    actual = candidates.models("HEAD~3:models/net.py", "net.py", (), CATALOG)
    assert actual.side(actual.names[-1]).files["layers.py"] == b"# three\n"
    assert len(actual.names) == 4
    with pytest.raises(ConfigError, match=r"--bad: found net\.py, which is as net\.py"):
        candidates.models("net.py", "net.py", (), CATALOG)


def test_variables_and_pins_change_one_after_the_other(tmp_path: Path) -> None:
    actual = candidates.variables("A=1,B=2", "B=3,C=x")
    assert actual.names == ["A=1,B=2", "without-A", "B=3", "C=x"]
    sets = [actual.side(name).settings["variables"] for name in actual.names]
    assert sets == [{"A": "1", "B": "2"}, {"B": "2"}, {"B": "3"}, {"B": "3", "C": "x"}]
    assert candidates.variables("default", "A=1").side("default").settings == {}
    files = []
    for name, pins in (("a", ["torch==1", "numpy==2", "six==1"]), ("b", ["torch==2", "numpy==3"])):
        files.append(tmp_path / f"{name}.yaml")
        text = f"dependencies: [python=3.11, {{pip: {pins}}}]\n".replace("'", "")
        files[-1].write_text(text)
    good, bad = (read_environment_file(path, hashed=False) for path in files)
    names = candidates.Environments.changes(good, bad)
    assert names == ["numpy==3", "six==none", "torch==2"]
    mixed = tmp_path / "mixed.yaml"
    other_version.mix(good, bad, {"numpy", "six"}, mixed)
    pins = other_version.pins(read_environment_file(mixed, hashed=False))
    assert pins == {"torch": "1", "numpy": "3"}


def test_what_moved_beside_a_version_is_named(tmp_path: Path) -> None:
    files = []
    for name, pins in (("a", ["torch==1.0", "numpy==2.0"]), ("b", ["torch==1.1", "sympy==1.0"])):
        path = tmp_path / f"{name}.yaml"
        path.write_text(f"dependencies: [python=3.11, {{pip: {pins}}}]\n".replace("'", ""))
        files.append(read_environment_file(path, hashed=False))
    actual = other_version.moved(*files)
    assert actual == {"numpy": "2.0 -> none", "sympy": "none -> 1.0", "torch": "1.0 -> 1.1"}


USUAL = ["--framework", "pytorch", "--package", "torch", "--good", "1", "--bad", "3"]
#: Case of the suite on this machine, whose batch grows with the cores.
CASE = (
    f"pytorch resnet50_v1.5 train fp32 none 1n1g batch {2 * (local.detect().physical_cores or 1)}"
)
WITH = ["--case", CASE.replace("pytorch", "jax").replace("none", "jit")]
BAD = {
    "no framework": (["--framework", "pytorc", *USUAL[2:]], "did you mean pytorch"),
    "no package": (["--framework", "pytorch", "--package", "jax", *USUAL[4:]], "found no jax"),
    "many cases": (USUAL, "--case: found none; allowed: one of the"),
    "no case": ([*USUAL, "--case", f"{CASE}1"], f"did you mean {CASE}"),
    "no version": ([*USUAL, "--case", CASE, "--versions", "1,2"], "--bad: found '3'"),
    "a key of its own": ([*USUAL, "--config", "cases=x"], "allowed: --case"),
    "no sides": (["--good", "1", "--bad", "2", "--framework", "jax", *WITH], "two versions (with"),
    "versions of no package": (
        ["--good", "A=1", "--bad", "A=2", "--versions", "1", "--framework", "jax", *WITH],
        "--versions: found without --package",
    ),
    "two models": (
        ["--good", "x.py", "--bad", "y.py", "--config", "model=x.py"],
        "--config: found 'model=x.py",
    ),
    "no margin": ([*USUAL, "--margin", "0"], "above 0"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_said_before_anything_starts(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given, message = BAD[name]
    assert command.main([*given, "--results", str(tmp_path / "out")]) == 4
    said = capsys.readouterr().err
    assert message in said
    assert "Traceback" not in said
    assert not (tmp_path / "out").exists()


def test_a_folder_is_of_one_bisection(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "bisect.json").write_text('{"framework": "jax"}')
    arguments = [*USUAL, "--case", CASE, "--versions", "1,2,3", "--results", str(folder)]
    assert command.main(arguments) == 4
    assert "of another bisection" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("good", "bad", "given"),
    [
        ("HEAD~1:net.py", "net.py", []),
        ("default", "A=1", ["--config", "model=net.py"]),
    ],
)
def test_both_sides_are_cases_of_the_suite_that_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, good: str, bad: str, given: list[str]
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
        changed = {key: text for key, _, text in (word.partition("=") for word in config)}
        settings = load_settings(
            {**CONFIG, **changed, "suite": str(suite), "results": str(folder)}, CATALOG
        )
        catalog = CATALOG
        for model in settings.own_models:
            catalog = model.among(catalog)
        cases = matrix.narrow(matrix.cases(settings.suite, catalog), settings)
        actual.extend(case.variant for case in cases)
        raise snakemake_calls.MeasuringFailed("no more")

    monkeypatch.setattr(snakemake_calls, "measure", measure)
    given = given or ["--config"]
    arguments = ["--good", good, "--bad", bad, *given, "suite=one.yaml", "--results", "out"]
    assert command.main(arguments) == 4
    assert sorted(actual) == ["base", "candidate"]
