"""Gate: verdict on each case, exit status, and output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pandas as pd
import pytest
from framebench import cli
from framebench.config.catalog import own_model
from framebench.features.gate import command, decisions
from framebench.features.gate.decisions import Decision
from framebench.records.run import Flag, Run
from framebench.runs import snakemake_calls
from framebench.tables.results import group

from ....commands import git
from ...comparison.made_up_sides import PAIR_NOISE, SEVEN_THROUGHPUTS, paired_sides, write_set
from ...made_up_runs import changed, repeats


def note_of(decided_cases: Sequence[Decision], status: int) -> str:
    lines = decisions.lines(decided_cases, status)
    return decisions.note("candidate against base, margin 5.0%", status, lines)


def decided(base: Sequence[Run], candidate: Sequence[Run], at_looks: bool = True) -> list[Decision]:
    return decisions.decide(group(base, None), group(candidate, None), 0.05, at_looks)


@pytest.mark.parametrize(
    ("factor", "apart", "verdict", "status"),
    [
        (1.0, 1, "within the margin", 0),
        (1.3, 1, "within the margin", 0),  # a faster candidate passes
        (0.97, 1, "within the margin", 0),  # slower by less than the margin
        (0.9, 1, "regression", 1),
        (0.94, 20, "cannot tell", 3),
        (0.95, 1, "cannot tell", 3),
    ],
)
def test_a_verdict_is_shown_or_it_is_unknown(
    factor: float, apart: float, verdict: str, status: int
) -> None:
    actual = decided(*paired_sides(factor, apart))
    assert [decision.verdict for decision in actual] == [verdict]
    assert actual[0].estimate is not None
    assert actual[0].estimate.pairs == len(PAIR_NOISE), "the drift was not taken out"
    assert decisions.status(actual) == status


def test_of_a_metric_of_which_less_is_better_a_larger_value_is_a_regression() -> None:
    base, candidate = (
        [replace(run, metrics=(run.metrics[0]._replace(better="lower"),)) for run in side]
        for side in paired_sides(1.1)
    )
    assert [decision.verdict for decision in decided(base, candidate)] == ["regression"]
    assert [decision.verdict for decision in decided(candidate, base)] == ["within the margin"]


def test_what_the_candidate_lost_or_computes_otherwise_is_broken() -> None:
    base, candidate = paired_sides(1.0)
    failed = [
        replace(changed(run, throughput=None), status="failed", reason="no") for run in candidate
    ]
    for lost, why in ((failed, "the candidate is failed: no"), ([], "has no run of it")):
        actual = decided(base, lost)
        assert actual[0].verdict == "broken"
        assert why in actual[0].reason
        assert decisions.status(actual) == 4
    other = [replace(run, flags=(Flag("incorrect", "off"),)) for run in candidate]
    assert [decision.verdict for decision in decided(base, other)] == ["broken"]
    wrong_before = [replace(run, flags=(Flag("incorrect", "off"),)) for run in base]
    both = decided(wrong_before, failed)
    assert decisions.status(both) == 4, "a gate of which both sides fail can never tell"
    for text in ("".join(decisions.lines(both, 4)), decisions.junit(both)):
        assert "the candidate is failed: no" in text
    nowhere = [[replace(run, status="unsupported") for run in some] for some in (failed, failed)]
    assert [decision.verdict for decision in decided(*nowhere)] == ["not compared"]
    also = decided([*base, *paired_sides(1, model="b")[0]], paired_sides(0.8, model="b")[1])
    assert decisions.status(also) == 1, "a regression that is shown is told first"


def test_a_case_of_the_candidate_alone_decides_nothing() -> None:
    base, candidate = paired_sides(1.0)
    actual = decided(base, [*candidate, *paired_sides(1, model="new")[1]])
    assert sorted(decision.verdict for decision in actual) == ["not compared", "within the margin"]
    assert decisions.status(actual) == 0
    assert decisions.status(decided([], candidate)) == 3
    assert decisions.status([]) == 3


def test_sets_that_were_not_measured_in_pairs_are_decided_too() -> None:
    actual = decided(
        repeats(*SEVEN_THROUGHPUTS),
        repeats(*(0.9 * value for value in SEVEN_THROUGHPUTS)),
    )
    assert (actual[0].verdict, actual[0].estimate and actual[0].estimate.pairs) == ("regression", 0)
    same = decided(repeats(*SEVEN_THROUGHPUTS), repeats(*SEVEN_THROUGHPUTS))
    assert same[0].verdict == "within the margin"


def test_a_note_has_at_most_ten_lines_and_says_what_to_do() -> None:
    base, candidate = [], []
    for number, factor in enumerate((0.8, 0.7, 0.94, 0.95)):
        for all_runs, some in zip(
            (base, candidate),
            paired_sides(factor, 20 if factor == 0.94 else 1, model=f"m{number}|\n<b>"),
            strict=True,
        ):
            all_runs += some
    for number in range(12):
        base += paired_sides(1.0, model=f"lost {number}")[0]
    actual = decided(base, candidate, at_looks=False)
    text = note_of(actual, decisions.status(actual))
    assert len(text.splitlines()) <= 10, text
    assert text.startswith("**Framebench gate: regression**: candidate against base, margin 5.0%")
    assert "ratio 0.70" in text.split("- ")[1], "the worst comes first"
    assert "- and 13 more, see `tables/gate.md`" in text
    assert "<b>" not in text
    open_note = note_of([one for one in actual if one.verdict == "cannot tell"], 3)
    assert "To decide: at least 12 pairs (`--pairs`), a larger margin" in open_note
    assert "nothing could be compared" in note_of([], 3)


def test_junit_has_a_case_each_with_what_is_wrong() -> None:
    pairs_of = {name: paired_sides(factor, model=name) for name, factor in
                (("good", 1.0), ("slow", 0.9), ("open", 0.95), ("lost\x1b", 1.0))}  # fmt: skip
    base = [run for entry, _ in pairs_of.values() for run in entry]
    candidate = [
        run for name, (_, entry) in pairs_of.items() if "lost" not in name for run in entry
    ]
    root = ElementTree.fromstring(
        decisions.junit(decided(base, candidate, at_looks=False)).encode()
    )
    suite = root[0]
    assert suite.attrib["tests"] == "4"
    counts = [suite.attrib[name] for name in ("failures", "errors", "skipped")]
    assert counts == ["1", "1", "1"]
    inner = {case.attrib["name"].split()[1]: case[0].tag for case in suite}
    assert inner == {"good": "system-out", "slow": "failure", "open": "skipped",
                     "lost\\x1b": "error"}  # fmt: skip
    assert (
        ElementTree.fromstring(decisions.broken_junit("a\x00b").encode())[0].attrib["errors"] == "1"
    )


def test_the_note_and_junit_name_flags_and_step_times() -> None:
    base, candidate = (
        [replace(run, step_seconds=(seconds,) * 3, wall_seconds=60.0) for run in some]
        for seconds, some in zip((0.1, 0.125), paired_sides(0.95), strict=True)
    )
    noisy = replace(candidate[3], flags=(Flag("disturbed", "others used its cores"),))
    actual = decided(base, [*candidate[:3], noisy, *candidate[4:]], at_looks=False)
    text = note_of(actual, 3)
    assert "disturbed (cases: 1)" in text
    assert "throughput ratio 0.95" in text
    assert "(100 ms -> 125 ms per step)" in text
    case = ElementTree.fromstring(decisions.junit(actual).encode())[0][0]
    assert "flags: disturbed" in (case.findtext("system-out") or "")


def gate(*arguments: str, results: Path) -> int:
    return cli.main(["gate", *arguments, "--results", str(results)])


def test_records_that_there_are_need_no_measuring(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = write_set(tmp_path / "base", 1.0)
    slow = write_set(tmp_path / "slow", 0.9, 8)
    out = tmp_path / "out"
    assert gate("--base", str(base), "--candidate", str(slow), results=out) == 1
    assert "1 regression" in capsys.readouterr().out
    table = pd.read_csv(out / "tables" / "gate.csv")
    assert table["verdict"].tolist() == ["regression"]
    assert table["pairs"].tolist() == [7]
    assert (out / "gate.md").read_text().startswith("**Framebench gate: regression**")
    assert ElementTree.parse(out / "gate.xml").getroot()[0].attrib["failures"] == "1"
    wide = ["--base", str(base), "--candidate", str(slow), "--fail-on", "15%"]
    assert gate(*wide, results=out) == 0


BAD = {
    "no such side": (["--base", "default", "--candidate", "defalt"], "did you mean default"),
    "two kinds": (["--base", "default", "--candidate", "."], "two of one kind"),
    "no file": (["--base", "default", "--candidate", "none.yaml"], "found 'none.yaml'"),
    "no model": (["--base", "a.py", "--candidate", "b.py"], "No such file"),
    "no commit": (["--base", "x:a.py", "--candidate", "b.py"], "git says"),
    "an option as commit": (["--base=--output=x:a.py", "--candidate", "b.py"], "git says"),
    "a key of its own": (
        ["--base", "default", "--candidate", "default", "--config", "results=x"],
        "allowed: --results",
    ),
    "no records": (["--base", "@", "--candidate", "@"], "holds no record"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_said_once_and_is_no_regression(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given, message = BAD[name]
    folder = tmp_path / "empty"
    folder.mkdir()
    here = [str(folder) if word == "@" else word for word in given]
    assert gate(*here, results=tmp_path / "out") == 4
    said = capsys.readouterr().err
    assert message in said
    assert "Traceback" not in said


def test_an_error_of_our_own_is_no_regression_and_shows_its_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decisions, "decide", lambda *_: 1 / 0)
    base = str(write_set(tmp_path / "base", 1.0))
    assert gate("--base", base, "--candidate", base, results=tmp_path / "out") == 4
    assert "in run_gate" in capsys.readouterr().err
    assert "**Framebench gate: broken**" in (tmp_path / "out" / "gate.md").read_text()


def test_each_gate_has_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured = []

    def measure(suite: Path, folder: Path, *given: object) -> None:
        measured.append(folder)
        (folder / "runs").mkdir(exist_ok=True)

    monkeypatch.setattr(snakemake_calls, "measure", measure)
    monkeypatch.setattr(command, "grouped", lambda source: {})
    usual, other = command.MeasuredSide("default"), command.MeasuredSide("other", {"tuned": True})
    for pairs, both in ((6, (usual, other)), (9, (usual, other)), (6, (other, usual))):
        command.measure(*both, {"axes": {}}, {"at_most": pairs}, [], [], tmp_path, [])
    command.measure(usual, other, {"axes": {"nodes": 1}}, {}, [], [], tmp_path, [])
    first, more, swapped, another = measured
    assert first == more, "more pairs of the same sides do not go on"
    assert len({first, swapped, another}) == 3
    assert first.name.startswith("other-")


def test_a_model_of_a_commit_is_what_git_has_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(tmp_path, "init", "-q")
    folder, library = tmp_path / "nets", tmp_path / "parts"
    for path in (folder, library):
        path.mkdir()
    (folder / "__init__.py").touch()
    file, beside = folder / "my.py", library / "layers.py"
    file.write_text(
        'FRAMEWORK = "pytorch"\nfrom parts.layers import Stack\ndef make(batch_size): ...\n'
    )
    beside.write_text("Stack = 'old'\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "one")
    beside.write_text("Stack = 'new'\n")
    monkeypatch.chdir(folder)
    base, candidate, again = (
        command.model("--base", text) for text in ("HEAD:nets/my.py", "my.py", "HEAD:./my.py")
    )
    name = str(beside.relative_to(tmp_path))
    assert [side.files[name] for side in (base, candidate)] == [
        b"Stack = 'old'\n",
        b"Stack = 'new'\n",
    ]
    assert base.model != candidate.model
    assert base.model == again.model
    written = candidate.written(tmp_path / "copy")["model"]
    assert own_model(written).name == candidate.model
    assert git(tmp_path, "diff", "--cached", "--name-only") == "", "the user's index is changed"


def test_an_interrupted_gate_says_how_it_goes_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "run_gate", interrupted)
    assert gate("--base", "a", "--candidate", "b", results=tmp_path) == 130
    assert "the same command continues" in capsys.readouterr().err
    assert not list(tmp_path.iterdir()), "nothing is broken"
