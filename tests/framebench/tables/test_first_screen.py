"""Content of the first screen: sentence, verdicts, who is missing and why, the next step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from framebench.config.catalog import framework_declaration
from framebench.records.run import Flag, Run
from framebench.records.sidecars import TOO_SLOW, ExpectedCase
from framebench.tables import frames
from framebench.tables.first_screen import FirstScreen, first_screen
from framebench.tables.results import group
from framebench.tables.setting_answers import describe_origin
from framebench.tables.table import Inputs

from ..made_up_runs import SEVEN, repeats


def by(framework: str, factor: float = 1.0, count: int = 7, **changes: Any) -> list[Run]:
    values = [factor * value for value in SEVEN[:count]]
    return [replace(run, wall_seconds=30.0)
            for run in repeats(*values, framework=framework, **changes)]  # fmt: skip


def screen_of(*sides: Sequence[Run], **more: Any) -> FirstScreen:
    runs = [run for side in sides for run in side]
    inputs = Inputs(group(runs, None), **more)
    return first_screen(inputs, frames.build(inputs), runs, describe_origin(runs))


def expected(run: Run, left_out: str = "", **changes: Any) -> ExpectedCase:
    case = run.case._replace(framework_version="", **changes)
    folder = "" if case.framework == run.case.framework else case.framework
    return ExpectedCase("quick", folder, case, run.conditions, True, left_out)


# ---- the sentence -------------------------------------------------------------------------------


def test_one_leader_everywhere_is_said_with_its_leads() -> None:
    screen = screen_of(
        by("jax", 1.2), by("pytorch"), by("jax", 1.5, mode="inference"),
        by("pytorch", mode="inference"),
    )  # fmt: skip
    assert screen.sentence == "JAX is fastest in all 2 settings, 20 to 50 % ahead (sure)."


def test_different_leaders_are_told_apart_by_what_differs() -> None:
    of_mode = screen_of(
        by("jax", 1.2), by("pytorch"), by("pytorch", 3, mode="inference"),
        by("jax", mode="inference"),
    )  # fmt: skip
    assert "JAX is fastest in training, 20 % ahead (sure)" in of_mode.sentence
    assert "PyTorch is fastest in inference, 3 times the next" in of_mode.sentence


def test_words_claim_no_lead_at_a_setting_that_is_open() -> None:
    open_setting = by("pytorch", model="bert_base")
    screen = screen_of(
        by("jax", 1.2), by("pytorch"), by("pytorch", 3, mode="inference"),
        by("jax", mode="inference"), open_setting,
        expected=[expected(open_setting[0], framework="jax")],
    )  # fmt: skip
    assert "JAX is fastest in training, 20 % ahead" not in screen.sentence
    assert "JAX is fastest in ResNet-50 v1.5 training, 20 % ahead" in screen.sentence


def test_the_setting_of_a_micro_benchmark_is_named_in_words() -> None:
    sides = [by(name, mode="memory_latency", model="", devices_per_node=2)
             for name in ("jax", "pytorch")]  # fmt: skip
    (setting,) = screen_of(*sides).settings
    assert setting.name.startswith("Memory latency, fp32, 2 devices")
    assert "2g" not in setting.name


def test_a_lead_that_may_be_chance_is_no_fastest() -> None:
    screen = screen_of(by("jax", 1.2, count=2), by("pytorch", count=2))
    (setting,) = screen.settings
    assert (setting.verdict, setting.state) == ("JAX, 20 % ahead of PyTorch", "open")
    assert "JAX leads in" in screen.sentence
    assert "(open)" in screen.sentence
    assert [entrant.notes for entrant in setting.entrants] == [["2 repeats"], ["2 repeats"]]


def test_a_single_framework_has_nothing_to_lead() -> None:
    screen = screen_of(by("jax"))
    assert screen.sentence == "Only JAX was measured, so there is nothing to compare."
    assert screen.settings[0].state == ""
    assert screen.next is None


def test_no_figure_at_all_is_said() -> None:
    screen = screen_of(repeats(None, None))
    assert screen.sentence == "Nothing was measured: no run has a figure."


# ---- who is not there, and why ------------------------------------------------------------------


def test_reasons_tell_slow_from_cannot_and_from_not_yet() -> None:
    runs = by("jax", 1.2)
    (run, *_) = runs
    screen = screen_of(
        runs,
        by("pytorch"),
        [replace(one, reason="no such thing", status="unsupported")
         for one in repeats(None, framework="paddle")],
        expected=[expected(run), expected(run, framework="mxnet")],
        left_out=[expected(run, f"{TOO_SLOW}10 min 00 s; to include it: x", framework="megengine")],
    )  # fmt: skip
    (setting,) = screen.settings
    assert setting.between == "not measured yet: MXNet"
    assert setting.state == "open"
    assert [*setting.aside] == ["too slow for 10 min 00 s: MegEngine"]
    assert [*screen.cannot] == ["PaddlePaddle has no fp32 here."]
    assert [*screen.why_not] == [("PaddlePaddle", "no such thing")]
    assert screen.next is not None
    assert screen.next.text == "to measure MXNet"


def test_the_next_call_settles_what_is_open_within_a_budget() -> None:
    sides = by("jax", 1.001, 2), by("pytorch", 1.0, 2)
    screen = screen_of(*sides, expected=[expected(side[0]) for side in sides])
    assert screen.next is not None
    assert "to settle the order of JAX and PyTorch, about" in screen.next.text
    assert screen.next.seconds == pytest.approx(30.0 * 2 * 5, rel=0.7)
    assert screen.next.command


def test_disturbance_and_flags_are_counted() -> None:
    disturbed = [replace(run, flags=(Flag("disturbed", "x"),)) for run in by("jax", 1.2)]
    screen = screen_of(disturbed, by("pytorch"))
    assert "Other programs used this machine during 1 of 2 figures." in screen.careful
    (setting,) = screen.settings
    assert (setting.state, setting.between) == (
        "order sure", "between 18 and 22 %; other programs disturbed it",
    )  # fmt: skip


# ---- variants -----------------------------------------------------------------------------------


def test_variants_have_their_ratio_to_the_first_in_words() -> None:
    own = {"variables": (("A", "1"),)}
    screen = screen_of(
        by("pytorch", suite_variant="default"),
        by("pytorch", 1.3, suite_variant="a", **own),
        by("pytorch", 0.5, 1, suite_variant="few", mode="inference", **own),
    )
    assert screen.sentence.startswith(
        "Variant a, PyTorch, ResNet-50 v1.5 training, fp32, 1 device, batch 32: 1.30 times default"
    )
    assert screen.sentence.endswith("faster.")
    (few,) = screen.findings
    assert few.endswith("no ratio to default: not in default")


def test_a_bar_says_where_official_code_was_faster() -> None:
    (known,) = framework_declaration("tensorflow1")["official_faster"]
    case = {name: known[name] for name in ("model", "mode", "compiler")}

    def notes(**changes: Any) -> list[str]:
        screen = screen_of(by("tensorflow1", **{**case, **changes}), by("jax", **case))
        return [note for setting in screen.settings for entrant in setting.entrants
                for note in entrant.notes if note.startswith("official code")]  # fmt: skip

    assert notes() == [f"official code {known['percent']} % faster"]
    assert notes(mode="train") == notes(precision="amp") == notes(accelerator="cuda") == []
