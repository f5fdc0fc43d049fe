"""Runs in which a step breakdown is measured."""

from __future__ import annotations

from pathlib import Path

import pytest
from framebench.runs import commands

from ..settings import SUITE, plan


@pytest.mark.parametrize("has_control", [False, True])
def test_every_repeat_of_several_devices_with_a_control_is_split(
    tmp_path: Path, has_control: bool
) -> None:
    control = {"measurements": {"independent": {"devices_per_node": [2]}}} if has_control else {}
    axes = {**SUITE["axes"], "framework": ["pytorch"], "devices_per_node": [1, 2]}
    made = plan(tmp_path, {**SUITE, "axes": axes, "repeats": 2, **control})
    breakdown = {
        (run.case.mode, run.case.devices_per_node, run.repeat)
        for run in made.runs
        if "breakdown_steps=3" in commands.arguments(made, run)
    }
    first = {("train", 1, 1), ("train", 2, 1)}
    assert breakdown == (first | {("train", 2, 2)} if has_control else first)
