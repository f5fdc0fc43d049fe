"""Pairs of a performance gate: cases that are decided are not measured further."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from core.case import Case
from framebench.config.suite import Suite, load_suite
from framebench.config.validation import ConfigError
from framebench.plan.planning import wanted_pairs
from framebench.records.run import Run

from ..made_up_runs import run
from ..settings import CATALOG

CLEAR, OPEN = (1.0,) * 27, (1.0, 0.9) * 20


def suite(
    folder: Path,
    at_most: int = 40,
    variants: Sequence[str] = ("base", "candidate"),
    two_sided: bool = False,
) -> Suite:
    path = folder / "gate.yaml"
    content: dict[str, Any] = {
        "repeats": {"margin": "5%", "at_most": at_most, "two_sided": two_sided},
        "variants": dict.fromkeys(variants),
        "axes": {"batch_per_device": [1, 2]},
    }
    path.write_text(yaml.safe_dump(content))
    return load_suite(str(path), CATALOG)


def runs_of(ratios: Sequence[float], better: str = "higher") -> tuple[list[Run], list[Run]]:
    """Return runs of base and candidate, one after the other in each pair."""
    sides: tuple[list[Run], list[Run]] = ([], [])
    for number, ratio in enumerate(ratios):
        for side, value in enumerate((100.0, 100.0 * ratio)):
            started = 100.0 * number + 10 * side
            one = run(value, repeat=number + 1, started=started, wall_seconds=8.0)
            metric = one.metrics[0]._replace(better=better)
            sides[side].append(replace(one, metrics=(metric,)))
    return sides


def asked(suite: Suite, *ratios: Sequence[float] | tuple[list[Run], list[Run]]) -> list[int]:
    """Return the number of pairs that cases with these ratios, or these runs, should have."""
    runs: dict[Case, list[Run]] = {}
    for number, some in enumerate(ratios):
        sides = some if some and isinstance(some[0], list) else runs_of(some)  # type: ignore[arg-type]
        for name, side in zip(("candidate", "base"), reversed(sides), strict=True):
            case = Case("toy", "toy", "train", 1, 1, number, "fp32", "none", None, name)
            runs[case] = side
    actual = wanted_pairs(runs, suite)
    numbers = [actual[case] for case in runs]
    assert numbers[::2] == numbers[1::2], "both sides have as many repeats"
    return numbers[::2]


def test_only_cases_that_are_not_decided_go_on_to_the_next_look(tmp_path: Path) -> None:
    gate = suite(tmp_path)
    assert asked(gate, (), ()) == [8, 8]
    assert asked(gate, CLEAR[:8], OPEN[:8]) == [8, 12]
    assert asked(gate, CLEAR[:8], OPEN[:12]) == [8, 18]
    assert asked(gate, OPEN) == [40], "the limit ends it"
    assert asked(suite(tmp_path, 20), OPEN[:18]) == [18], "the next look is behind the limit"
    assert asked(suite(tmp_path, 3), ()) == [3]


def test_a_regression_among_many_cases_takes_more_pairs_than_a_single_one(tmp_path: Path) -> None:
    gate = suite(tmp_path)
    slow = [0.8] * 8
    assert asked(gate, slow) == [8]
    assert asked(gate, slow, *[CLEAR[:8]] * 19) == [12] + [8] * 19


def test_a_two_sided_gate_also_decides_whether_a_case_is_faster(tmp_path: Path) -> None:
    some_faster = [1.0, 1.1] * 4
    assert asked(suite(tmp_path), some_faster) == [8]
    assert asked(suite(tmp_path, two_sided=True), some_faster) == [12]
    assert asked(suite(tmp_path, two_sided=True), [1.2] * 8) == [8]


def test_a_killed_call_is_completed_before_anything_is_decided(tmp_path: Path) -> None:
    gate = suite(tmp_path)
    assert asked(gate, OPEN[:3]) == [8]
    base, candidate = runs_of(OPEN[:10])
    assert asked(gate, (base, candidate[:9])) == [10]
    assert asked(gate, (base, candidate)) == [12]


def test_a_failed_run_ends_a_case(tmp_path: Path) -> None:
    gate = suite(tmp_path)
    base, candidate = runs_of(OPEN[:8])
    assert asked(gate, (base, [*candidate[:7], replace(run(None), repeat=8)])) == [8]


@pytest.mark.parametrize("variants", [(), ("one",), ("one", "two", "three")])
def test_a_gate_has_two_variants(tmp_path: Path, variants: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError, match=r"variants: found .*allowed: two"):
        suite(tmp_path, variants=variants)
