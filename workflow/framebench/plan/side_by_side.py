"""Runs beside each other, where the configuration allows it: how much of the machine each takes,
which of those that wait may start, how long all will take, and where devices are leased.

How many run at a time is decided here, by ``threads`` of Snakemake's jobs, of which the sum never
exceeds ``--cores``. Which devices each of them has is decided by the harness (--lease), because
Snakemake hands out numbers of devices, not devices, and knows nothing of other workflows.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ..machine.local import Machine

if TYPE_CHECKING:
    from ..cases.fitting import Capacity
    from ..config.settings import Settings

Waiting = TypeVar("Waiting")

#: What readers must know of runs that were measured so.
MEANING = (
    "other runs had the rest of the machine meanwhile; a ratio of many devices to few flatters the "
    "many, which had fewer neighbours"
)


@dataclass(frozen=True)
class Room:
    """What there is to share out: ``whole`` logical cores or GPUs, of which a device takes
    ``per_device``."""

    whole: int
    per_device: int
    in_cores: bool

    @staticmethod
    def of(settings: Settings, place: Capacity, machine: Machine) -> Room | None:
        """None where runs follow each other."""
        return Room._of_machine(place, machine) if settings.side_by_side else None

    @staticmethod
    def of_comparisons(settings: Settings, place: Capacity, machine: Machine) -> Room | None:
        """Return the room of comparisons with a reference, which time nothing: on CPUs they may
        have neighbours even where runs have none. None where they follow each other."""
        if settings.cluster or place.cores_per_device is None:
            return Room.of(settings, place, machine)
        return Room._of_machine(place, machine)

    @staticmethod
    def _of_machine(place: Capacity, machine: Machine) -> Room:
        if place.cores_per_device is None:
            return Room(place.devices_per_node, 1, in_cores=False)
        # A core is leased with all threads of its physical core.
        return Room(machine.cores, place.cores_per_device * machine.threads_per_core, in_cores=True)

    def taken(self, devices: int) -> int:
        """By a run with so many devices."""
        return min(self.whole, devices * self.per_device)

    @property
    def at_a_time(self) -> int:
        """How many runs with one device."""
        return self.whole // self.taken(1)

    def threads(self, devices: int, cores: int) -> int:
        """Of a run's job, where Snakemake may use so many cores: as many as keep those from
        starting for which there is no room. With fewer cores than the machine's fewer runs go at a
        time, and one that needs more than that takes all of them, and is alone."""
        part = self.taken(devices)
        scaled = -(-cores * part // self.whole)
        return min(cores, max(part, scaled)) if self.in_cores else scaled


def of_first_round(
    waiting: Collection[Waiting], round_of: Callable[[Waiting], int | None]
) -> list[Waiting]:
    """Those that may start: runs of the first round that still has some (None: no run of a round).

    Else a run that needs many devices would be overtaken by all later runs that need few, because
    one of these fits whenever one ends: the repeats of its case would all come last, and no longer
    see the same drift of the machine as the others'."""
    rounds = [round_of(job) for job in waiting]
    first = min((number for number in rounds if number is not None), default=None)
    return [
        job
        for job, number in zip(waiting, rounds, strict=True)
        if number is None or number == first
    ]


def behind(
    startable: Collection[Waiting],
    running: Iterable[Waiting],
    round_of: Callable[[Waiting], int | None],
) -> list[Waiting]:
    """Those of the ``startable`` before which no run of an earlier round is still running."""
    rounds = [number for job in running if (number := round_of(job)) is not None]
    first = min(rounds, default=None)
    return [
        job
        for job in startable
        if first is None or (number := round_of(job)) is None or number <= first
    ]


def lease_name(room: Room | None) -> str | None:
    """Return the folder of the locks on the devices: the same for all workflows of a user on the
    machine that have one temporary folder. None where nothing goes side by side."""
    if room is None:
        return None
    return str(Path(tempfile.gettempdir(), f"framebench-devices-{os.geteuid()}"))
