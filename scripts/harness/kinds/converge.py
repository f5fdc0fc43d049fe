"""Training until something is learned: a target on held-out data, or a number of epochs.

What is learned is the task that the model's facts name, a module of ``scripts/tasks``. Data are
fed from the host, in an order that is the same in every framework; each repeat has a seed of its
own. Behind each epoch a second model in inference mode is scored with the weights and running
statistics of the first, on data that are held out.
"""

from __future__ import annotations

import math
import os
from dataclasses import asdict
from typing import Any, Dict, Mapping, Optional, Sequence

import tasks

from harness.adapter import Mismatch, Numerics, Unsupported, require
from harness.feeding import Resuming, Scheduling
from harness.kind import (
    Context,
    Kind,
    Metric,
    Parameter,
    Subject,
    TargetMissed,
    above_zero,
    at_least,
)
from harness.learning import batches, curve
from harness.learning.checkpoints import Checkpoint
from harness.learning.evaluation import Evaluator
from harness.learning.rates import schedule_of
from harness.learning.training import Recipe, steps_of_epoch, train
from harness.measuring import libraries, model
from harness.measuring.checks import check_cores, check_same_weights, compiler_proof
from harness.measuring.steps import peak_host_memory

#: In the place of a number: no target; the learning rate of the model's facts.
NONE, OF_MODEL = "none", "model"


def _target(text: str) -> Any:
    return text if text == NONE else _number(text, 0, 1, f"{NONE}, or a number above 0 up to 1")


def _folder(text: str) -> str:
    return text if text == NONE else os.path.abspath(text)


def _rate(text: str) -> Any:
    return text if text == OF_MODEL else above_zero(text)


def _share(text: str) -> float:
    """Below 1."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < 1:
        raise ValueError("must be a number from 0 to below 1")
    return value


def _number(text: str, above: float, up_to: float, allowed: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not above < value <= up_to:
        raise ValueError(f"must be {allowed}")
    return value


class Converge(Kind):
    """Time and samples to a target, and what is reached."""

    parameters = (
        Parameter("target", _target, "", f"score that ends the training, or {NONE}", NONE),
        Parameter("epochs", at_least(1), "epochs", "of training, at most", 10),
        Parameter("schedule", schedule_of, "", "of the learning rate", "one_cycle"),
        Parameter(
            "learning_rate", _rate, "", f"its peak, or {OF_MODEL}: that of the facts", OF_MODEL
        ),
        Parameter("warmup", _share, "", "share of all steps in which the rate rises", 0.3),
        Parameter(
            "checkpoints",
            _folder,
            "",
            f"a folder for what each epoch leaves, so that a killed training goes on, or {NONE}",
            NONE,
        ),
    )
    needs = Scheduling
    seed_of_each_repeat = True

    def mode(self, parameters: Mapping[str, Any]) -> str:
        return "train"

    def metrics(self, subject: Subject) -> Dict[str, Metric]:
        unit = subject.facts.get("unit", "samples/s")
        return curve.metrics(_scores(subject), _target_of(subject), unit)

    def measure(self, context: Context) -> None:
        adapter, subject, fields = context.adapter, context.subject, context.fields
        folder = subject.parameters["checkpoints"]
        require(adapter, Numerics, *[Resuming] * (folder != NONE))
        if folder != NONE and subject.case.devices > 1:
            raise Unsupported("checkpoints are of trainings on one device")
        if "task" not in subject.facts:
            raise Unsupported(f"the facts of {subject.case.model} name no task to be learned")
        task = tasks.load(subject.facts["task"])
        data = task.data()
        fields["task"] = {
            "name": task.name,
            "sha256": tasks.checksum(data),
            "train": tasks.size(data.train),
            "held_out": tasks.size(data.held_out),
        }
        recipe = _recipe(subject)
        steps_of_epoch(tasks.size(data.train), context)
        evaluator = context.phase(
            "build for evaluation", lambda: Evaluator(adapter, task, data.held_out), "evaluator"
        )
        case, place = subject.case, context.place
        first = batches.of_epoch(
            data.train, case.batch_per_device, place.rank, case.devices, place.seed
        )
        model.build(context, next(first))
        checkpoint = None if folder == NONE else Checkpoint(folder, _identity(context))
        before = context.phase("evaluation before training", evaluator.scores, "evaluation")
        fields["untrained"] = before
        found = context.phase(
            "training",
            lambda: train(context, data.train, recipe, evaluator.scores, checkpoint),
        )
        if checkpoint:
            checkpoint.remove()
        check_evaluation(before, found[0]["held_out"])
        fields["compiled"] = compiler_proof(adapter)
        fields["cores"] = check_cores(context.cores)
        fields["peak_device_memory_bytes"] = adapter.peak_device_memory()
        fields["peak_host_memory_bytes"] = peak_host_memory()
        fields["weights_checksum"] = adapter.weights_checksum()
        context.report.enter("end")
        fields["libraries"] = libraries.in_use()

    def check(self, subject: Subject, ranks: Sequence[Mapping[str, Any]]) -> None:
        reason = curve.missed(ranks[0]["curve"], _scores(subject)[0], _target_of(subject))
        if "diverged" not in reason:  # weights that are no numbers are not compared
            check_same_weights(ranks)
        if reason:
            raise TargetMissed(reason)


def check_evaluation(before: Mapping[str, float], behind: Mapping[str, float]) -> None:
    """What is scored is what was trained: its loss is another one behind the first epoch. Raises
    :class:`harness.adapter.Mismatch`."""
    if before["loss"] == behind["loss"]:
        raise Mismatch(
            "held-out data have the same loss before and behind the first epoch: what is scored is "
            "not what was trained"
        )


def _identity(context: Context) -> Dict[str, Any]:
    """What decides a training, step by step."""
    subject, fields = context.subject, context.fields
    others = ("checkpoints", "target")  # which decide where it ends
    return {
        "case": asdict(subject.case),
        "facts": subject.facts,
        "parameters": {n: v for n, v in subject.parameters.items() if n not in others},
        "seed": context.place.seed,
        "threads": context.place.threads,
        "device": fields["device"],
        "framework_version": fields["framework_version"],
        "task": fields["task"],
    }


def _scores(subject: Subject) -> Sequence[str]:
    """Names of what outputs are scored by; of a model without a task, the usual one."""
    task = subject.facts.get("task")
    return tasks.load(task).scores if task else ("accuracy",)


def _target_of(subject: Subject) -> Optional[float]:
    target = subject.parameters["target"]
    return None if target == NONE else float(target)


def _recipe(subject: Subject) -> Recipe:
    given, rate = subject.parameters, subject.parameters["learning_rate"]
    return Recipe(
        epochs=given["epochs"],
        score=_scores(subject)[0],
        target=_target_of(subject),
        schedule=given["schedule"],
        peak=subject.facts["hyperparameters"]["learning_rate"] if rate == OF_MODEL else rate,
        warmup=given["warmup"],
    )
