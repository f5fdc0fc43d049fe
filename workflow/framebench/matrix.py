"""Suite -> cases -> runs: the matrix, what is left out of it and why."""

from __future__ import annotations

import hashlib
import itertools
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from .catalog import Catalog
from .config import AXES, Axes, Settings, Suite
from .machine import Machine
from .validation import ConfigError

#: The batch of a case whose largest one is still to be found.
MAX = "max"


class Case(NamedTuple):
    """One point of the matrix. ``batch_per_device`` in samples, or MAX; ``sequence_length`` in
    tokens, None for a model without sequences; ``variant``: of an A/B test, "" where there is
    none."""

    framework: str
    model: str
    mode: str
    nodes: int
    devices_per_node: int
    batch_per_device: int | str
    precision: str
    compiler: str
    sequence_length: int | None
    variant: str = ""

    @property
    def topology(self) -> str:
        """DLPerf's name for it: nodes x devices per node, e.g. 2n8g."""
        return f"{self.nodes}n{self.devices_per_node}g"

    def __str__(self) -> str:
        words = [self.framework, self.model, self.mode, self.precision, self.compiler]
        words += [self.topology, f"batch {self.batch_per_device}"]
        words += [f"seq {self.sequence_length}"] if self.sequence_length else []
        words += [f"variant {self.variant}"] if self.variant else []
        return " ".join(words)


class LeftOut(NamedTuple):
    """A case that is not run here, and why."""

    case: Case
    reason: str


class RunKey(NamedTuple):
    """One repeat of a case. ``round`` orders runs: repeat 1 of every case comes before repeat 2
    of any, each round in an order of its own."""

    case: Case
    repeat: int


@dataclass(frozen=True)
class Capacity:
    """What the place where runs execute offers. ``cores_per_device`` is None on GPUs."""

    accelerator: str
    devices_per_node: int
    nodes: int
    cores_per_device: int | None


def capacity(settings: Settings, machine: Machine, cases: list[Case]) -> Capacity:
    """Devices of this machine: its GPUs, or its cores divided among the most devices per node
    that any case asks for and that it can give a core each."""
    accelerator = settings.accelerator
    if accelerator == "auto":
        accelerator = "cuda" if machine.gpus else "cpu"
    if accelerator == "cuda":
        if not machine.gpus:
            raise ConfigError(
                "config: accelerator: found 'cuda', but this machine shows no NVIDIA GPU; "
                "allowed here: auto, cpu"
            )
        return Capacity("cuda", machine.gpus, machine.nodes, None)
    if settings.cores_per_device == "auto":
        wanted = [c.devices_per_node for c in cases if c.devices_per_node <= machine.cores]
        cores = machine.cores // max(wanted, default=1)
    else:
        cores = int(settings.cores_per_device)
        if cores > machine.cores:
            raise ConfigError(
                f"config: cores_per_device: found {cores}; allowed on this machine: auto, or at "
                f"most {machine.cores}"
            )
    return Capacity("cpu", machine.cores // cores, machine.nodes, cores)


def cases(suite: Suite, catalog: Catalog) -> list[Case]:
    """All cases of a suite in a stable order, each once: the axes, and the axes with each include
    block's values put in, less what an exclude pattern matches."""
    blocks = [suite.axes, *({**suite.axes, **block} for block in suite.include)]
    found = dict.fromkeys(
        case._replace(variant=variant)
        for block in blocks
        for case in _product(suite, block, catalog)
        for variant in suite.variants or [""]
    )
    for number, pattern in enumerate(suite.exclude):
        matched = [case for case in found if _matches(case, pattern, catalog)]
        if not matched:
            raise ConfigError(
                f"{suite.path}: exclude[{number}]: found {pattern}, which matches no case; "
                "allowed: values that the axes have"
            )
        for case in matched:
            del found[case]
    if not found:
        raise ConfigError(f"{suite.path}: the suite has no case left after its exclude rules")
    return list(found)


def narrow(found: list[Case], settings: Settings) -> list[Case]:
    """The cases of the frameworks and models that the configuration asks for."""
    kept = [c for c in found if c.framework in settings.frameworks and c.model in settings.models]
    if not kept:
        raise ConfigError(
            f"config: frameworks={','.join(settings.frameworks)} models="
            f"{','.join(settings.models)} leaves no case of suite {settings.suite.name}"
        )
    return kept


def fit(found: list[Case], place: Capacity) -> tuple[list[Case], list[LeftOut]]:
    """Split cases into those that fit the place and those that do not, with the reason."""
    kept: list[Case] = []
    left: list[LeftOut] = []
    for case in found:
        reason = _misfit(case, place)
        if reason:
            left.append(LeftOut(case, reason))
        else:
            kept.append(case)
    return kept, left


def rounds(found: list[Case], repeats: int, seed: int) -> Iterator[RunKey]:
    """Runs in the order of execution: repeats of different cases interleaved, so that drift of
    the machine hits all alike; each round is shuffled with a seed of its own."""
    for repeat in range(1, repeats + 1):
        order = list(found)
        random.Random(f"{seed}/{repeat}").shuffle(order)
        yield from (RunKey(case, repeat) for case in order)


def case_folder(case: Case, request: dict[str, Any]) -> str:
    """Folder of a case's records, relative to ``results/runs``. The name ends in a digest of
    everything that decides what is measured (steps, accelerator, cores, seed, environment), so
    that a changed setting is another folder and no earlier result is taken for it."""
    # Without a variant as before there were any.
    text = json.dumps([case if case.variant else case[:-1], request], sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    sequence = f"-s{case.sequence_length}" if case.sequence_length else ""
    variant = f"-{case.variant}" if case.variant else ""
    return (
        f"{case.framework}/{case.model}/{case.mode}-{case.precision}-{case.compiler}-"
        f"{case.topology}-b{case.batch_per_device}{sequence}{variant}-{digest}"
    )


def _product(suite: Suite, block: Axes, catalog: Catalog) -> Iterator[Case]:
    frameworks = catalog.frameworks if block["framework"] == "all" else block["framework"]
    models = catalog.models if block["model"] == "all" else block["model"]
    for framework, model in itertools.product(frameworks, models):
        yield from _of_model(suite, block, framework, model, catalog)


def _of_model(
    suite: Suite, block: Axes, framework: str, model: str, catalog: Catalog
) -> Iterator[Case]:
    batches = block["batch_per_device"]
    if isinstance(batches, dict):
        if model not in batches:
            raise ConfigError(
                f"{suite.path}: batch_per_device: found no entry for model {model}; "
                f"allowed: a list of batches for each model ({', '.join(batches)} have one)"
            )
        batches = batches[model]
    lengths: list[int | None] = list(block["sequence_length"])
    limits = catalog.models[model]["sequence_lengths"]
    if not limits:
        lengths = [None]
    for length in lengths:
        if length is not None and not limits[0] <= length <= limits[1]:
            raise ConfigError(
                f"{suite.path}: sequence_length: found {length} for model {model}; "
                f"allowed: {limits[0]} to {limits[1]}"
            )
    for mode, nodes, devices, batch, precision, compiler, length in itertools.product(
        block["mode"],
        block["nodes"],
        block["devices_per_node"],
        batches,
        block["precision"],
        block["compiler"],
        lengths,
    ):
        name = catalog.native_compiler(framework) if compiler == "native" else compiler
        size = MAX if batch == MAX else int(batch)
        yield Case(framework, model, mode, int(nodes), int(devices), size, precision, name, length)


def _matches(case: Case, pattern: Axes, catalog: Catalog) -> bool:
    for axis in AXES:
        if axis not in pattern:
            continue
        values = pattern[axis]
        if axis == "compiler" and "native" in values:
            values = [*values, catalog.native_compiler(case.framework)]
        if getattr(case, axis) not in values:
            return False
    return True


def _misfit(case: Case, place: Capacity) -> str:
    if case.nodes > place.nodes:
        return f"needs {case.nodes} nodes, here is {place.nodes}"
    if case.devices_per_node > place.devices_per_node:
        kind = "GPUs" if place.accelerator == "cuda" else f"x {place.cores_per_device} cores"
        return (
            f"needs {case.devices_per_node} devices per node, here are "
            f"{place.devices_per_node} ({kind})"
        )
    return ""
