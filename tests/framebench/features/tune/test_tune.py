"""Tuning: which combinations are tried within a budget, their order, and the message about the
best."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from framebench.config.catalog import load_catalog
from framebench.config.own_model import OwnModel, own_model
from framebench.config.validation import ConfigError
from framebench.config.yaml_files import read_mapping
from framebench.features.tune import command
from framebench.features.tune.search import Search
from framebench.records.run import Flag
from framebench.runs import snakemake_calls
from framebench.tables import grouping
from framebench.tables.results import CaseResult

from ....conftest import ROOT
from ...made_up_runs import run

COMBINATIONS = [(p, c) for p in ("fp32", "bf16", "fp8") for c in ("none", "inductor")]
#: Seconds of a run.
TAKES = 10.0


class Machine:
    """A machine on which each run takes TAKES seconds."""

    def __init__(self, figure: Callable[[int, str, str], float | None]) -> None:
        self.figure, self.now, self.calls = figure, 0.0, list[list[tuple[int, str, str]]]()
        self.repeats: dict[tuple[int, str, str], int] = {}

    def begin(self, batch: int) -> None:
        self.now += TAKES
        self.repeats[batch, *COMBINATIONS[0]] = 1

    def measure(
        self, batches: Sequence[int], names: Sequence[str], repeats: int, seconds: float | None
    ) -> list[CaseResult]:
        end = self.now + (math.inf if seconds is None else seconds)
        known = {
            str(self.run(batch, *combination, 1).case): (batch, *combination)
            for batch in batches
            for combination in COMBINATIONS
        }
        chosen = [known[name] for name in names] if names else [*known.values()]
        self.calls.append(chosen)
        for item in chosen:
            takes = TAKES * (repeats - self.repeats.get(item, 0))
            if self.now + takes <= end:
                self.now += takes
                self.repeats[item] = repeats
        runs = [
            self.run(*item, number)
            for item, count in self.repeats.items()
            for number in range(1, count + 1)
        ]
        return [*grouping.group(runs, None).values()]

    def run(self, batch: int, precision: str, compiler: str, repeat: int) -> object:
        flags = (Flag("incorrect", ""),) if (precision, compiler) == ("bf16", "inductor") else ()
        figure = self.figure(batch, precision, compiler)
        return run(
            figure, batch_per_device=batch, precision=precision, compiler=compiler,
            repeat=repeat, wall_seconds=TAKES, flags=flags if figure else (),
        )  # fmt: skip


def figure(batch: int, precision: str, compiler: str) -> float | None:
    """Return a throughput that grows up to a batch of 8; 64 does not fit."""
    if precision == "fp8" or batch >= 64:
        return None
    factor = {"fp32": 1.0, "bf16": 1.8}[precision] * {"none": 1.0, "inductor": 1.2}[compiler]
    return 100.0 * factor * min(batch, 8)


def test_batches_grow_while_they_help_and_the_best_are_repeated() -> None:
    machine = Machine(figure)
    actual = Search(machine.begin, machine.measure, lambda: machine.now, 10_000).run(
        [1, 2, 4, 8, 16, 32, 64]
    )
    best = actual[0].case
    assert (best.precision, best.compiler, best.batch_per_device) == ("bf16", "none", 8)
    assert len(actual[0].values) == 6
    assert [len(call) for call in machine.calls] == [6, 3, 3, 3, 3, 3, 3]
    assert {result.case.batch_per_device for result in actual} == {1, 2, 4, 8, 16, 32}
    assert not actual[-1].throughput


@pytest.mark.parametrize("budget", [60, 150, 400, 1000])
def test_a_budget_is_kept(budget: float) -> None:
    machine = Machine(figure)
    actual = Search(machine.begin, machine.measure, lambda: machine.now, budget).run(
        [1, 2, 4, 8, 16, 32, 64]
    )
    assert machine.now <= budget
    assert actual[0].throughput


def test_the_best_is_told_as_a_call_and_as_lines_of_a_script(tmp_path: Path) -> None:
    machine = Machine(figure)
    actual = Search(machine.begin, machine.measure, lambda: machine.now, 150).run([1])
    declaration = load_catalog(ROOT).frameworks["pytorch"]
    own_model = OwnModel("my_model.py", {"name": "my_model@1"})
    config = ["packages={pytorch: [timm==1.0.31]}", f"cases={actual[0].case}"]
    again = snakemake_calls.command(tmp_path / "suite.yaml", config, ["--rerun-incomplete"])
    lines = command.report(actual, own_model, declaration, again)
    (call,) = [line for line in lines if "snakemake" in line]
    assert shlex.split(call) == again, "it is quoted"
    assert again[again.index("--config") + 1 :] == [*config, f"suite={tmp_path / 'suite.yaml'}"]
    assert any("too few repeats" in line for line in lines)
    assert "    model.to(torch.bfloat16)  # and floating-point inputs" in lines
    assert "    batch_size = 1" in lines
    rows = [line for line in lines if line.startswith("| ")]
    assert "| 1 | bf16 | none | 180.0 |" in rows[1]
    assert "no: it computes something else" in next(row for row in rows if "| bf16 | induc" in row)
    assert "failed: broke" in rows[-1]


def test_the_call_works_from_every_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    suite = Path("suite.yaml")
    monkeypatch.chdir(tmp_path)
    elsewhere = snakemake_calls.command(suite, [], [])
    assert str(ROOT / "workflow" / "Snakefile") in elsewhere
    assert str(ROOT / "profiles" / "default") in elsewhere
    monkeypatch.chdir(ROOT)
    arguments = ["snakemake", "--cores", "all", "--config", "suite=suite.yaml"]
    assert snakemake_calls.command(suite, [], []) == arguments


def test_batches_that_were_not_tried_are_named_with_the_reason() -> None:
    machine = Machine(figure)
    batches = [1, 2, 4, 8, 16, 32, 64]
    short = Search(machine.begin, machine.measure, lambda: machine.now, 150).run(batches)
    (_, line) = command.not_tried(short, batches, 6)
    assert line.startswith("Not tried: batch 2 and more: the same command with a longer --budget")
    machine = Machine(figure)
    cut = Search(machine.begin, machine.measure, lambda: machine.now, 60).run(batches)
    assert len(machine.calls) == 2, "the best of what was measured are verified"
    (_, line) = command.not_tried(cut, batches, 6)
    assert line.startswith("Not tried: 3 of 6 combinations of precision and compiler with batch 1")
    machine = Machine(figure)
    long = Search(machine.begin, machine.measure, lambda: machine.now, 10_000).run(batches)
    (_, line) = command.not_tried(long, batches, 6)
    assert line.startswith("Not tried: batch 64: throughput no longer grows")
    assert not command.not_tried(long, batches[:-1], 6)


def test_lines_of_a_script_stand_in_the_order_in_which_they_run() -> None:
    declaration = load_catalog(ROOT).frameworks["pytorch"]
    actual = grouping.group([run(1.0, precision="amp", compiler="inductor")], None).values()
    own_model = OwnModel("my_model.py", {"name": "my_model@1"})
    *_, before, step = command.report([*actual], own_model, declaration, [])
    assert before == "    model.compile()"
    assert step.startswith("    with torch.autocast(")


@pytest.mark.parametrize(
    ("framework", "compilers"),
    [("pytorch", ["default", "inductor"]), ("jax", ["jit"]), ("tensorflow", ["default", "xla"])],
)
def test_a_model_is_tried_as_it_is_trained_and_compiled(
    framework: str, compilers: list[str]
) -> None:
    declaration = load_catalog(ROOT).frameworks[framework]
    options = command.parser().parse_args(["--model", "my_model.py"])
    axes = command.suite_of(options, declaration, [1, 2], 1)["axes"]
    assert axes["compiler"] == compilers
    assert axes["precision"][0] == "fp32"
    assert {*axes["precision"]} == {*declaration["precisions"]}


@pytest.mark.parametrize(
    ("option", "name", "said"),
    [
        (
            "--precisions",
            "fp33",
            r"--precisions: found 'fp33' \(did you mean fp32\?\); allowed: fp32",
        ),
        ("--compilers", "xla", "--compilers: found 'xla'; allowed: none, inductor"),
    ],
)
def test_what_the_framework_does_not_have_is_refused(option: str, name: str, said: str) -> None:
    declaration = load_catalog(ROOT).frameworks["pytorch"]
    options = command.parser().parse_args(["--model", "my_model.py", option, name])
    with pytest.raises(ConfigError, match=said):
        command.suite_of(options, declaration, [1], 1)


def test_an_interrupted_search_shows_what_it_has(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, results = tmp_path / "net.py", tmp_path / "results"
    model.write_text('FRAMEWORK = "pytorch"\n\ndef make(batch_size):\n    pass\n')
    suites = []

    def measure(suite: Path, *_: object) -> None:
        suites.append(read_mapping(suite)["axes"])
        if len(suites) > 1:
            raise KeyboardInterrupt

    def grouped(_: object) -> dict[object, CaseResult]:
        (name,) = {one.name for one in [own_model(str(model), load_catalog(ROOT))]}
        return grouping.group([run(3.0, model=name, batch_per_device=1)], None)

    monkeypatch.setattr(snakemake_calls, "measure", measure)
    monkeypatch.setattr(command, "grouped", grouped)
    assert command.main(["--model", str(model), "--results", str(results)]) == 130
    assert "Best: batch 1, fp32, none." in capsys.readouterr().out
    assert "Best: batch 1, fp32, none." in (results / "tune.md").read_text()
    assert (results / ".gitignore").read_text() == "*\n"
    first, second = suites
    assert (first["precision"], first["compiler"]) == (["fp32"], ["default"])
    assert len(second["precision"]) > 2
