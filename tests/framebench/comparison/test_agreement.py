"""Agreement of two sets that measured the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from framebench import cli
from framebench.comparison.compare import agreement_text
from framebench.records.run import Run
from framebench.tables.grouping import group
from framebench.tables.table import Inputs

from ..made_up_runs import repeats
from .made_up_sides import SEVEN_THROUGHPUTS, write_set


def inputs(**middles: float) -> Inputs:
    """Return a setting with seven repeats of each framework, by its median."""
    runs: list[Run] = []
    for framework, middle in middles.items():
        values = (middle * value / 100 for value in SEVEN_THROUGHPUTS)
        runs += repeats(*values, framework=framework)
    return Inputs(group(runs, None))


def test_a_significant_order_repeats_or_not() -> None:
    first = inputs(pytorch=100, jax=50, paddle=20)
    assert "4 of 4 significant orders repeat (100%)" in agreement_text(first, first)
    # pytorch over jax and paddle, jax over pytorch and paddle: only those over paddle repeat
    swapped = inputs(pytorch=50, jax=100, paddle=20)
    assert "2 of 4 significant orders repeat (50%)" in agreement_text(first, swapped)


def test_an_order_that_is_not_significant_does_not_count() -> None:
    assert "orders" not in agreement_text(*[inputs(pytorch=100, jax=100.05)] * 2)
    # significant in one set, so it counts once; the other has the medians in the other direction
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


def test_the_command_prints_it_for_two_folders(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = (write_set(tmp_path / name, 1.0) for name in ("first", "second"))
    sides = ["--base", str(first), "--candidate", str(second)]
    assert cli.main(["compare", *sides, "--results", str(tmp_path / "out")]) == 0
    assert "2 of 2 intervals cover the other median (100%)" in capsys.readouterr().out
