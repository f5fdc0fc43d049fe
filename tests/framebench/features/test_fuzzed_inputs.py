"""Fuzzed inputs of features: each is accepted or refused by name, in one message."""

from __future__ import annotations

from pathlib import Path

import pytest

from ...fuzzing import running
from ...fuzzing.targets import Target
from .fuzz_targets import TARGETS

#: Number of inputs; benchmarks/fuzz_inputs.py has 20,000.
INPUTS, SEED = 300, 32


@pytest.mark.parametrize("target", TARGETS, ids=lambda entry: entry.name)
def test_a_sample_as_it_is_is_taken(tmp_path: Path, target: Target) -> None:
    running.check_sample(target, tmp_path)


def test_bad_inputs_are_taken_or_refused_by_name() -> None:
    running.check_run(SEED, INPUTS, TARGETS)
