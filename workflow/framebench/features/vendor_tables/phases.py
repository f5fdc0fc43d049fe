"""Pre-training in two phases: pairing of the phases, and figures of both together."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ...tables.declared.converge import median
from ...tables.results import CaseResult
from ...tables.training import NO_FILE

#: Metric of trainings that are phases: the loss over the last updates.
FINAL_LOSS = "final_loss"
#: Fields that both phases share.
_ALIKE = ("framework", "framework_version", "model", "nodes", "devices_per_node", "precision",
          "compiler", "source", "parallelism", "node", "variant", "further")  # fmt: skip
_HOUR = 3600.0


@dataclass(frozen=True)
class TrainingPhases:
    """Phases of a pre-training.

    ``last``: phase that no other continues. ``first``: phase whose weights it started from; None if
    not measured."""

    last: CaseResult
    first: CaseResult | None

    def both(self, value: Callable[[CaseResult], Any]) -> str:
        """Return a value of each phase as NVIDIA prints it: ``176 and 24``."""
        return " and ".join(str(value(result)) for result in (self.first, self.last) if result)

    @property
    def hours(self) -> float | None:
        """Hours to train: sum of both phases' medians over seeds; None if one is unknown."""
        if self.first is None and _begun(self.last) not in (None, NO_FILE):
            return None
        times = [median("time_to_train")(result) for result in (self.first, self.last) if result]
        present = [entry for entry in times if entry is not None]
        return sum(present) / _HOUR if len(present) == len(times) else None


def is_phase(result: CaseResult) -> bool:
    return any(metric.name == FINAL_LOSS for run in result.runs for metric in run.metrics)


def training_phases(results: Iterable[CaseResult]) -> list[TrainingPhases]:
    """Return the pre-trainings, one per phase that no other continues."""
    every = [result for result in results if is_phase(result)]
    found = [
        TrainingPhases(result, next((it for it in every if _precedes(it, result)), None))
        for result in every
    ]
    followed = [id(phases.first) for phases in found if phases.first]
    return [phases for phases in found if id(phases.last) not in followed]


def final_losses(result: CaseResult) -> list[float]:
    """Return the final loss of each completed repeat."""
    return list(losses_of(result).values())


def losses_of(result: CaseResult) -> dict[int, float]:
    """Return the final loss of each completed repeat by its number."""
    known = ((run.repeat, run.value(FINAL_LOSS)) for run in result.ok)
    return {repeat: value for repeat, value in known if value is not None}


def _precedes(first: CaseResult, last: CaseResult) -> bool:
    """Return whether ``last`` started from the weights that ``first`` saved."""
    left = dict(first.case.parameters).get("weights")
    return (
        first is not last
        and left not in (None, NO_FILE)
        and left == _begun(last)
        and all(getattr(first.case, name) == getattr(last.case, name) for name in _ALIKE)
        and first.conditions == last.conditions
    )


def _begun(result: CaseResult) -> Any:
    """Return the weights that a training started from."""
    return dict(result.case.parameters).get("start")
