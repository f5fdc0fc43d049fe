"""What is done, what is to do, how long it will take, and how far it has come."""

from __future__ import annotations

import os
import re
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from . import disturbance, matrix, record_files, records, repeats
from .catalog import Catalog, forward_multiply_adds
from .config import Settings, Suite
from .environments import EnvironmentFile, read_environment_file
from .machine import Machine
from .matrix import Capacity, Case, LeftOut
from .records import RecordSet
from .run import Run

RECORD_NAME = re.compile(r"r(\d+)(?:-retry(\d+))?\.json")

#: Rough rates until something has been measured here: floating-point operations per second of
#: one core and of one GPU, seconds to start a run and to build an environment.
CORE_RATE, GPU_RATE, START_SECONDS, ENVIRONMENT_SECONDS = 5e10, 1e13, 10.0, 60.0

# What a run has of a case. Sequence length and variant stand, with the settings, in its variant.
_KEYS = tuple(key for key in Case._fields if key not in ("sequence_length", "variant"))


class PlannedRun(NamedTuple):
    """``name`` is the record's path below ``results/runs`` without ``.json``; ``status`` is that
    of its record, or ``""`` while it is to be run; ``seconds`` is the expected wall time."""

    case: Case
    repeat: int
    name: str
    status: str
    seconds: float


@dataclass(frozen=True)
class Plan:
    """The whole of a suite on this machine."""

    settings: Settings
    place: Capacity
    folders: dict[Case, str]
    runs: list[PlannedRun]
    reserve: list[PlannedRun]
    """Repeats that are run only if those before them do not make an interval narrow enough."""
    left_out: list[LeftOut]
    environments: dict[str, EnvironmentFile]
    """By software (see :func:`software`); what has none has an interpreter of the user's."""
    interpreters: dict[str, str]
    cached: int
    """Number of cached records behind the estimates."""

    @property
    def pending(self) -> list[PlannedRun]:
        return [run for run in self.runs if not run.status]


def make_plan(
    settings: Settings, catalog: Catalog, machine: Machine, cached: RecordSet | None
) -> Plan:
    """Expand the suite and compare it with the records that are there.

    A record of another content than it should have (truncated, foreign, of another case or other
    settings) is left alone; its run is planned again under the next retry's name. So is one whose
    status is in ``retry``, and a disturbed one of fewer retries than ``rerun_disturbed``.
    """
    everything = matrix.cases(settings.suite, catalog)
    wanted = matrix.narrow(everything, settings)
    place = matrix.capacity(settings, machine, everything)
    cases, left_out = matrix.fit(wanted, place)
    environments, interpreters = _software(cases, settings, catalog, place.accelerator)
    folders = {
        case: matrix.case_folder(
            case,
            {
                **request(software(case, settings.suite), settings, place, environments),
                **_variables(case, settings.suite),
            },
        )
        for case in cases
    }
    runs = _as_asked(cached.runs if cached else (), folders, settings, place)
    needed = _needed(folders, settings, runs)
    latest = {run.origin: run for run in runs}
    seconds = _estimates(folders, settings, place, catalog, latest)
    present = {folder: _attempts(settings.results / "runs" / folder) for folder in folders.values()}
    planned: list[PlannedRun] = []
    reserve: list[PlannedRun] = []
    most = max([settings.suite.repeats.at_most, *needed.values()])
    for key in matrix.rounds(cases, most, settings.seed):
        folder = folders[key.case]
        name, status = _record_of(folder, key.repeat, present[folder], latest, settings)
        run = PlannedRun(key.case, key.repeat, name, status, seconds[key.case])
        (planned if key.repeat <= needed[key.case] else reserve).append(run)
    return Plan(
        settings, place, folders, planned, reserve, left_out, environments, interpreters,
        len(latest),
    )  # fmt: skip


def software(case: Case, suite: Suite) -> str:
    """The name of what a case runs in: its framework, or ``FRAMEWORK@VARIANT`` where the variant
    brings an environment or an interpreter of its own."""
    variant = suite.variants.get(case.variant)
    own = variant and case.framework in {**variant.environments, **variant.interpreters}
    return f"{case.framework}@{case.variant}" if own else case.framework


def _software(
    cases: Iterable[Case], settings: Settings, catalog: Catalog, accelerator: str
) -> tuple[dict[str, EnvironmentFile], dict[str, str]]:
    """Environment files and interpreters of all software that the cases need."""
    environments: dict[str, EnvironmentFile] = {}
    interpreters = dict(settings.interpreters)
    # A framework's usual software is known too where only variants run: certificates are of it.
    for name in dict.fromkeys(
        name for case in cases for name in (case.framework, software(case, settings.suite))
    ):
        framework, _, variant = name.partition("@")
        own = settings.suite.variants.get(variant)
        if own and framework in own.interpreters:
            interpreters[name] = own.interpreters[framework]
        elif own and framework in own.environments:
            environments[name] = read_environment_file(own.environments[framework])
        elif name not in interpreters:
            file = catalog.environment_file(framework, accelerator)
            environments[name] = read_environment_file(file)
    return environments, interpreters


def _variables(case: Case, suite: Suite) -> dict[str, Any]:
    variant = suite.variants.get(case.variant)
    return {"variables": variant.variables} if variant and variant.variables else {}


def further(plan: Plan) -> list[PlannedRun]:
    """The next repeats of the cases whose interval is still too wide, now that all runs asked for
    so far have left their records."""
    folder = plan.settings.results / "runs"
    found = records.load(folder).runs if folder.is_dir() else ()
    runs = _as_asked(found, plan.folders, plan.settings, plan.place)
    needed = _needed(plan.folders, plan.settings, runs)
    return [
        run
        for run in plan.reserve
        if run.repeat <= needed[run.case] and not Path(folder, f"{run.name}.json").exists()
    ]


def request(
    name: str,
    settings: Settings,
    place: Capacity,
    environments: dict[str, EnvironmentFile],
) -> dict[str, Any]:
    """Everything besides the case that decides what is measured in the software ``name``. An
    environment is known by the content of its file, an existing interpreter by its path."""
    if name in environments:
        environment = environments[name].digest
    else:
        framework, _, variant = name.partition("@")
        own = settings.suite.variants.get(variant)
        environment = (own.interpreters if own else settings.interpreters)[framework]
    return {**_measuring(settings, place), "seed": settings.seed, "environment": environment}


def _measuring(settings: Settings, place: Capacity) -> dict[str, Any]:
    """The part of a request that stands in a record's settings and in the variant of its run."""
    suite = settings.suite
    return {
        "accelerator": place.accelerator,
        "cores_per_device": place.cores_per_device,
        "warmup_steps": suite.warmup_steps,
        **({"warmup_limit": suite.warmup_limit} if suite.warmup_limit else {}),
        "timed_steps": suite.timed_steps,
    }


def describe(plan: Plan, description: str = "") -> str:
    """The plan as text: every case, its runs, what is left out and why, the time."""
    suite, place = plan.settings.suite, plan.place
    cases = list(plan.folders)
    seconds = {run.case: run.seconds for run in plan.runs}
    statuses: dict[Case, Counter[str]] = defaultdict(Counter)
    for run in plan.runs:
        statuses[run.case][run.status or "to do"] += 1
    cores = f" of {place.cores_per_device} core(s)" if place.cores_per_device else ""
    limit = f" to {suite.warmup_limit}" if suite.warmup_limit else ""
    warmup = f"{suite.warmup_steps}{limit}"
    width = suite.repeats.width
    until = f" (as many as make the interval {width:.1%} wide)" if width else ""
    lines = [
        f"Suite {suite.name} ({suite.path})" + (f": {description}" if description else ""),
        f"  {len(cases)} cases x {suite.repeats} repeats{until} = {len(plan.runs)} runs, each "
        f"{warmup} warm-up and {suite.timed_steps} timed steps",
        f"  on {place.accelerator}: {place.devices_per_node} device(s){cores}",
        f"  to do: {len(plan.pending)} runs, about {duration(remaining(plan))} "
        + (
            f"(from {plan.cached} cached records)"
            if plan.cached
            else "(a rough guess: nothing has been measured here yet)"
        ),
        *_at_most(plan),
        "",
        *_table(
            ["case", "runs", "s/run", "state"],
            [
                [
                    str(case),
                    str(suite.repeats),
                    f"{seconds[case]:.0f}",
                    ", ".join(f"{count} {status}" for status, count in statuses[case].items()),
                ]
                for case in cases
            ],
        ),
    ]
    if plan.left_out:
        lines += ["", f"Left out: {len(plan.left_out)} cases"]
        lines += _table(["case", "why"], [[str(case), why] for case, why in plan.left_out])
    needed = {software(run.case, suite) for run in plan.pending} & set(plan.environments)
    files = [plan.environments[name] for name in sorted(needed)]
    missing = [file.path.name for file in files if not Path(file.marker).exists()]
    if missing:
        time_for_it = duration(ENVIRONMENT_SECONDS * len(missing))
        lines += ["", f"Environments to build first, roughly {time_for_it}: {', '.join(missing)}"]
    return "\n".join(lines)


def _at_most(plan: Plan) -> list[str]:
    if not plan.reserve:
        return []
    most = remaining(plan) + sum(run.seconds for run in plan.reserve)
    runs = len(plan.pending) + len(plan.reserve)
    return [f"  and at most {runs} runs, {duration(most)}, if no interval gets narrow"]


def remaining(plan: Plan) -> float:
    """Expected seconds of the runs still to do."""
    return sum(run.seconds for run in plan.pending)


def duration(seconds: float) -> str:
    """``75`` -> ``1 min 15 s``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


class Progress:
    """Formats to ``[started/all] what runs now, time left`` when Snakemake starts a job.

    Used in a rule's message as ``{progress:NAME}``; NAME is a planned run's name. A dry run
    (``measures`` false) starts jobs that never finish.
    """

    def __init__(self, plan: Plan, measures: bool = True) -> None:
        self._runs = {run.name: run for run in (*plan.pending, *plan.reserve)}
        self._asked = len(plan.pending)
        self._folder = plan.settings.results / "runs"
        self._measures = measures
        self._left = self._all = remaining(plan)
        self._finished = 0
        self._positions: dict[str, int] = {}
        # Only what has been started can have finished: nobody asks the file system about the rest.
        self._unfinished: set[str] = set()
        self._started: float | None = None

    def __format__(self, name: str) -> str:
        now = time.monotonic()
        self._started = self._started or now
        if self._measures:
            self._note_finished()
            self._unfinished.add(name)
        left, expected = self._left, self._all - self._left
        if self._finished >= 3 and expected > 0:
            left *= (now - self._started) / expected
        position = self._positions.setdefault(name, len(self._positions) + 1)
        run = self._runs[name]
        what = f"{run.case} repeat {run.repeat}"
        if position > self._asked:
            return f"[{position}] {what} (its interval is too wide)"
        return f"[{position}/{self._asked}] {what} (about {duration(left)} left)"

    def _note_finished(self) -> None:
        done = {name for name in self._unfinished if os.path.exists(f"{self._folder}/{name}.json")}
        self._unfinished -= done
        self._finished += len(done)
        self._left -= sum(self._runs[name].seconds for name in done)


def _as_asked(
    runs: Iterable[Run], folders: dict[Case, str], settings: Settings, place: Capacity
) -> list[Run]:
    """The runs that are of the case in whose folder they lie, measured as is asked for. Others were
    put there by hand."""
    measuring = _measuring(settings, place)
    asked = {
        folder: (
            *(getattr(case, key) for key in _KEYS),
            record_files.variant_of({**measuring, "variant": case.variant}, case.sequence_length),
        )
        for case, folder in folders.items()
    }

    def found(run: Run) -> tuple[Any, ...]:
        return (*(getattr(run, key) for key in _KEYS), records.measured_as(run))

    return [run for run in runs if asked.get(os.path.dirname(run.origin)) == found(run)]


def _needed(folders: dict[Case, str], settings: Settings, runs: Iterable[Run]) -> dict[Case, int]:
    """How many repeats each case should have, given those that there are."""
    present: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        present[os.path.dirname(run.origin)].append(run)
    suite = settings.suite
    return {
        case: repeats.wanted(present[folder], suite.repeats) for case, folder in folders.items()
    }


def _record_of(
    folder: str,
    repeat: int,
    attempts: dict[int, list[int]],
    latest: dict[str, Run],
    settings: Settings,
) -> tuple[str, str]:
    """Name and status of a repeat's valid record; else the first free name and ``""``."""
    present = attempts.get(repeat, [])
    for attempt in sorted(present, reverse=True):
        name = _name(folder, repeat, attempt)
        run = latest.get(f"{name}.json")
        if run and not (run.status in settings.retry or _run_again(run, settings.rerun_disturbed)):
            return name, run.status
        if run:
            break
    return _name(folder, repeat, max(present, default=-1) + 1), ""


def _run_again(run: Run, most: int) -> bool:
    return run.attempt < most and any(doubt.mark == disturbance.MARK for doubt in run.doubts)


def _name(folder: str, repeat: int, attempt: int) -> str:
    return f"{folder}/r{repeat}" + (f"-retry{attempt}" if attempt else "")


def _attempts(folder: Path) -> dict[int, list[int]]:
    """Attempts of each repeat whose names are taken in a case's folder."""
    found: dict[int, list[int]] = defaultdict(list)
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return {}
    for name in names:
        if match := RECORD_NAME.fullmatch(name):
            found[int(match[1])].append(int(match[2] or 0))
    return found


def _estimates(
    folders: dict[Case, str],
    settings: Settings,
    place: Capacity,
    catalog: Catalog,
    latest: dict[str, Run],
) -> dict[Case, float]:
    """Expected seconds of a run of each case: the median of its own records, else a guess from
    the model's operations, scaled by how such guesses fared for the cases that have records."""
    measured: dict[str, list[float]] = defaultdict(list)
    for origin, run in latest.items():
        measured[os.path.dirname(origin)].append(run.wall_seconds or 0.0)
    guesses = {case: _guess(case, settings, place, catalog) for case in folders}
    known = {
        case: statistics.median(measured[folder])
        for case, folder in folders.items()
        if folder in measured
    }
    factor = statistics.median([known[c] / guesses[c] for c in known]) if known else 1.0
    return {case: known.get(case, guesses[case] * factor) for case in folders}


def _guess(case: Case, settings: Settings, place: Capacity, catalog: Catalog) -> float:
    operations = 2 * forward_multiply_adds(catalog.models[case.model], case.sequence_length)
    if case.mode == "train":
        operations *= 3  # the backward pass costs about two forward passes
    rate = GPU_RATE if place.cores_per_device is None else CORE_RATE * place.cores_per_device
    steps = settings.suite.warmup_steps + settings.suite.timed_steps
    return START_SECONDS + steps * case.batch_per_device * operations / rate


def _table(header: list[str], rows: Iterable[list[str]]) -> list[str]:
    """Columns padded to their widest cell, two spaces apart."""
    everything = [header, *rows]
    widths = [max(len(row[column]) for row in everything) for column in range(len(header))]
    lines = []
    for row in everything:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        lines.append("  " + "  ".join(cells).rstrip())
    return lines
