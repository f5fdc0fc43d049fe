"""Fuzzed inputs: each is accepted or refused by name, in one message and without a hang."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..fuzzing import running
from ..fuzzing.targets import TARGETS, Target

#: Number of inputs; benchmarks/fuzz_inputs.py has 20,000.
INPUTS, SEED = 1000, 32


@pytest.mark.parametrize("target", TARGETS, ids=lambda one: one.name)
def test_a_sample_as_it_is_is_taken(tmp_path: Path, target: Target) -> None:
    target.around(tmp_path)
    path = tmp_path / target.file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(target.sample)
    assert not target.read(tmp_path)


def test_a_thousand_bad_inputs_are_taken_or_refused_by_name() -> None:
    outcome = running.run(SEED, range(INPUTS))
    assert not outcome.faults, "\n".join(outcome.faults[:10])
    assert sum(outcome.counts.values()) == INPUTS
    refused = sum(n for name, n in outcome.counts.items() if name.endswith("refused"))
    assert refused > INPUTS / 2, "hardly anything is spoiled"
