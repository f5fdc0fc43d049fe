"""Suite -> cases -> runs: the matrix."""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

from core import axes, inputs
from core.case import INPUT, MAX, Case
from core.inputs import SYNTHETIC
from core.parallelism import DATA

from ..config.catalog import Catalog
from ..config.kinds import Measurement
from ..config.settings import Settings
from ..config.suite import BATCHES, Axes, Suite
from ..config.validation import ConfigError, did_you_mean


class RunKey(NamedTuple):
    """One repeat of a case. ``round`` orders runs: repeat 1 of every case comes before repeat 2
    of any, each round in an order of its own."""

    case: Case
    repeat: int


def cases(suite: Suite, catalog: Catalog) -> list[Case]:
    """All cases of a suite in a stable order, each once: the axes, and the axes with each include
    block's values put in, less what an exclude pattern matches."""
    matrix = [suite.axes] if suite.axes else []
    blocks = [*matrix, *(_replaced(suite.axes or {}, block) for block in suite.include)]
    of_steps = (case for block in blocks for case in _product(suite, block, catalog))
    of_kinds = (case for one in suite.measurements.values() for case in _measured(one, catalog))
    found = dict.fromkeys(
        case._replace(variant=variant)
        for case in itertools.chain(of_steps, of_kinds)
        for variant in suite.variants or [""]
    )
    for number, pattern in enumerate(suite.exclude):
        matched = [case for case in found if _matches(case, pattern, catalog)]
        if not matched and not suite.own_model:  # it has fewer cases than the suite's models
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
    """The cases of the frameworks and models that the configuration asks for, and those that have
    none; of these the named ones, where it names some. Raises ConfigError for a name of none."""
    frameworks, models = {*settings.frameworks, ""}, {*settings.models, ""}
    kept = [c for c in found if c.framework in frameworks and c.model in models]
    if not kept:
        raise ConfigError(
            f"config: frameworks={','.join(settings.frameworks)} models="
            f"{','.join(settings.models)} leaves no case of suite {settings.suite.name}"
        )
    return _named(kept, settings) if settings.cases else kept


def _named(found: list[Case], settings: Settings) -> list[Case]:
    """Those of the key ``cases``, each by its name in a plan."""
    names = {str(case): case for case in found}
    for name in settings.cases:
        if name not in names:
            raise ConfigError(
                f"config: cases: found {name!r}{did_you_mean(name, list(names))}; allowed: cases "
                f"of suite {settings.suite.name} as snakemake --cores 1 plan names them, such as "
                f"{str(found[0])!r}"
            )
    return [names[name] for name in dict.fromkeys(settings.cases)]


def rounds(found: list[Case], repeats: int, seed: int) -> Iterator[RunKey]:
    """Runs in the order of execution: repeats of different cases interleaved, so that drift of
    the machine hits all alike; each round is shuffled with a seed of its own. The variants of a
    case follow each other directly, so that they see the same machine, in an order that is
    shuffled anew in each round: that is what makes a comparison of the pairs exact (see
    ``signed_rank``)."""
    variants: dict[Case, list[Case]] = defaultdict(list)
    for case in found:
        variants[case._replace(variant="")].append(case)
    for repeat in range(1, repeats + 1):
        shuffled = random.Random(f"{seed}/{repeat}")
        order = [list(some) for some in variants.values()]
        shuffled.shuffle(order)
        for some in order:
            shuffled.shuffle(some)
            yield from (RunKey(case, repeat) for case in some)


def _replaced(axes: Axes, block: Axes) -> Axes:
    """The axes with the values of a block put in. Of BATCHES its own takes the place of either."""
    taken = BATCHES if any(batch in block for batch in BATCHES) else ()
    return {**{axis: values for axis, values in axes.items() if axis not in taken}, **block}


def _product(suite: Suite, block: Axes, catalog: Catalog) -> Iterator[Case]:
    for framework, model in itertools.product(block["framework"], block["model"]):
        yield from _of_model(suite, block, framework, model, catalog)


def _of_model(
    suite: Suite, block: Axes, framework: str, model: str, catalog: Catalog
) -> Iterator[Case]:
    axis, batches = _batches(suite, block, model)
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
    _require_devices(suite, block)
    optional = [axis for axis in axes.optional() if axis.name in block]
    product = itertools.product(
        block["mode"],
        block["nodes"],
        block["devices_per_node"],
        batches,
        block["precision"],
        block["compiler"],
        lengths,
        *(block[axis.name] for axis in optional),
    )
    for mode, nodes, devices, batch, precision, compiler, length, *further in product:
        case = Case(
            framework,
            model,
            mode,
            nodes,
            devices,
            batch,
            precision,
            catalog.compiler(framework, compiler),
            length,
        )
        chosen = zip(optional, further, strict=True)
        case = case.having({one.name: value for one, value in chosen if mode in one.applies_to})
        if case.devices == 1:
            case = case._replace(parallelism=DATA)
        total = axis == "batch_total"
        yield case._replace(batch_per_device=_each(batch, case.parts)) if total else case


def _require_devices(suite: Suite, block: Axes) -> None:
    """Raises ConfigError where devices are to share a step and there is only one."""
    most = max(block["nodes"]) * max(block["devices_per_node"])
    if most == 1 and block["parallelism"] != [DATA]:
        raise ConfigError(
            f"{suite.path}: parallelism: found {', '.join(block['parallelism'])} for one device; "
            f"allowed: {DATA}, or more devices_per_node or nodes"
        )


def _measured(one: Measurement, catalog: Catalog) -> Iterator[Case]:
    """All cases of a kind of measurement. A model without sequences has none of a length."""
    without = {
        "batch_per_device": 0,
        "sequence_length": None,
        **{axis.name: axis.default for axis in axes.optional()},
    }
    names = [axis.name for axis in axes.asked()]
    values_of = [one.axes.get(name, [without.get(name, "")]) for name in names]
    parameters = {name: one.parameters[name] for name in sorted(one.parameters)}
    nothing = Case("", "", one.kind, 1, 1, 0, "", "", None)
    for values in itertools.product(*values_of):
        case = nothing.having(dict(zip(names, values, strict=True)))
        case = case._replace(input=input_of(case.mode, case.input))
        if case.model and not catalog.models[case.model]["sequence_lengths"]:
            case = case._replace(sequence_length=None)
        if case.compiler:
            case = case._replace(compiler=catalog.compiler(case.framework, case.compiler))
        for chosen in itertools.product(*parameters.values()):
            yield case._replace(parameters=tuple(zip(parameters, chosen, strict=True)))


def input_of(mode: str, name: str) -> str:
    """That of a case: a kind that reads images by itself need not say so."""
    return SYNTHETIC if mode == INPUT and name == inputs.DATA else name


def _batches(suite: Suite, block: Axes, model: str) -> tuple[str, list[Any]]:
    """The one of BATCHES that a block has, and its values for a model. Raises ConfigError for a
    total batch of which every case would be left out."""
    axis = next(batch for batch in BATCHES if batch in block)
    batches = block[axis]
    if isinstance(batches, dict):
        if model not in batches:
            raise ConfigError(
                f"{suite.path}: {axis}: found no entry for model {model}; "
                f"allowed: a list of batches for each model ({', '.join(batches)} have one)"
            )
        batches = batches[model]
    batches = [MAX if batch == MAX else int(batch) for batch in batches]
    counts = _parts(block)
    for batch in batches if axis == "batch_total" else ():
        if all(batch % count for count in counts):
            raise ConfigError(
                f"{suite.path}: {axis}: found {batch}, of which no device gets a whole number; "
                "allowed: multiples of a number of devices times micro-steps "
                f"({', '.join(map(str, counts))})"
            )
    return axis, batches


def _parts(block: Axes) -> list[int]:
    """Return the numbers of parts that training may divide a total batch into, rising."""
    names = ["nodes", "devices_per_node", *(axis.name for axis in axes.optional())]
    names = [name for name in names if name in block]
    nothing = Case("", "", "train", 1, 1, 0, "", "", None)
    product = itertools.product(*(block[name] for name in names))
    return sorted({nothing.having(dict(zip(names, some, strict=True))).parts for some in product})


def _each(total: int, parts: int) -> int | str:
    """What each of the parts has of a total batch."""
    return f"{total}/{parts}" if total % parts else total // parts


def _matches(case: Case, pattern: Axes, catalog: Catalog) -> bool:
    for axis, values in pattern.items():
        if axis == "compiler" and case.framework:
            values = [*values, *(catalog.compiler(case.framework, word) for word in values)]
        if getattr(case, axis) not in values:
            return False
    return True
