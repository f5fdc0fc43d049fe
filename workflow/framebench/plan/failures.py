"""Which tasks fail, and in how long, learned from those that have ended."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Hashable

from .tasks import Task, Traits

#: The part of the cases that fails in a call of which nothing is known, and the number of cases
#: that it stands for.
_USUAL, _WEIGHT = 0.05, 10.0
#: How probable it is that nothing goes well of what has these traits, before anything is known.
_DEAD = {("framework",): 0.01, ("framework", "precision"): 0.1}
#: Of how many more tasks of a case so many fail as usual: it does again what it did.
_AGAIN = 0.05


class Failures:
    """A case fails again. Of a dead framework, or of its dead precision, nothing goes well; of any
    other so many cases fail as usual: which of both it is follows from the cases that have ended
    (Bayes)."""

    def __init__(self) -> None:
        #: Whether they went well: the tasks of each case, and the cases of each group.
        self._tasks: dict[Traits, list[bool]] = defaultdict(list)
        self._groups: dict[Hashable, dict[Traits, bool]] = defaultdict(dict)
        #: Seconds of what failed, by what it is like.
        self._seconds: dict[Hashable, list[float]] = defaultdict(list)

    def add(self, task: Task, seconds: float, is_ok: bool) -> None:
        """It took so many; ``is_ok``: it did all that it was to do."""
        self._tasks[task.traits].append(is_ok)
        # What fails late, by its time limit perhaps, has begun well: that is the case's own.
        is_late = not is_ok and seconds > task.guess.seconds
        for group in () if is_late else _groups(task.traits):
            self._groups[group][task.traits] = is_ok
        for like in () if is_ok else _likes(task.traits)[: 1 if is_late else None]:
            self._seconds[like].append(seconds)

    def expected(self, task: Task) -> tuple[float, float]:
        """How probable it is that it fails, and after how many seconds."""
        like = next((like for like in _likes(task.traits) if like in self._seconds), None)
        if like is None:
            return 0.0, 0.0
        ended = self._tasks.get(task.traits, [])
        chance = (ended.count(False) + _AGAIN * self._of_new(task.traits)) / (len(ended) + _AGAIN)
        return chance, statistics.median(self._seconds[like])

    def _of_new(self, traits: Traits) -> float:
        """How probable it is that a case fails of which none has ended."""
        bad = {case for cases in self._groups.values() if not any(cases.values()) for case in cases}
        living = [all(went) for case, went in self._tasks.items() if case not in bad]
        usual = (living.count(False) + _USUAL * _WEIGHT) / (len(living) + _WEIGHT)
        for group, dead in _groups(traits).items():
            ended = self._groups.get(group, {})
            if not any(ended.values()):
                # A group that is not dead may have bad luck, however well all others go.
                dead /= dead + (1 - dead) * max(usual, _USUAL) ** len(ended)
                return dead + (1 - dead) * usual
        return usual


def _groups(traits: Traits) -> dict[Hashable, float]:
    """Those that it is in, and how probable it is that they are dead."""
    if not traits.framework:
        return {}
    return {(names, *_values(traits, names)): dead for names, dead in _DEAD.items()}


def _likes(traits: Traits) -> list[Hashable]:
    """What it is like, the nearest first."""
    names = (("kind", "framework"), ("framework",), ("kind",), ())
    return [traits, *((one, *_values(traits, one)) for one in names)]


def _values(traits: Traits, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(getattr(traits, name) for name in names)
