"""Verification finds mistakes that are planted in the frameworks' adapters.

All of PyTorch's, the fastest, all on several devices or in several micro-steps, and of the others
every tenth, and the first in the text that they generate; ``benchmarks/planted_mistakes.py`` has
all."""

from __future__ import annotations

from pathlib import Path

import pytest

from .comparing import beyond
from .fork_server import ForkServers
from .mistakes import FRAMEWORKS, generation, of_framework
from .mistakes.planted import Computation
from .planting import ADAPTERS, PLANTED_IN, errors_of, plant, planted_errors
from .transformers import FULL

#: One mistake in EVERY is planted on one device, in all frameworks but PyTorch.
EVERY = 10
ALL = [
    (framework, number)
    for framework in FRAMEWORKS
    for number in range(len(of_framework(framework)))
]
CHOSEN = [
    (framework, number)
    for index, (framework, number) in enumerate(ALL)
    for mistake in [of_framework(framework)[number]]
    if (
        framework == FULL
        or mistake.computation.parts > 1
        or mistake in generation.MISTAKES.get(framework, ())[:1]
        or index % EVERY == 0
    )
    and not mistake.missed
    and not mistake.computation.takes_long
]
#: Mistakes that need several devices or several micro-steps.
TOGETHER = sorted(
    {
        (framework, mistake.model, mistake.computation)
        for framework, number in ALL
        for mistake in [of_framework(framework)[number]]
        if mistake.computation.parts > 1 and not mistake.computation.takes_long
    }
)


@pytest.mark.parametrize(
    ("framework", "number"),
    CHOSEN,
    ids=[f"{framework}, {of_framework(framework)[number].about}" for framework, number in CHOSEN],
)
def test_a_mistake_is_found(
    framework: str,
    number: int,
    fork_servers: ForkServers,
    planted_references: dict[str, Path],
    tmp_path: Path,
) -> None:
    mistake = of_framework(framework)[number]
    errors = planted_errors(fork_servers(framework), mistake, planted_references, tmp_path)
    assert beyond(errors), f"not found: {mistake.about}, by {errors}"


@pytest.mark.parametrize(("framework", "model", "computation"), TOGETHER)
def test_what_is_right_passes_in_two_parts(
    framework: str,
    model: str,
    computation: Computation,
    fork_servers: ForkServers,
    planted_references: dict[str, Path],
) -> None:
    adapter = ADAPTERS / framework
    run = fork_servers(framework)
    assert not beyond(errors_of(run, planted_references[model], adapter, computation))


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_every_mistake_can_be_planted(framework: str, tmp_path: Path) -> None:
    """Fail if a mistake's text does not stand in the adapter, or is that of another mistake."""
    mistakes = of_framework(framework)
    for number, mistake in enumerate(mistakes):
        plant(tmp_path / str(number), mistake.changes, framework)
        assert mistake.model in PLANTED_IN
    assert len(
        {
            (planted_mistake.about, planted_mistake.model, planted_mistake.computation)
            for planted_mistake in mistakes
        }
    ) == len(mistakes)
