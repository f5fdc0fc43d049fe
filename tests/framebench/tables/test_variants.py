"""Ratios of the variants of a suite: table, from made-up runs with known ratios."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from framebench.records.run import Flag, MetricValue, Run
from framebench.records.sidecars import ExpectedCase
from framebench.statistics.verdicts import CANNOT_TELL, FASTER, NO_DIFFERENCE, SLOWER
from framebench.tables.columns import Row

from ..made_up_runs import SEVEN, measured, repeats, rows_of


def of(variant: str, factor: float = 1.0, **changes: Any) -> list[Run]:
    own = {"variables": (("A", "1"),)} if variant != "default" else {}
    return repeats(*(factor * value for value in SEVEN), suite_variant=variant, **own, **changes)


def made(*runs: list[Run], **more: Any) -> list[Row]:
    return rows_of("variants", [run for some in runs for run in some], **more)


def ratios(*runs: list[Run], **more: Any) -> dict[tuple[str, str], Row]:
    return {(row["framework"], row["suite_variant"]): row for row in made(*runs, **more)}


def test_each_variant_has_its_ratio_to_the_first_with_interval_and_verdict() -> None:
    actual = ratios(
        of("default"), of("a", 1.3), of("b", 0.8),
        of("default", 2, framework="jax"), of("a", 2.002, framework="jax"),
    )  # fmt: skip
    assert {case: row["verdict"] for case, row in actual.items()} == {
        ("pytorch", "a"): FASTER, ("pytorch", "b"): SLOWER, ("jax", "a"): NO_DIFFERENCE,
    }  # fmt: skip
    row = actual["pytorch", "a"]
    assert (row["base_suite_variant"], row["speedup"]) == ("default", pytest.approx(1.3))
    assert row["speedup_ci_low"] < 1.3 < row["speedup_ci_high"]


def test_models_of_ones_own_are_variants_of_each_other() -> None:
    own = {"flags": (Flag("own", ""),)}
    old, new = of("base", model="my@1", **own), of("next", 1.3, model="my@2", **own)
    (row,) = ratios(old, new).values()
    assert (row["model"], row["speedup"]) == ("my@2", pytest.approx(1.3))
    same = of("next", 1.1, model="my@1", **own)
    actual = made(old, new, same, of("base", 1.2, model="my@2", **own))
    assert {row["model"]: round(row["speedup"], 3) for row in actual} == {
        "my@1": 1.1,
        "my@2": round(1.3 / 1.2, 3),
    }


def test_the_suite_decides_which_variant_is_the_first() -> None:
    runs = [*of("default"), *of("zero", 2)]
    asked = [
        ExpectedCase("s", "", run.case, run.conditions) for run in reversed(runs)
    ]  # fmt: skip
    actual = ratios(runs, expected=asked)
    assert [(text, row["base_suite_variant"]) for (_, text), row in actual.items()] == [
        ("default", "zero")
    ]
    alone = ratios(of("default"), expected=asked)
    assert alone["pytorch", "default"]["reason"] == "not in zero"


def test_less_is_better_where_a_benchmark_says_so_and_other_versions_are_compared() -> None:
    def seconds(variant: str, factor: float) -> list[Run]:
        run = measured("first_token", [MetricValue("seconds", 1.0, "s", "lower")])
        return [
            replace(
                run,
                case=run.case._replace(variant=variant),
                metrics=(MetricValue("seconds", factor * value, "s", "lower"),),
                repeat=repeat,
                variables=(("A", "1"),) * (variant != "default"),
            )
            for repeat, value in enumerate(SEVEN, 1)
        ]

    (row,) = ratios(seconds("default", 1.0), seconds("a", 0.5)).values()
    assert (row["speedup"], row["verdict"]) == (pytest.approx(2), FASTER)
    (row,) = ratios(of("default"), of("new", 1.5, framework_version="9")).values()
    assert row["speedup"] == pytest.approx(1.5)


def test_a_variant_without_a_figure_says_why() -> None:
    failed = repeats(None, suite_variant="a", reason="no room", variables=(("A", "1"),))
    (row,) = ratios(of("default"), failed).values()
    assert (row["speedup"], row["verdict"]) == (None, CANNOT_TELL)
    assert "no room" in row["reason"]
