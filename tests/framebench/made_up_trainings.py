"""Trainings without records, with defaults for everything that a test does not state."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from framebench.records.fields import LearningCurve
from framebench.records.run import MetricValue, Run

from .made_up_runs import measured

RECIPE: dict[str, Any] = {
    "epochs": 3,
    "schedule": "one_cycle",
    "learning_rate": "model",
    "warmup": 0.3,
}


def trained(
    *scores: float,
    seed: int = 0,
    target: float | None = None,
    framework: str = "pytorch",
    recipe: dict[str, Any] | None = None,
    **case: Any,
) -> Run:
    """Return a training with these scores by epoch; ``recipe``: changed parameters."""
    missed = target is not None and max(scores) < target
    curve = LearningCurve(
        task="digits",
        score="accuracy",
        target=target,
        scores=scores,
        losses=tuple(1.0 / (n + 1) for n in range(len(scores))),
        seconds=tuple(float(n + 1) for n in range(len(scores))),
        samples=360,
        seed=seed,
    )
    metrics = [MetricValue("accuracy", None if missed else scores[-1], "fraction")]
    if target is not None:
        reached = None if missed else float(len(scores))
        metrics = [MetricValue("time_to_target", reached, "s", "lower"), *metrics]
    parameters = {**RECIPE, "target": "none" if target is None else target, **(recipe or {})}
    made = measured("converge", metrics, **parameters)
    named = {
        "framework": framework,
        "framework_version": "1",
        "model": "digits_resnet",
        "precision": "fp32",
        "compiler": "none",
        **case,
    }
    return replace(
        made,
        case=made.case._replace(**named),
        repeat=seed + 1,
        status="not_converged" if missed else "ok",
        reason="accuracy 0.98 was not reached" if missed else "",
        curve=curve,
    )
