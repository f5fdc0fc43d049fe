"""Comparison of two sets of records: matching, verdicts, undecided cases, and their agreement."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from framebench import cli, comparison
from framebench.comparison import agreement_text
from framebench.records.run import Run
from framebench.tables.results import group
from framebench.tables.table import Inputs

from ..made_up_runs import changed, repeats
from ..table_rows import row
from .made_up_sides import ROUND_SECONDS, SEVEN_THROUGHPUTS, write_set


def compared(base: list[Run], candidate: list[Run]) -> pd.DataFrame:
    return comparison.compare(group(base, None), group(candidate, None))


def scaled(factor: float, **changes: Any) -> list[Run]:
    return repeats(*(factor * value for value in SEVEN_THROUGHPUTS), **changes)


def test_a_slower_case_is_shown_as_slower_and_no_other() -> None:
    base = scaled(1.0) + scaled(2.0, batch_per_device=64)
    frame = compared(base, scaled(0.95) + scaled(2.0, batch_per_device=64))
    slow = row(frame, batch_per_device=32)
    assert slow["verdict"] == "slower"
    assert slow["ratio"] == pytest.approx(0.95)
    assert slow["ratio_ci_low"] < 0.95 < slow["ratio_ci_high"] < 1
    assert slow["p_adjusted"] < 0.05
    assert slow["reason"] == "cannot tell whether by more than 5.0%"
    same = row(frame, batch_per_device=64)
    assert same["verdict"] == "no difference shown"
    assert (same["ratio"], same["base_median"]) == (1.0, 200.0)


def test_verdicts_are_adjusted_for_the_number_of_cases() -> None:
    base, candidate = scaled(1.0), scaled(0.987)
    alone = compared(base, candidate)
    assert row(alone)["ratio_ci_high"] < 1
    assert row(alone)["verdict"] == "slower"
    for batch in range(101, 160):
        base += scaled(1.0, batch_per_device=batch)
        candidate += scaled(1.0, batch_per_device=batch)
    frame = compared(base, candidate)
    one = row(frame, batch_per_device=32)
    assert one["ratio_ci_high"] < 1
    assert one["verdict"] == "no difference shown"
    assert "not adjusted" in comparison.TABLE.explanation


def test_what_is_too_noisy_is_not_called_equal() -> None:
    wide = repeats(80, 90, 95, 100, 105, 110, 120)
    actual = row(compared(wide, wide))
    assert actual["verdict"] == "cannot tell"
    assert "is possible" in actual["reason"]


def test_three_repeats_cannot_tell() -> None:
    actual = row(compared(repeats(100, 101, 102), repeats(50, 51, 52)))
    assert actual["verdict"] == "cannot tell"
    assert actual["reason"] == "needs 7 repeats on both sides"
    assert actual["ratio"] == pytest.approx(51 / 101)
    assert pd.isna(actual["ratio_ci_low"])


def test_a_case_of_one_side_is_named() -> None:
    only_base, only_candidate = scaled(1.0, mode="inference"), scaled(1.0, precision="amp")
    broken = repeats(None, None, batch_per_device=64)
    frame = compared(only_base + scaled(1.0, batch_per_device=64), only_candidate + broken)
    assert set(frame["verdict"]) == {"cannot tell"}
    assert row(frame, mode="inference")["reason"] == "not in candidate"
    assert row(frame, precision="amp")["reason"] == "not in base"
    assert row(frame, batch_per_device=64)["reason"] == "candidate is failed: broke"


def test_units_that_differ_are_named() -> None:
    actual = row(compared(scaled(1.0), scaled(1.0, unit="GB/s")))
    assert actual["verdict"] == "cannot tell"
    assert actual["reason"] == "the units differ: images/s and GB/s"


def test_two_versions_of_a_framework_are_matched_and_the_difference_is_named() -> None:
    new = scaled(1.1, framework_version="2.9.0")
    actual = row(compared(scaled(1.0), new))
    assert (actual["verdict"], actual["framework_version"]) == ("faster", "2.8.0")
    assert actual["differences"] == "framework_version 2.8.0 -> 2.9.0"


def test_two_versions_of_an_own_model_are_matched() -> None:
    actual = row(compared(scaled(1.0, model="net@00000000"), scaled(1.1, model="net@11111111")))
    assert (actual["verdict"], actual["model"]) == ("faster", "net")
    (two, _) = compared(scaled(1.0, model="net"), scaled(1.1, model="other@11111111"))["verdict"]
    assert two == "cannot tell"


def test_versions_that_both_sides_have_are_matched_by_themselves() -> None:
    both = scaled(1.0) + scaled(3.0, framework_version="2.9.0")
    frame = compared(both, both)
    assert frame["ratio"].tolist() == [1.0, 1.0]
    several = compared(scaled(1.0), both[7:] + scaled(2.0, framework_version="3.0"))
    assert "cannot tell" in set(several["verdict"]), "which of two versions is meant?"


#: Machine drift over twelve pairs of runs.
DRIFT = (1.0, 0.93, 1.06, 0.97, 1.02, 0.9, 1.09, 0.95, 1.03, 0.92, 1.07, 0.98)
#: Noise of each of the two runs of a pair.
OWN = (0.001, -0.002, 0.003, 0.0005, -0.001, 0.002, -0.003, 0.0015, 0.0025, -0.0005, 0.004, -0.004)


def drifting(after: float, factor: float = 1.0, **changes: Any) -> list[Run]:
    """Return twelve repeats under drift, each started ``after`` seconds into its round."""
    values = [100 * drift * factor for drift in DRIFT]
    made = repeats(*values, **changes)
    return [
        replace(run, started=ROUND_SECONDS * run.repeat + after, wall_seconds=6.0) for run in made
    ]


def with_own_noise(runs: list[Run]) -> list[Run]:
    return [
        changed(run, throughput=(run.throughput or 0) * (1 + noise))
        for run, noise in zip(runs, OWN, strict=True)
    ]


def test_pairs_show_what_the_drift_hides_from_two_sets() -> None:
    base, candidate = drifting(0), with_own_noise(drifting(8, 0.97))
    actual = row(compared(base, candidate))
    assert (actual["verdict"], actual["pairs"], actual["order"]) == ("slower", 12, "interleaved")
    assert actual["ratio"] == pytest.approx(0.97, abs=0.001)
    assert 0.967 < actual["ratio_ci_low"] < 0.97 < actual["ratio_ci_high"] < 0.973
    unknown = row(compared(base, [replace(run, started=None) for run in candidate]))
    assert (unknown["verdict"], unknown["pairs"], unknown["order"]) == ("cannot tell", 0, "")
    assert unknown["base_median"] == actual["base_median"]
    assert unknown["ratio"] == actual["candidate_median"] / actual["base_median"] != actual["ratio"]
    same = row(compared(base, with_own_noise(drifting(8))))
    assert (same["verdict"], same["pairs"]) == ("no difference shown", 12)


def test_too_few_pairs_are_compared_as_sets() -> None:
    base, candidate = [], []
    for batch in (8, 16, 32, 64):
        base += drifting(0, batch_per_device=batch)[:7]
        candidate += with_own_noise(drifting(8, 0.5, batch_per_device=batch))[:7]
    frame = compared(base, candidate)
    assert set(frame["verdict"]) == {"slower"}
    assert set(frame["pairs"]) == {0}
    assert set(frame["order"]) == {"interleaved"}
    assert comparison.notes(frame) == []
    assert row(compared(base[:7], candidate[:7]))["pairs"] == 7


def test_sets_that_were_measured_one_after_the_other_are_said_to_be() -> None:
    hours = 3600.0
    base = drifting(0) + drifting(8, batch_per_device=64)
    later = with_own_noise(drifting(hours, 0.9)) + drifting(12, 0.99, batch_per_device=64)
    frame = compared(base, later)
    after = row(frame, batch_per_device=32)
    assert (after["pairs"], after["order"]) == (0, "one after the other")
    text = comparison.summary_text(frame)
    assert text.count("one after the other") == 1
    assert "Measured one after the other (1 of 2 cases)" in text
    assert f"Their median ratio is {after['ratio']:.3f}." in text
    assert "variants in config/README.md" in text
    assert " 12 pairs" in text
    few = compared(drifting(0)[:3], drifting(hours)[:3])
    assert comparison.notes(few) == [], "nothing is said of it anyway"


def test_the_command_writes_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = write_set(tmp_path / "base", 1.0)
    # Older records lack the processor, which must not count as a difference.
    hardware = {"cpu": "Example CPU", "cores": 2, "memory_bytes": 2**34, "gpus": []}
    numbers = {"processor": {"family": "6", "instruction_sets": ["avx2"]}}
    packages = {"numpy": "2.4.0", "pytorch": "1"}
    slow = write_set(
        tmp_path / "slow", 0.9, 3600, packages=packages, hardware={**hardware, **numbers}
    )
    arguments = ["compare", "--base", str(base), "--results", str(tmp_path / "out")]
    assert cli.main([*arguments, "--candidate", str(base)]) == 0
    assert "1 no difference shown" in capsys.readouterr().out
    assert cli.main([*arguments, "--candidate", str(slow)]) == 0
    assert "Measured one after the other (1 of 1 cases)" in capsys.readouterr().out
    table = pd.read_csv(tmp_path / "out" / "tables" / "compare.csv")
    assert table["verdict"].tolist() == ["slower"]
    assert table["differences"].tolist() == ["packages.numpy 2.3.4 -> 2.4.0"]
    assert "packages.numpy" in (tmp_path / "out" / "tables" / "compare.md").read_text()


def test_sets_without_a_common_case_are_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base, other = write_set(tmp_path / "base", 1.0), write_set(tmp_path / "other", 1.0)
    for path in other.rglob("*.json"):
        path.write_text(path.read_text().replace("resnet50_v1.5", "resnet101_v1.5"))
    arguments = ["--base", str(base), "--candidate", str(other), "--results", str(tmp_path / "out")]
    assert cli.main(["compare", *arguments]) == 1
    assert "none of 2 cases is on both sides" in capsys.readouterr().err


def inputs(**middles: float) -> Inputs:
    """Return a setting with seven repeats of each framework, by its median."""
    runs: list[Run] = []
    for framework, middle in middles.items():
        values = (middle * value / 100 for value in SEVEN_THROUGHPUTS)
        runs += repeats(*values, framework=framework)
    return Inputs(group(runs, None))


def test_significant_orders_that_repeat_are_counted() -> None:
    first = inputs(pytorch=100, jax=50, paddle=20)
    assert "4 of 4 significant orders repeat (100%)" in agreement_text(first, first)
    # leads of pytorch and of jax over the other and paddle: only leads over paddle are reproduced
    swapped = inputs(pytorch=50, jax=100, paddle=20)
    assert "2 of 4 significant orders repeat (50%)" in agreement_text(first, swapped)


def test_an_order_that_is_not_significant_does_not_count() -> None:
    assert "orders" not in agreement_text(*[inputs(pytorch=100, jax=100.05)] * 2)
    # a lead that is significant in only one set counts once; medians of the other set have the
    # opposite order
    text = agreement_text(inputs(pytorch=100, jax=50), inputs(pytorch=100, jax=100.05))
    assert "0 of 1 significant orders repeat (0%)" in text


def test_a_framework_that_one_set_lacks_does_not_count() -> None:
    text = agreement_text(inputs(pytorch=100, jax=50, paddle=20), inputs(pytorch=100, jax=50))
    assert "2 of 2 significant orders repeat" in text


def test_intervals_are_counted_that_cover_the_other_median() -> None:
    first = inputs(pytorch=100, jax=50)
    assert "4 of 4 intervals cover the other median (100%)" in agreement_text(first, first)
    # pytorch's medians are 0.5 % apart and its intervals reach that far, jax's are 4 % apart
    text = agreement_text(first, inputs(pytorch=100.5, jax=52))
    assert "2 of 4 intervals cover the other median (50%)" in text
