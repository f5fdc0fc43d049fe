"""Train epochs, each followed by an evaluation, until the target is reached. The learning rate
follows a schedule, which begins with a warm-up; targets may be soft.

Soft targets (label smoothing and mixup) are computed on the host, alike for every framework.
``labels`` become probabilities of all classes, float32 (batch, classes), which the losses of image
models accept instead of classes, int64 (batch,)."""

from __future__ import annotations

import math
import time
from typing import (
    Any,
    Callable,
    Dict,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
)

from tasks import Arrays

from harness.adapter import Unsupported
from harness.kind import Context
from harness.learning.saved import Checkpoint
from harness.learning.sources import TrainingData

#: Function from progress to the rate relative to the peak, both from 0 to 1.
Part = Callable[[float], float]


def _half_cosine(begin: float, end: float) -> Part:
    return lambda done: end + (begin - end) * (1 + math.cos(math.pi * done)) / 2


#: Begin and end of one cycle relative to its peak, as in PyTorch's OneCycleLR (whose momentum cycle
#: is left out).
FIRST, LAST = 1 / 25, 1 / 25 / 1e4
ONE_CYCLE = "one_cycle"
#: Decay by schedule, after the warm-up, which is linear except in "one_cycle". "cosine":
#: Loshchilov and Hutter 2016 (arXiv:1608.03983); "linear": as BERT is fine-tuned (Devlin et al.
#: 2018, arXiv:1810.04805); "one_cycle": Smith and Topin 2017 (arXiv:1708.07120).
FALLING: Mapping[str, Part] = {
    "constant": lambda done: 1.0,
    "cosine": _half_cosine(1.0, 0.0),
    "linear": lambda done: 1.0 - done,
    ONE_CYCLE: _half_cosine(1.0, LAST),
}
SCHEDULES = tuple(FALLING)
#: Schedule with parameters after colons: the power of the fall, and the final rate relative to the
#: peak. It is TensorFlow's PolynomialDecay after a linear warm-up.
POLYNOMIAL = "polynomial"
#: Number of last steps of an epoch in ``final_loss``, the same as in the log of NVIDIA's ELECTRA.
FINAL = 10


def schedule_of(text: str) -> str:
    """Return the schedule that ``text`` names. Raises ValueError for an unknown one."""
    polynomial = _power_and_end(text)
    if polynomial:
        return ":".join([POLYNOMIAL, *(format(number, "g") for number in polynomial)])
    if text not in SCHEDULES:
        known = ", ".join(SCHEDULES)
        raise ValueError(
            f"must be one of: {known}, {POLYNOMIAL}:POWER:END (above 0, and from 0 to 1)"
        )
    return text


def _power_and_end(schedule: str) -> Optional[Tuple[float, float]]:
    """Return power and final value of a polynomial schedule; None for other schedules."""
    name, *numbers = schedule.split(":")
    try:
        power, end = map(float, numbers)
    except ValueError:
        return None
    return (power, end) if name == POLYNOMIAL and 0 < power < math.inf and 0 <= end <= 1 else None


def rate_at(schedule: str, peak: float, warmup: float, step: int, steps: int) -> float:
    """Return the learning rate of ``step``, from 0, of ``steps``.

    ``warmup``: share of the steps in which the rate rises; the last of them has the peak.
    Afterwards the rate falls."""
    rising = round(warmup * steps)
    if step < rising:
        done = (step + 1) / rising
        return peak * (_half_cosine(FIRST, 1.0)(done) if schedule == ONE_CYCLE else done)
    done = (step - rising) / (steps - rising)
    polynomial = _power_and_end(schedule)
    if polynomial is None:
        return peak * FALLING[schedule](done)
    power, end = polynomial
    left: float = (1 - done) ** power
    return peak * (end + (1 - end) * left)


class Recipe(NamedTuple):
    """Training recipe.

    ``target``: target of the principal ``score``, None without one. ``peak``: largest learning
    rate. ``warmup``: share of all steps in which it rises."""

    epochs: int
    score: str
    target: Optional[float]
    schedule: str
    peak: float
    warmup: float


def train(
    context: Context,
    source: TrainingData,
    recipe: Recipe,
    evaluate: Callable[[], Dict[str, float]],
    checkpoint: Optional[Checkpoint] = None,
) -> List[Dict[str, Any]]:
    """Train a built model; return the learning curve, see :mod:`harness.learning.evaluation`.

    Entries also go to ``fields["curve"]`` as they come. The loss of each step is read, which waits
    for it. All ranks stop together, when the first has reached the target, or a rank's loss is not
    a number. ``checkpoint``: restored first, and saved after each epoch."""
    adapter, clock, each = context.adapter, time.perf_counter, source.steps
    curve: List[Dict[str, Any]] = context.fields.setdefault("curve", [])

    def over() -> bool:
        done = is_done(curve[-1], recipe, context.rank_context.rank)
        return bool(adapter.all_reduce(float(done)) > 0)

    if checkpoint:
        curve += checkpoint.load(adapter)
        context.fields["resumed_after"] = len(curve)
        if curve and over():
            return curve
    rate: Optional[float] = None
    start = context.fields["window_start"] = clock()
    for epoch in range(len(curve), recipe.epochs):
        context.report.enter(f"epoch {epoch + 1}")  # the report now has the curve so far
        begin, losses = clock(), []
        for number, batch in enumerate(source.batches_in_epoch(epoch)):
            step = epoch * each + number
            scheduled = rate_at(
                recipe.schedule, recipe.peak, recipe.warmup, step, recipe.epochs * each
            )
            if scheduled != rate:
                rate = scheduled
                adapter.set_learning_rate(rate)
            adapter.feed(batch)
            losses.append(adapter.read(adapter.step()))
        adapter.synchronize()
        trained = clock()
        held_out = evaluate()
        curve.append(
            {
                "epoch": epoch + 1,
                "samples": each * context.workload.case.samples_per_step,
                "train_seconds": trained - begin,
                "evaluation_seconds": clock() - trained,
                "loss": mean(losses),
                "final_loss": mean(losses[-FINAL:]),
                "learning_rate": rate,
                "held_out": held_out,
            }
        )
        if checkpoint:
            checkpoint.save(adapter, curve)
        if over():
            break
    context.fields["window_seconds"] = clock() - start
    return curve


def mean(losses: Sequence[float]) -> float:
    """Return the mean; NaN where a loss is NaN."""
    return math.fsum(losses) / len(losses) if all(map(math.isfinite, losses)) else math.nan


def is_done(epoch: Dict[str, Any], recipe: Recipe, rank: int) -> bool:
    """Return whether a rank wants to stop after ``epoch``.

    Only the first rank compares its score with the target, because a rank's score depends on its
    own running statistics."""
    target, score = recipe.target, epoch["held_out"][recipe.score]
    is_reached = rank == 0 and target is not None and score >= target
    return is_reached or not math.isfinite(epoch["loss"])


class Softening(NamedTuple):
    """Parameters of soft targets.

    ``smoothing``: part of each target that is spread evenly over all ``classes`` (Szegedy et al.
    2016, arXiv:1512.00567). ``mixup``: parameter of Beta(mixup, mixup), by which two samples are
    mixed (Zhang et al. 2018, arXiv:1710.09412), 0 for none."""

    smoothing: float
    mixup: float
    classes: int


def softening_of(
    model_config: Mapping[str, Any], smoothing: float, mixup: float
) -> Optional[Softening]:
    """Return the parameters of label smoothing and mixup; None if both are 0. Raises
    :class:`Unsupported` for models whose samples are not images of one class each."""
    if not smoothing and not mixup:
        return None
    names = {declaration["name"] for declaration in model_config["inputs"]}
    classes = model_config.get("hyperparameters", {}).get("classes")
    if not {"images", "labels"} <= names or not classes:
        name = model_config["name"]
        raise Unsupported(f"label smoothing and mixup need images with one class each, not {name}")
    return Softening(smoothing, mixup, int(classes))


def softened(batch: Arrays, how: Softening, seed: Sequence[int]) -> Arrays:
    """Return ``batch`` with soft targets. ``seed``: seeds of the mixture, numbers from 0 to below
    2**32.

    Each sample gets a random share, and is mixed with its mirror image in the batch, the first with
    the last, as NVIDIA's ResNet-50 does. Images and targets are mixed by the same share."""
    import numpy as np

    labels = batch["labels"]
    spread = how.smoothing / how.classes
    answers = np.full((len(labels), how.classes), spread, np.float64)
    answers[np.arange(len(labels)), labels] += 1 - how.smoothing
    images = np.asarray(batch["images"])
    if how.mixup:
        # RandomState, not Generator: its stream is the same in every numpy since 1.0.
        random = np.random.RandomState(list(seed))
        share = random.beta(how.mixup, how.mixup, (len(labels), 1))
        answers = share * answers + (1 - share) * answers[::-1]
        kept = share.astype(np.float32).reshape(-1, *[1] * (images.ndim - 1))
        images = kept * images + (1 - kept) * images[::-1]
    return {**batch, "images": images, "labels": answers.astype(np.float32)}


def with_soft_targets(
    source: TrainingData, how: Optional[Softening], context: Context
) -> TrainingData:
    """Return ``source`` with soft targets in training; unchanged if ``how`` is None."""
    if how is None:
        return source
    softer, seed, rank = how, context.rank_context.seed, context.rank_context.rank

    def batches_in_epoch(epoch: int) -> Iterator[Arrays]:
        for number, batch in enumerate(source.batches_in_epoch(epoch)):
            yield softened(batch, softer, (seed, epoch, number, rank))

    first = softened(source.first, softer, (seed, 0, 0, rank))
    return source._replace(first=first, batches_in_epoch=batches_in_epoch)
