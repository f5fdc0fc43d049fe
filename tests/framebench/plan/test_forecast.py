"""The forecast of the time left, against calls whose every task took a known time."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest
from framebench.plan import effects, estimates
from framebench.plan.forecast import Forecast, Left, time_left
from framebench.plan.tasks import Guess, Task, Traits
from framebench.terminal import told
from framebench.terminal.told import Moment, TaskRow

#: Calls that were really made: what was expected of each task, what it took, and when it ended.
#: `benchmarks/forecast_replay.py` writes them.
REAL = sorted((Path(__file__).parents[2] / "data" / "calls").glob("*.csv"))

#: Of quick: seconds until a framework has started; more until it trains; images/s in training, on
#: two devices, in mixed precision (None: unsupported), in inference and compiled; sequences/s.
QUICK = {
    "pytorch": (3, 1, 4.10, 7.02, 7.49, 12.55, 15.72, 0.94),
    "tensorflow": (4, 3, 5.38, 5.33, 6.91, 23.73, 22.25, 1.51),
    "mxnet": (3, 1, 5.15, 6.41, 6.81, 21.58, 25.49, 0.87),
    "tensorflow1": (3, 3, 3.48, 5.38, None, 21.18, 22.20, 0.86),
    "jax": (3, 8, 2.94, 2.87, None, 13.11, 21.91, 1.07),
    "paddle": (2, 1, 1.49, 2.65, None, 4.37, 4.45, 0.44),
    "oneflow": (3, 1, 2.02, 3.97, None, 6.60, 7.27, 0.50),
}
SAMPLES, EXPECTED = (2, 4, 2, 2, 2, 1), (8.2, 8.2, 8.2, 2.7, 2.7, 14)
NAMES = ("train", "train-2g", "train-amp", "inference", "inference-native", "bert_base")
STEPS = 10

#: A task, the seconds that it took, its status.
Took = list[tuple[Task, float, str]]


def traits(kind: str, framework: str, name: str) -> Traits:
    mode = "inference" if "inference" in name else "train"
    model = "bert" if "bert" in name else "resnet"
    precision, compiler = ("amp" * ("amp" in name), "native" * ("native" in name))
    devices = "1n2g" if "2g" in name else "1n1g"
    return Traits(kind, framework, model, mode, precision, compiler, devices, name)


def quick(seed: int) -> Took:
    """84 runs in two rounds, 21 probes and 49 certificates, with what each takes: the guesses know
    the frameworks' starts, and not their rates."""
    chance = random.Random(seed)
    rounds: list[Took] = [[], []]
    rest: Took = []
    for framework, (start, more, *rates) in QUICK.items():
        for name, samples, expected, rate in zip(NAMES, SAMPLES, EXPECTED, rates, strict=True):
            begun = start + more * ("inference" not in name)
            took = begun + STEPS * samples / rate if rate else 1.5
            for number, one in enumerate(rounds):
                task = Task(f"{framework} {name} r{number}", traits("run", framework, name),
                            Guess(begun, expected))  # fmt: skip
                one.append((task, took, "ok" if rate else "unsupported"))
        for number in range(10):
            kind = "probe" if number < 3 else "comparison"
            task = Task(f"{kind} {framework} {number}", Traits(kind, framework, case=f"{number}"),
                        Guess(0.65 * start))  # fmt: skip
            rest.append((task, 0.65 * start, "ok"))
    for one in (*rounds, rest):
        chance.shuffle(one)
    everything = [*rounds[0], *rounds[1], *rest]
    return [(task, took * chance.uniform(0.92, 1.08), status) for task, took, status in everything]


def zoo(seed: int) -> Took:
    """70 runs of as many cases, none repeated, and 70 certificates: what a model takes has little
    to do with what its operations say."""
    chance = random.Random(seed)
    runs = [
        (Task(f"{n}", Traits("run", "pytorch", f"m{n // 2}", f"{n % 2}", case=f"{n}"),
              Guess(3.0, 1.0 + n % 7)), 3.0 + chance.lognormvariate(1.4, 0.7), "ok")
        for n in range(70)
    ]  # fmt: skip
    chance.shuffle(runs)
    rest = [
        (Task(f"c{n}", Traits("comparison", "pytorch", case=f"c{n}"), Guess(2.0)),
         chance.uniform(1.9, 3.2), "ok")
        for n in range(70)
    ]  # fmt: skip
    return [*runs, *rest]


def with_failures(seed: int) -> Took:
    """The same as quick, where all that a framework is asked fails at once and one case times
    out."""
    chance = random.Random(seed)
    dead = chance.choice(list(QUICK))
    late = chance.choice([name for name in QUICK if name != dead])

    def as_it_goes(task: Task, took: float, status: str) -> tuple[Task, float, str]:
        if task.traits.framework == dead:
            return task, 3.0, "failed"
        if (task.traits.framework, task.traits.case) == (late, "train-2g"):
            return task, 60.0, "timeout"
        return task, took, status

    return [as_it_goes(*one) for one in quick(seed)]


def guessed(factor: float) -> Callable[[int], Took]:
    def made(seed: int) -> Took:
        return [
            (task._replace(guess=task.guess.of(task.guess.seconds * factor)), took, status)
            for task, took, status in quick(seed)
        ]

    return made


def drawn(rows: list[TaskRow], seed: int) -> list[TaskRow]:
    """The same tasks, whose times are of the distribution that the forecast takes them to have, but
    for environments and what else is not measured: these take what they took."""
    chance, shared = random.Random(seed), dict[object, float]()

    def of(effect: object, deviation: float) -> float:
        if effect not in shared:
            shared[effect] = chance.gauss(0, deviation)
        return shared[effect]

    made, now = [], 0.0
    for row in rows:
        task, took = told.task_of(row), float(row.took)
        if task.traits.kind in effects._MEASURING and row.status == "ok":
            parts = [
                seconds * math.exp(sum(of(*one) for one in effects._effects(task, part)))
                for part, seconds in enumerate(task.guess)
            ]
            own = of(task.traits, effects._CASE) + chance.gauss(0, effects._REPEAT)
            took = sum(parts) * math.exp(own)
        now += took
        made.append(row._replace(took=f"{took:.2f}", ended=f"{now:.2f}"))
    return made


def rows_of(took: Took) -> list[TaskRow]:
    """Of tasks that follow each other."""
    rows, now = [], 0.0
    for task, seconds, status in took:
        now += seconds
        rows.append(told.row_of("now", 1.0, task, status, seconds, now))
    return rows


def far(moments: list[Moment]) -> list[str]:
    return [f"{one.error:+.0%} at {one.part:.0%}" for one in moments if not one.is_near]


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.stem)
def test_in_a_real_call_it_is_within_a_fifth_from_a_quarter_of_the_way_on(path: Path) -> None:
    """Behind each result, while more is left than the longest task takes; and the truth is in the
    range that the plan has said, and in four of five of those said on the way."""
    calls, problems = told.load(path)
    assert not problems
    ((_, rows),) = calls.items()
    judged = told.judged(rows)
    assert len(judged) > 30
    assert not far(judged)
    (plan,) = told.moments(rows, (0.0,))
    assert plan.is_in_range, plan
    inside = [one.is_in_range for one in judged]
    assert sum(inside) >= 0.8 * len(inside), f"{sum(inside)} of {len(inside)}"


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.stem)
def test_in_calls_that_go_otherwise_the_range_holds_as_often_as_it_says(path: Path) -> None:
    """In four of five, but for what so few calls may be off by chance: two standard errors."""
    ((_, rows),) = told.load(path)[0].items()
    calls = 60
    found = [m for seed in range(calls) for m in told.moments(drawn(rows, seed), (0.25, 0.5, 0.7))]
    inside, error = sum(one.is_in_range for one in found) / len(found), (0.8 * 0.2 / calls) ** 0.5
    assert 0.8 - 2 * error <= inside <= 0.95, inside


def test_the_kept_calls_have_the_guesses_of_today() -> None:
    """Of certificates: the import, whatever the model, and a part of what is compiled."""
    guesses = defaultdict(set)
    for path in REAL:
        for row in told.load(path)[0].popitem()[1]:
            task = told.task_of(row)
            kind, framework, _, mode, _, compiler, *_ = task.traits
            if kind == "comparison":
                guesses[framework].add(task.guess)
                guess = estimates.start_of(framework, mode, compiler, is_small=True)
                assert task.guess == Guess(round(guess, 2)), row.task
    assert len(guesses) == 7
    assert len(guesses["jax"]) > 1, "that it trains makes no difference"


def test_that_runs_take_what_was_guessed_says_nothing_of_certificates() -> None:
    """How far apart kinds may be is known before, and is not learned from one of them."""
    runs = [
        Task(f"{n}", Traits("run", "a", f"m{n}", "train", case=f"{n}"), Guess(3.0, 1.0))
        for n in range(60)
    ]
    rest = [
        Task(f"c{n}", Traits("comparison", "a", f"m{n}", "train", case=f"c{n}"), Guess(3.0))
        for n in range(60)
    ]
    forecast = Forecast([*runs, *rest])
    for number, run in enumerate(runs):
        forecast.finish(run.name, 4.0, 4.0 * (number + 1))
    before = forecast.left(240.0)
    assert before.high / before.seconds > 1.5, before
    for number, one in enumerate(rest[:20]):
        forecast.finish(one.name, 4.5, 240.0 + 4.5 * (number + 1))
    after = forecast.left(330.0)
    assert after.high / after.seconds < 1.15, "what is known by now"
    assert after.seconds == pytest.approx(40 * 4.5, rel=0.05)


@pytest.mark.parametrize(
    "call",
    [quick, zoo, with_failures, guessed(2), guessed(1 / 2)],
    ids=["quick", "zoo", "failures", "too long", "too short"],
)
def test_from_a_quarter_of_the_way_on_it_is_within_a_fifth(call: Callable[[int], Took]) -> None:
    parts = (0.25, 0.4, 0.55, 0.7, 0.85)
    found = [one for seed in range(20) for one in told.moments(rows_of(call(seed)), parts)]
    assert len(far(found)) <= 0.05 * len(found), f"of {len(found)}: {far(found)}"


@pytest.mark.parametrize("call", [quick, zoo, with_failures], ids=["quick", "zoo", "failures"])
def test_the_truth_is_in_the_range_as_often_as_it_says(call: Callable[[int], Took]) -> None:
    found = [m for seed in range(20) for m in told.moments(rows_of(call(seed)), (0.25, 0.5))]
    inside = sum(one.is_in_range for one in found)
    assert inside >= 0.8 * len(found), f"{inside} of {len(found)}"


def tasks(count: int, **more: object) -> list[Task]:
    return [
        Task(f"{n}", Traits("run", "a", "b", case=f"{n}"), Guess(5.0, 5.0))._replace(**more)
        for n in range(count)
    ]


def test_what_was_measured_before_is_known_better() -> None:
    new, known = (Forecast(tasks(4, is_measured=before)).left(0.0) for before in (False, True))
    assert new.seconds == known.seconds == 40
    assert known.high - known.low < (new.high - new.low) / 3


def test_what_is_alike_takes_alike() -> None:
    """The nearer, the more."""

    def after(case: str, model: str, framework: str) -> float:
        asked = Task("asked", Traits("run", framework, model, case=case), Guess(5.0, 5.0))
        like = tasks(1)[0]
        forecast = Forecast([asked])
        for number in range(8):
            forecast.add([like._replace(name=f"{number}")])
            forecast.finish(f"{number}", 40.0, 40.0 * (number + 1))
        return forecast.left(320.0).seconds

    same, model, framework, other = (
        after(*one) for one in (("0", "b", "a"), ("1", "b", "a"), ("1", "c", "a"), ("1", "c", "x"))
    )
    assert same == pytest.approx(40, rel=0.05)
    assert 10 < other < framework < model < same


def test_a_slow_start_says_more_of_starts_than_of_steps() -> None:
    """Where the machine is known from another framework, one that starts slowly is expected to do
    so in its certificates and probes, too; its long runs hardly take longer."""
    traits = Traits("run", "x", "b", "inference")
    known = [
        (Task(f"x{n}", traits._replace(case=f"x{n}"), Guess(5.0, work)), 5.0 + work)
        for n, work in enumerate((0.1, 95.0) * 6)
    ]
    slow = [
        (Task(f"a{n}", traits._replace(framework="a", case=f"a{n}"), Guess(5.0, 0.1)), 20.0)
        for n in range(6)
    ]

    def after(asked: Task) -> float:
        forecast, now = Forecast([*(task for task, _ in known + slow), asked]), 0.0
        for task, took in known + slow:
            now += took
            forecast.finish(task.name, took, now)
        return forecast.left(now).seconds

    assert after(Task("short", Traits("probe", "a", case="short"), Guess(5.0))) > 8.5
    long = after(Task("long", traits._replace(framework="a", case="long"), Guess(5.0, 95.0)))
    assert 100 < long < 140


def test_of_a_framework_of_which_nothing_goes_well_nothing_is_expected() -> None:
    """And one that has gone well once is not written off, whatever fails besides."""

    def after(first: bool) -> float:
        forecast, now = Forecast(tasks(12)), 0.0
        for number in range(4):
            well = first and not number
            seconds = 10.0 if well else 1.0
            now += seconds
            forecast.finish(f"{number}", seconds, now, well)
        return forecast.left(now).seconds

    assert after(first=False) < 16
    assert after(first=True) > 45


def test_a_case_that_failed_fails_again() -> None:
    (task,) = tasks(1)
    forecast = Forecast([*tasks(2), task._replace(name="again")])
    forecast.finish("0", 60.0, 60.0, is_ok=False)
    forecast.finish("1", 10.0, 70.0)
    assert forecast.left(70.0).seconds == pytest.approx(60, rel=0.06)


def test_several_at_once_take_less() -> None:
    assert Forecast(tasks(8), 4.0).left(0.0).seconds == 20
    forecast = Forecast(tasks(8), 1.0)
    for number in range(4):  # the plan knew nothing of it
        forecast.finish(f"{number}", 10.0, 10.0)
    assert forecast.left(10.0).seconds == pytest.approx(40 / (50 / 20), rel=0.05)


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
    forecast.add([Task("another", Traits("run"), Guess(5.0))])
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
