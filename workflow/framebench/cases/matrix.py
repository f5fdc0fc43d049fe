"""Expansion of a suite into cases and runs."""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from core import axes
from core.case import MAX, PER_CORE, PER_GIB, Case
from core.parallelism import DATA

from ..config.catalog import Catalog
from ..config.measurements import ALL, BATCHES, Axes, Measurement
from ..config.settings import Settings
from ..config.suite import Suite
from ..config.validation import ConfigError, did_you_mean
from ..machine.local import Machine
from .conditions import input_axis


def cases(suite: Suite, catalog: Catalog, gpus: int = 0) -> dict[Case, int]:
    """Return all cases of a suite in a stable order, with the stage in which each is measured.

    They are the product of the axes, and for each block of ``include`` and ``then`` a product in
    which its values replace those of the axes. Cases that match an exclude pattern are left out.
    Each block of ``then`` is a further stage. ``gpus``: number of GPUs of a node. Raises
    ConfigError for a pattern without a match and for a suite without cases.
    """
    matrix = suite.axes or {}
    blocks = [(0, matrix)] if matrix else []
    blocks += [(0, _replaced(matrix, block)) for block in suite.include]
    blocks += [(stage, _replaced(matrix, block)) for stage, block in enumerate(suite.then, 1)]
    parts = [(stage, _product(suite, _on_machine(block, gpus), catalog)) for stage, block in blocks]
    for measurement in suite.measurements.values():
        here = replace(measurement, axes=_on_machine(measurement.axes, gpus))
        parts.append((0, _measured(here, catalog)))
    results: dict[Case, int] = {}
    for case, stage in ((case, stage) for stage, part in parts for case in part):
        for variant in suite.variants or [""]:
            own = suite.variants[variant].model if variant else None
            named = case._replace(variant=variant, model=own.name if own else case.model)
            results.setdefault(named, stage)
    for number, pattern in enumerate(suite.exclude):
        matched = [case for case in results if _matches(case, pattern, catalog)]
        if not matched and not suite.own_model:  # a user's own model replaces the suite's models
            raise ConfigError(
                f"{suite.path}: exclude[{number}]: found {pattern}, which matches no case; "
                "allowed: values that the axes have"
            )
        for case in matched:
            del results[case]
    if not results:
        raise ConfigError(f"{suite.path}: the suite has no case left after its exclude rules")
    return results


def narrow(cases: Iterable[Case], settings: Settings) -> list[Case]:
    """Return the cases of the configured frameworks, models and case names. Cases without a
    framework or model pass that filter. Raises ConfigError for an unknown case name, and if no case
    is left."""
    frameworks, models = {*settings.frameworks, ""}, {*settings.models, ""}
    kept = [c for c in cases if c.framework in frameworks and c.model in models]
    if not kept:
        raise ConfigError(
            f"config: frameworks={','.join(settings.frameworks)} models="
            f"{','.join(settings.models)} leaves no case of suite {settings.suite.name}"
        )
    if not settings.cases:
        return kept
    names = {str(case): case for case in kept}
    for name in settings.cases:
        if name not in names:
            raise ConfigError(
                f"config: cases: found {name!r}{did_you_mean(name, list(names))}; allowed: cases "
                f"of suite {settings.suite.name} as snakemake --cores all plan names them, such as "
                f"{str(kept[0])!r}"
            )
    return [names[name] for name in settings.cases]


def on_each_node(cases: list[Case], settings: Settings, machine: Machine) -> list[Case]:
    """Return each case once per node that is measured by name. Without such nodes, a case belongs
    to any of them: nodes with the same hardware count as one machine. Raises ConfigError for an
    unknown node."""
    asked, known = settings.each_node, machine.named
    if asked is None or not known:
        return cases
    names = list(known) if asked == [ALL] else asked
    for name in names:
        if name not in known:
            raise ConfigError(
                f"config: nodes_named: found {name!r}{did_you_mean(name, known)}; allowed: all, or "
                f"nodes of this cluster ({', '.join(known)})"
            )
    return [case._replace(node=name) for case in cases for name in names]


def without_variant(case: Case, own_model: str) -> Case:
    """Return the part of a case that all its variants share. ``own_model``: name that stands for
    the user's own models, which may differ between variants; "" without any."""
    return case._replace(variant="", model=own_model or case.model)


def rounds(
    cases: list[Case], repeats: int, seed: int, own_model: str = ""
) -> Iterator[tuple[Case, int]]:
    """Yield runs, each a case and the number of its repeat, in the order of execution.

    Repeats of different cases are interleaved, so that drift of the machine affects all alike. Each
    round is shuffled with its own seed. The variants of a case run back to back, so that they see
    the same machine, in an order shuffled anew in each round. This shuffling makes the
    comparison of pairs exact (see ``intervals``). ``own_model``: see :func:`without_variant`.
    """
    variants: dict[Case, list[Case]] = defaultdict(list)
    for case in cases:
        variants[without_variant(case, own_model)].append(case)
    for repeat in range(1, repeats + 1):
        shuffled = random.Random(f"{seed}/{repeat}")
        order = [list(some) for some in variants.values()]
        shuffled.shuffle(order)
        for some in order:
            shuffled.shuffle(some)
            yield from ((case, repeat) for case in some)


def _replaced(axes: Axes, block: Axes) -> Axes:
    """Return the axes, overridden by the values of a block. A block's batch axis replaces both axes
    of BATCHES."""
    replaced = BATCHES if any(batch in block for batch in BATCHES) else ()
    return {**{axis: values for axis, values in axes.items() if axis not in replaced}, **block}


def _on_machine(block: Mapping[str, Any], gpus: int) -> Axes:
    """Return a block with the word ALL replaced by the number of devices."""
    if "devices_per_node" not in block:
        return {**block}
    counts = (max(gpus, 1) if count == ALL else count for count in block["devices_per_node"])
    return {**block, "devices_per_node": [*dict.fromkeys(counts)]}


def _product(suite: Suite, block: Axes, catalog: Catalog) -> Iterator[Case]:
    """Yield all cases of a block. Raises ConfigError for values that a model does not have."""
    if max(block["nodes"]) * max(block["devices_per_node"]) == 1 and block["parallelism"] != [DATA]:
        raise ConfigError(
            f"{suite.path}: parallelism: found {', '.join(block['parallelism'])} for one device; "
            f"allowed: {DATA}, or more devices_per_node or nodes"
        )
    optional = [axis for axis in axes.OPTIONAL if axis.name in block]
    sizes = ("mode", "nodes", "devices_per_node")
    kinds = ("precision", "compiler")
    for framework, model in itertools.product(block["framework"], block["model"]):
        axis, batches = _batches(suite, block, model)
        values = [batches, *(block[name] for name in kinds), _lengths(suite, block, model, catalog)]
        values += [block[axis.name] for axis in optional]
        for mode, nodes, devices, batch, precision, compiler, length, *further in itertools.product(
            *(block[name] for name in sizes), *values
        ):
            compiler = catalog.compiler(framework, compiler)
            case = Case(framework, model, mode, nodes, devices, batch, precision, compiler, length)
            chosen = zip(optional, further, strict=True)
            case = case._replace(**{own.name: v for own, v in chosen if mode in own.applies_to})
            if case.devices == 1:
                case = case._replace(parallelism=DATA)
            if axis == "batch_total":
                whole, rest = divmod(batch, case.parts)
                each = f"{batch}/{case.parts}" if rest else whole
                case = case._replace(batch_per_device=each)
            yield case


def _lengths(suite: Suite, block: Axes, model: str, catalog: Catalog) -> list[int | None]:
    """Return the sequence lengths of a model in a block; [None] for one without sequences."""
    limits = catalog.models[model]["sequence_lengths"]
    if not limits:
        return [None]
    for length in block["sequence_length"]:
        if not limits[0] <= length <= limits[1]:
            raise ConfigError(
                f"{suite.path}: sequence_length: found {length} for model {model}; "
                f"allowed: {limits[0]} to {limits[1]}"
            )
    return [*block["sequence_length"]]


def _measured(measurement: Measurement, catalog: Catalog) -> Iterator[Case]:
    """Yield all cases of a benchmark. A model without sequences has no sequence length."""
    without = {
        "batch_per_device": 0,
        "sequence_length": None,
        **{axis.name: axis.default for axis in axes.OPTIONAL},
    }
    names = [axis.name for axis in axes.BUILT_IN]
    values_of = [measurement.axes.get(name, [without.get(name, "")]) for name in names]
    parameters = {name: measurement.parameters[name] for name in sorted(measurement.parameters)}
    nothing = Case("", "", measurement.kind, 1, 1, 0, "", "", None)
    for values in itertools.product(*values_of):
        case = nothing._replace(**dict(zip(names, values, strict=True)))
        case = case._replace(input=input_axis(case.mode, case.input))
        if case.model and not catalog.models[case.model]["sequence_lengths"]:
            case = case._replace(sequence_length=None)
        if case.compiler:
            case = case._replace(compiler=catalog.compiler(case.framework, case.compiler))
        for chosen in itertools.product(*parameters.values()):
            yield case._replace(parameters=tuple(zip(parameters, chosen, strict=True)))


def _batches(suite: Suite, block: Axes, model: str) -> tuple[str, list[Any]]:
    """Return the batch axis of a block, one of BATCHES, and its values for a model."""
    axis = next(batch for batch in BATCHES if batch in block)
    batches = block[axis]
    if isinstance(batches, dict):
        if model not in batches:
            raise ConfigError(
                f"{suite.path}: {axis}: found no entry for model {model}; "
                f"allowed: a list of batches for each model ({', '.join(batches)} have one)"
            )
        batches = batches[model]
    later = (MAX, PER_CORE, PER_GIB)
    return axis, [batch if str(batch).endswith(later) else int(batch) for batch in batches]


def _matches(case: Case, pattern: Axes, catalog: Catalog) -> bool:
    for axis, values in pattern.items():
        if axis == "compiler" and case.framework:
            values = [*values, *(catalog.compiler(case.framework, word) for word in values)]
        if getattr(case, axis) not in values:
            return False
    return True
