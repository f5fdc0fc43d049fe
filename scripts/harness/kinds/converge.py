"""Training until something is learned: a target on held-out data, or a number of epochs.

The model config names the task, a module of ``scripts/tasks``, or the images come from a folder
(``input: data``) through the framework's own loader. All frameworks get batches from the host in
the same order; each repeat has a seed of its own. After each epoch, a second model in inference
mode is scored on held-out data with the weights and running statistics of the first.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from functools import partial
from typing import Any, Callable, Dict, Mapping, Optional, Sequence

from harness.adapter import Mismatch, Numerics, Unsupported, require
from harness.capabilities import BatchInput, Checkpointing
from harness.kind import (
    AXES,
    Context,
    Kind,
    Metric,
    Parameter,
    TargetMissed,
    Workload,
    above_zero,
    at_least,
    number,
)
from harness.learning import evaluation, saved, sources
from harness.learning.saved import Checkpoint
from harness.learning.sources import NONE, scoring_of
from harness.learning.training import Recipe, schedule_of, softening_of, train, with_soft_targets
from harness.measuring import model
from harness.measuring.checks import check_cores, check_same_weights, compiler_evidence
from harness.measuring.steps import peak_host_memory

#: Parameter value that selects the value in the model config.
OF_MODEL = "model"


def _or(word: str, read: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return a parameter type that accepts ``word`` itself, and other texts as ``read`` does."""
    return lambda text: text if text == word else read(text)


_TARGET = partial(number, fits=lambda value: 0 < value <= 1, allowed=f"{NONE}, or above 0 up to 1")
_SHARE = partial(number, fits=lambda value: 0 <= value < 1, allowed="a number from 0 to below 1")
_ALPHA = partial(number, fits=lambda value: 0 <= value < math.inf, allowed="a number from 0")
_FOLDER = _or(NONE, os.path.abspath)


class Converge(Kind):
    """Training to a target: time and samples that it takes, and the score reached."""

    parameters = (
        Parameter(
            "target", _or(NONE, _TARGET), "", f"score that ends the training, or {NONE}", NONE
        ),
        Parameter("epochs", at_least(1), "epochs", "maximum number of epochs", 10),
        Parameter(
            "epoch_steps", at_least(0), "steps",
            "steps of an epoch, each epoch continuing through the samples; 0: one pass "
            "through all samples", 0,
        ),
        Parameter("schedule", schedule_of, "", "schedule of the learning rate", "one_cycle"),
        Parameter(
            "learning_rate", _or(OF_MODEL, above_zero), "",
            f"peak learning rate, or {OF_MODEL}: the model config's", OF_MODEL,
        ),
        Parameter(
            "learning_rate_batch", at_least(0), "samples",
            "samples per step for which the rate is given; for other numbers it is scaled in "
            "proportion; 0: not scaled", 0,
        ),
        Parameter("warmup", _SHARE, "", "fraction of all steps in which the rate rises", 0.3),
        *(
            Parameter(name, _or(OF_MODEL, _SHARE), "", f"the optimizer's, or {OF_MODEL}", OF_MODEL)
            for name in ("weight_decay", "momentum")
        ),
        Parameter(
            "label_smoothing", _SHARE, "", "part of each label spread over all classes", 0.0
        ),
        Parameter(
            "mixup", _ALPHA, "",
            "parameter of Beta(mixup, mixup), by which images are mixed; 0: none", 0.0
        ),
        Parameter(
            "checkpoints", _FOLDER, "",
            "a folder for checkpoints of each epoch, from which a killed training continues, or "
            f"{NONE}", NONE,
        ),
        Parameter("data", _FOLDER, "", f"the folder of the task's files, or {NONE}", NONE),
        Parameter(
            "start", _FOLDER, "",
            "a safetensors file of weights to start from, a folder in which a training of the same "
            "model, framework, precision, optimizer and seed continues, or "
            f"{NONE}: random weights", NONE,
        ),
        Parameter(
            "weights", _FOLDER, "",
            "a folder for the learned weights, a file that any framework can start from, and the "
            f"state from which the training can continue, or {NONE}", NONE,
        ),
    )  # fmt: skip
    needs = BatchInput
    trains = True
    seed_of_each_repeat = True
    axes = tuple(axis for axis in AXES if axis != "parallelism")

    def metrics(self, workload: Workload) -> Dict[str, Metric]:
        unit = workload.model_config.get("unit", "samples/s")
        return evaluation.metrics(scoring_of(workload), _target_of(workload), unit)

    def measure(self, context: Context) -> None:
        adapter, workload, fields = context.adapter, context.workload, context.fields
        parameters, folder = workload.parameters, workload.parameters["checkpoints"]
        require(adapter, Numerics)
        if {folder, parameters["weights"]} != {NONE}:
            require(adapter, Checkpointing)
            adapter.require_resumable()
        smoothing, mixup = parameters["label_smoothing"], parameters["mixup"]
        how = softening_of(workload.model_config, smoothing, mixup)
        adapter.model_config = with_recipe(workload)
        source = with_soft_targets(sources.training_data(context), how, context)
        evaluator = context.phase("build for evaluation", source.evaluator, "evaluator")
        model.build(context, source.first)
        if parameters["start"] != NONE:
            start = (adapter, parameters["start"], _common_prefix(context))
            fields["started_from"] = context.phase("start", lambda: saved.start_from(*start))
        checkpoint = None
        if folder != NONE:
            rank = context.rank_context
            checkpoint = Checkpoint(folder, _identity(context), rank.rank, rank.world_size)
        before = context.phase("evaluation before training", evaluator.scores, "evaluation")
        fields["untrained"] = before
        arguments = (context, source, recipe_of(workload), evaluator.scores, checkpoint)
        epochs = context.phase("training", lambda: train(*arguments))
        if checkpoint:
            checkpoint.remove()
        if parameters["weights"] != NONE and math.isfinite(epochs[-1]["loss"]):
            left = saved.save_training(adapter, parameters["weights"], _weights_name(context))
            fields.update({"weights_file": left} if left else {})
        check_evaluation(before, epochs[0]["held_out"])
        fields["compiled"] = compiler_evidence(adapter)
        fields["cores"] = check_cores(context.cores)
        fields["peak_device_memory_bytes"] = adapter.peak_device_memory()
        fields["peak_host_memory_bytes"] = peak_host_memory()
        fields["weights_checksum"] = adapter.weights_checksum()
        context.report.enter("end")

    def check(self, workload: Workload, ranks: Sequence[Mapping[str, Any]]) -> None:
        principal = scoring_of(workload).names[0]
        reason = evaluation.missed(ranks[0]["curve"], principal, _target_of(workload))
        if "diverged" not in reason:  # diverged weights are not numbers and cannot be compared
            check_same_weights(ranks)
        if reason:
            raise TargetMissed(reason)


def check_evaluation(before: Mapping[str, float], after: Mapping[str, float]) -> None:
    """Raise :class:`harness.adapter.Mismatch` where the first epoch leaves the evaluated loss
    unchanged: then the evaluated model is not the trained one."""
    if before["loss"] == after["loss"]:
        raise Mismatch(
            "held-out data have the same loss before and after the first epoch: the evaluated "
            "model is not what was trained"
        )


def _identity(context: Context) -> Dict[str, Any]:
    """Return everything that decides a training, step by step."""
    workload, fields = context.workload, context.fields
    others = ("checkpoints", "weights", "target")  # these parameters affect only when training ends
    return {
        "case": workload.case._asdict(),
        "model_config": workload.model_config,
        "parameters": {n: v for n, v in workload.parameters.items() if n not in others},
        "seed": context.rank_context.seed,
        "threads": context.rank_context.threads,
        "device": fields["device"],
        "framework_version": fields["framework_version"],
        "task": fields["task"],
        "started_from": fields.get("started_from"),
    }


def _common_prefix(context: Context) -> str:
    """Return the common beginning of file names of trainings with the same model, framework,
    precision, optimizer and seed."""
    case, parameters = context.workload.case, context.workload.parameters
    values = ((name, parameters[name]) for name in ("weight_decay", "momentum"))
    optimizer = [f"{name}{value}" for name, value in values if value != OF_MODEL]
    seed = f"seed{context.rank_context.seed}"
    return "-".join([case.model, case.framework, case.precision, *optimizer, seed, ""])


def _weights_name(context: Context) -> str:
    """Return the name of the file with a training's result."""
    parameters = context.workload.parameters
    text = json.dumps([_identity(context), parameters["target"]], sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return _common_prefix(context) + digest


def _target_of(workload: Workload) -> Optional[float]:
    target = workload.parameters["target"]
    return None if target == NONE else float(target)


def with_recipe(workload: Workload) -> Dict[str, Any]:
    """Return the model config with the optimizer values that the parameters set. Raises
    :class:`Unsupported` where the optimizer has no such value."""
    hyper = dict(workload.model_config.get("hyperparameters", {}))
    for name in ("weight_decay", "momentum"):
        value = workload.parameters[name]
        if value == OF_MODEL:
            continue
        if name not in hyper:
            raise Unsupported(f"the optimizer of {workload.case.model} has no {name}")
        hyper[name] = value
    return {**workload.model_config, "hyperparameters": hyper}


def recipe_of(workload: Workload) -> Recipe:
    """Return the training recipe that the workload's parameters describe."""
    parameters, peak = workload.parameters, workload.parameters["learning_rate"]
    if peak == OF_MODEL:
        peak = workload.model_config["hyperparameters"]["learning_rate"]
    if parameters["learning_rate_batch"]:
        peak *= workload.case.samples_per_step / parameters["learning_rate_batch"]
    return Recipe(
        epochs=parameters["epochs"],
        score=scoring_of(workload).names[0],
        target=_target_of(workload),
        schedule=parameters["schedule"],
        peak=peak,
        warmup=parameters["warmup"],
    )
