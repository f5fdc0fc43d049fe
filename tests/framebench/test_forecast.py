"""The forecast of the time left, against calls whose every task took a known time."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest
from framebench.plan.forecast import Forecast, Left, Task, time_left

#: Of quick: seconds until a framework has started, compiled and checked; images/s in training, on
#: two devices, in mixed precision (None: unsupported), in inference and compiled; sequences/s.
QUICK = {
    "pytorch": (6, 4.10, 7.02, 7.49, 12.55, 15.72, 0.94),
    "tensorflow": (9, 5.38, 5.33, 6.91, 23.73, 22.25, 1.51),
    "mxnet": (4, 5.15, 6.41, 6.81, 21.58, 25.49, 0.87),
    "tensorflow1": (8, 3.48, 5.38, None, 21.18, 22.20, 0.86),
    "jax": (11, 2.94, 2.87, None, 13.11, 21.91, 1.07),
    "paddle": (7, 1.49, 2.65, None, 4.37, 4.45, 0.44),
    "oneflow": (5, 2.02, 3.97, None, 6.60, 7.27, 0.50),
}
SAMPLES, EXPECTED = (2, 4, 2, 2, 2, 1), (20, 20, 20, 13, 13, 24)
NAMES = ("train", "train-2g", "train-amp", "inference", "inference-native", "bert_base")
STEPS = 10

Took = list[tuple[Task, float]]


def quick(seed: int) -> Took:
    """84 runs in two rounds, 21 probes and 49 certificates, with what each takes."""
    rounds: list[Took] = [[], []]
    for framework, (start, *rates) in QUICK.items():
        for name, samples, expected, rate in zip(NAMES, SAMPLES, EXPECTED, rates, strict=True):
            took = start + STEPS * samples / rate if rate else 4.0
            workload = "bert/train" if name == "bert_base" else f"resnet/{name.partition('-')[0]}"
            levels = ("run", framework, workload, f"{framework}/{name}")
            for number, one in enumerate(rounds):
                one.append((Task(f"{framework} {name} r{number}", levels, expected), took))
    chance = random.Random(seed)
    for one in rounds:
        chance.shuffle(one)
    rest: Took = []
    for framework, (start, *_) in QUICK.items():
        for number in range(10):
            name, kind = f"{framework} {number}", "probe" if number < 3 else "comparison"
            expected = 8.0 if kind == "probe" else 6.0
            rest.append(
                (
                    Task(f"{kind} {name}", (kind, framework, name), expected, of_short=0.5),
                    0.65 * start,
                )
            )
    chance.shuffle(rest)
    everything = [*rounds[0], *rounds[1], *rest]
    return [(task, took * chance.uniform(0.92, 1.08)) for task, took in everything]


def zoo(seed: int) -> Took:
    """70 runs of as many cases, none repeated, and 70 certificates: what a model takes has little
    to do with what its operations say."""
    chance = random.Random(seed)
    runs = [
        (Task(f"{n}", ("run", "pytorch", f"m{n // 2}/{n % 2}", f"{n}"), 10.0 + n % 7), took)
        for n in range(70)
        for took in [4.0 + chance.lognormvariate(1.4, 0.7)]
    ]
    chance.shuffle(runs)
    rest = [Task(f"c{n}", ("comparison", "pytorch", f"c{n}"), 6.0, of_short=0.5) for n in range(70)]
    return [*runs, *((task, chance.uniform(2.2, 4.2)) for task in rest)]


def with_failures(seed: int) -> Took:
    """The same, where all that a framework is asked fails at once and one case times out."""
    chance = random.Random(seed)
    dead = chance.choice(list(QUICK))
    late = chance.choice([name for name in QUICK if name != dead])

    def took_of(task: Task, took: float) -> float:
        if task.levels[1] == dead:
            return 3.0
        return 60.0 if task.levels[-1] == f"{late}/train-2g" else took

    return [(task, took_of(task, took)) for task, took in quick(seed)]


def expected_of(factor: float) -> Callable[[int], Took]:
    def made(seed: int) -> Took:
        return [(t._replace(seconds=t.seconds * factor), took) for t, took in quick(seed)]

    return made


def moments(took: Took, parts: tuple[float, ...]) -> Iterator[tuple[Left, float]]:
    """What is forecast at these parts of a call whose tasks follow each other, and the truth."""
    whole = sum(seconds for _, seconds in took)
    for part in parts:
        forecast, now = Forecast(task for task, _ in took), 0.0
        for task, seconds in took:
            forecast.start(task.name, now)
            if now + seconds > part * whole:
                break
            now += seconds
            forecast.finish(task.name, seconds, now, seconds > 4.4)
        yield forecast.left(part * whole), (1 - part) * whole


@pytest.mark.parametrize(
    "call",
    [quick, zoo, with_failures, expected_of(3), expected_of(1 / 3)],
    ids=["quick", "zoo", "failures", "too long", "too short"],
)
def test_from_a_quarter_of_the_way_on_it_is_within_a_fifth(call: Callable[[int], Took]) -> None:
    errors = [
        left.seconds / truth - 1
        for seed in range(20)
        for left, truth in moments(call(seed), (0.25, 0.4, 0.55, 0.7, 0.85))
    ]
    far = [f"{error:+.0%}" for error in errors if abs(error) > 0.2]
    assert len(far) <= 0.05 * len(errors), f"{len(far)} of {len(errors)}: {far}"


@pytest.mark.parametrize("call", [quick, zoo, with_failures], ids=["quick", "zoo", "failures"])
def test_the_truth_is_in_the_range_as_often_as_it_says(call: Callable[[int], Took]) -> None:
    inside = [
        left.low <= truth <= left.high
        for seed in range(40)
        for left, truth in moments(call(seed), (0.25, 0.5))
    ]
    assert sum(inside) >= 0.8 * len(inside), f"{sum(inside)} of {len(inside)}"


def tasks(count: int, **more: object) -> list[Task]:
    return [Task(f"{n}", ("run", "a", "b", f"{n}"), 10.0)._replace(**more) for n in range(count)]


def test_what_was_measured_before_is_known_better() -> None:
    guessed, known = (Forecast(tasks(4, is_measured=before)).left(0.0) for before in (False, True))
    assert guessed.seconds == known.seconds == 40
    assert known.high - known.low < (guessed.high - guessed.low) / 3


def test_what_is_alike_takes_alike() -> None:
    """The nearer, the more."""

    def after(case: str, workload: str, framework: str) -> float:
        levels = ("run", framework, workload, case)
        forecast = Forecast([*tasks(8), Task("asked", levels, 10.0)])
        for number in range(8):
            levels = ("run", "a", "b", "0")
            forecast.add([Task(f"{number}", levels, 10.0)])
            forecast.finish(f"{number}", 40.0, 40.0 * (number + 1))
        return forecast.left(320.0).seconds

    same, workload, framework, other = (
        after(*one) for one in (("0", "b", "a"), ("1", "b", "a"), ("1", "c", "a"), ("1", "c", "x"))
    )
    assert same == pytest.approx(40, rel=0.05)
    assert other < framework < workload < same


def test_several_at_once_take_less() -> None:
    assert Forecast(tasks(8), 4.0).left(0.0).seconds == 20
    forecast = Forecast(tasks(8), 1.0)
    for number in range(4):  # the plan knew nothing of it
        forecast.finish(f"{number}", 10.0, 10.0)
    assert forecast.left(10.0).seconds == pytest.approx(40 / (50 / 20))


def test_a_task_that_is_overdue_is_not_over() -> None:
    forecast = Forecast(tasks(1))
    forecast.start("0", 0.0)
    assert forecast.left(4.0).seconds == 6
    assert forecast.left(30.0).seconds == 6, "a part of what it has taken"


def test_what_is_not_known_counts_for_nothing_until_it_is_added() -> None:
    forecast = Forecast(tasks(1))
    forecast.start("another", 0.0)
    forecast.finish("another", 1000.0, 1.0)
    assert forecast.left(0.0).seconds == 10
    forecast.add([Task("another", ("run",), 5.0)])
    assert forecast.left(0.0).seconds == 15
    for name in ("0", "another"):
        forecast.finish(name, 5.0, 5.0)
    assert forecast.left(9.0) == (0, 0, 0)


@pytest.mark.parametrize(
    ("left", "said"),
    [
        (Left(40, 30, 62), "about 40 s (30 to 62)"),
        (Left(720, 540, 960), "about 12 min (9 to 16)"),
        (Left(9000, 7200, 12000), "about 2.5 h (2.0 to 3.3)"),
        (Left(3 * 86400, 86400, 5.5 * 86400), "about 3.0 days (1.0 to 5.5)"),
        (Left(40, 40, 40), "about 40 s"),
    ],
)
def test_the_range_is_in_the_unit_of_the_forecast(left: Left, said: str) -> None:
    assert time_left(left) == said
