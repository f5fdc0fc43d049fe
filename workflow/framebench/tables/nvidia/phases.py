"""Pre-training in two phases, of our own cases: which one goes on with the weights of which, and
what is printed of both together."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from ..declared.converge import median
from ..results import CaseResult
from ..training import NO_FILE

#: The metric that a training has if it is a phase of one: its loss over the last updates.
FINAL_LOSS = "final_loss"
#: What both phases have in common.
_ALIKE = ("framework", "framework_version", "model", "nodes", "devices_per_node", "precision",
          "compiler", "source")  # fmt: skip
_HOUR = 3600.0


@dataclass(frozen=True)
class TrainingPhases:
    """``last``: the phase that no other goes on from; ``first``: the one whose weights it has begun
    with, None where that was not measured."""

    last: CaseResult
    first: CaseResult | None

    def both(self, value: Callable[[CaseResult], Any]) -> str:
        """A value of each, as NVIDIA prints them: ``176 and 24``."""
        return " and ".join(str(value(one)) for one in (self.first, self.last) if one)

    @property
    def hours(self) -> float | None:
        """To train, the medians over seeds of both phases together; None where one has none, or
        where the first was not measured."""
        if self.first is None and _begun(self.last) not in (None, NO_FILE):
            return None
        times = [median(one, "time_to_train") for one in (self.first, self.last) if one]
        known = [one for one in times if one is not None]
        return sum(known) / _HOUR if len(known) == len(times) else None


def is_phase(result: CaseResult) -> bool:
    return any(one.name == FINAL_LOSS for run in result.runs for one in run.metrics)


def of(results: Iterable[CaseResult]) -> list[TrainingPhases]:
    """Of each phase that no other has gone on from."""
    every = [result for result in results if is_phase(result)]
    found = [
        TrainingPhases(one, next((it for it in every if _precedes(it, one)), None)) for one in every
    ]
    followed = [id(one.first) for one in found if one.first]
    return [one for one in found if id(one.last) not in followed]


def final_losses(result: CaseResult) -> list[float]:
    """Of each seed that ended."""
    return list(losses_of(result).values())


def losses_of(result: CaseResult) -> dict[int, float]:
    """Return the final loss of each repeat that ended, by its number."""
    known = ((run.repeat, run.value(FINAL_LOSS)) for run in result.ok)
    return {repeat: value for repeat, value in known if value is not None}


def _precedes(first: CaseResult, last: CaseResult) -> bool:
    """Whether the weights that one left are those that the other has begun with."""
    left = dict(first.case.parameters).get("weights")
    return (
        first is not last
        and left not in (None, NO_FILE)
        and left == _begun(last)
        and all(getattr(first.case, name) == getattr(last.case, name) for name in _ALIKE)
        and _apart(first) == _apart(last)
    )


def _begun(result: CaseResult) -> Any:
    """The weights that it has begun with."""
    return dict(result.case.parameters).get("start")


def _apart(result: CaseResult) -> Any:
    """The conditions that both phases have in common."""
    return replace(result.conditions, sequence_length=None, accumulation=1)
