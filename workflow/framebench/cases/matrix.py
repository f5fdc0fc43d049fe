"""Suite -> cases -> runs: the matrix."""

from __future__ import annotations

import hashlib
import itertools
import json
import random
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

from ..config import inputs
from ..config.catalog import Catalog
from ..config.inputs import SYNTHETIC
from ..config.kinds import INPUT, Measurement
from ..config.parallelism import DATA, sizes
from ..config.settings import Settings
from ..config.suite import AXES, BATCHES, Axes, Suite
from ..config.validation import ConfigError, did_you_mean
from .conditions import MODES, Parameters
from .names import topology_of

#: In the place of a framework or model that there is none of.
NONE = "none"
#: The batch of a case whose largest one is still to be found.
MAX = "max"


class Case(NamedTuple):
    """One point of the matrix. ``mode``: the kind of measurement; what that does not have of a case
    is "" or 0. ``batch_per_device`` in samples, MAX, or TOTAL/PARTS where a total batch has no
    whole number for each part; ``sequence_length`` in tokens, None for a model without
    sequences; ``variant``: of an A/B test, "" where there is none; ``parameters``: of the kind, in
    the order of their names, () for steps; ``accumulation``: micro-steps of a step, each with the
    batch, 1 of what does not train; ``parallelism``: how the devices share a step, DATA of a single
    device and of what does not train; ``node``: the one that is measured, "" for any; ``input``:
    where the samples of a step come from."""

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
    parameters: Parameters = ()
    accumulation: int = 1
    parallelism: str = DATA
    node: str = ""
    input: str = SYNTHETIC

    @property
    def is_step(self) -> bool:
        """Whether steps of a model are timed."""
        return self.mode in MODES

    @property
    def reads_images(self) -> bool:
        """Whether it takes a folder of them."""
        return self.input in inputs.READING or self.mode == INPUT

    @property
    def source(self) -> str:
        """Its input as a record has it; see :func:`input_of`."""
        return inputs.DATA if self.mode == INPUT and self.input == SYNTHETIC else self.input

    @property
    def topology(self) -> str:
        return topology_of(self)

    @property
    def devices(self) -> int:
        return self.nodes * self.devices_per_node

    @property
    def divides(self) -> bool:
        """Whether every device has a whole number of samples."""
        return "/" not in str(self.batch_per_device)

    @property
    def batch_total(self) -> int | None:
        """Samples of a step on all devices together; None while the batch is still to be found."""
        if self.batch_per_device == MAX:
            return None
        total, _, parts = str(self.batch_per_device).partition("/")
        return int(total) if parts else int(total) * self.parts

    @property
    def parts(self) -> int:
        """In which the samples of a step are computed."""
        return self.replicas * self.accumulation

    @property
    def replicas(self) -> int:
        """Devices, or groups of them, that have samples of their own."""
        return sizes(self.parallelism, self.devices).replicas

    def __str__(self) -> str:
        words = [self.framework, self.model, self.mode, self.precision, self.compiler]
        words = [*filter(None, words), self.topology]
        words += [f"batch {self.batch_per_device}"] if self.batch_per_device else []
        words += [f"{name} {value}" for name, value in self.parameters]
        words += [f"accumulation {self.accumulation}"] if self.accumulation > 1 else []
        words += [self.parallelism] if self.parallelism != DATA else []
        words += [f"input {self.input}"] if self.input != SYNTHETIC else []
        words += [f"(total {self.batch_total})"] if self.parts > 1 and self.batch_total else []
        words += [f"seq {self.sequence_length}"] if self.sequence_length else []
        words += [f"variant {self.variant}"] if self.variant else []
        words += [f"node {self.node}"] if self.node else []
        return " ".join(words)


class RunKey(NamedTuple):
    """One repeat of a case. ``round`` orders runs: repeat 1 of every case comes before repeat 2
    of any, each round in an order of its own."""

    case: Case
    repeat: int


def cases(suite: Suite, catalog: Catalog) -> list[Case]:
    """All cases of a suite in a stable order, each once: the axes, and the axes with each include
    block's values put in, less what an exclude pattern matches."""
    axes = [suite.axes] if suite.axes else []
    blocks = [*axes, *(_replaced(suite.axes or {}, block) for block in suite.include)]
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


def case_folder(case: Case, request: dict[str, Any]) -> str:
    """Folder of a case's records, relative to ``results/runs``. The name ends in a digest of
    everything that decides what is measured (steps, accelerator, cores, seed, environment), so
    that a changed setting is another folder and no earlier result is taken for it."""
    # Without a variant, parameters, micro-steps, parallelism, node, input as before there were any.
    *others, parameters, accumulation, parallelism, node, source = case
    deciding = [*others, parameters] if parameters else others if case.variant else others[:-1]
    deciding += [{"accumulation": accumulation}] if accumulation > 1 else []
    deciding += [{"parallelism": parallelism}] if parallelism != DATA else []
    deciding += [{"node": node}] if node else []
    deciding += [{"input": source}] if source != SYNTHETIC else []
    text = json.dumps([deciding, request], sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    if not case.is_step:
        words = [case.mode, case.precision, case.compiler, case.topology, case.variant]
        folders = f"{case.framework or NONE}/{case.model or NONE}"
        return f"{folders}/{'-'.join(filter(None, words))}-{digest}"
    sequence = f"-s{case.sequence_length}" if case.sequence_length else ""
    accumulated = f"-a{accumulation}" if accumulation > 1 else ""
    shared = f"-{parallelism}" if parallelism != DATA else ""
    fed = f"-{source}" if source != SYNTHETIC else ""
    variant = f"-{case.variant}" if case.variant else ""
    return (
        f"{case.framework}/{case.model}/{case.mode}-{case.precision}-{case.compiler}-"
        f"{case.topology}{shared}-b{case.batch_per_device}{accumulated}{sequence}{fed}{variant}-"
        f"{digest}"
    )


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
    for (
        mode, nodes, devices, batch, precision, compiler, length, count, way, source,
    ) in itertools.product(
        block["mode"],
        block["nodes"],
        block["devices_per_node"],
        batches,
        block["precision"],
        block["compiler"],
        lengths,
        block["accumulation"],
        block["parallelism"],
        block["input"],
    ):  # fmt: skip
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
            accumulation=count if mode == "train" else 1,
            parallelism=way if mode == "train" and nodes * devices > 1 else DATA,
            input=source,
        )
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
    without: dict[str, Any] = {
        "batch_per_device": 0,
        "sequence_length": None,
        "accumulation": 1,
        "parallelism": DATA,
        "input": SYNTHETIC,
        "mode": one.kind,
    }
    axes = {
        axis: one.axes.get(axis, [without.get(axis, "")])
        for axis in Case._fields
        if axis not in ("variant", "parameters", "node")
    }
    parameters = {name: one.parameters[name] for name in sorted(one.parameters)}
    for values in itertools.product(*axes.values()):
        case = Case(**dict(zip(axes, values, strict=True)))
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
    splits = itertools.product(
        block["nodes"], block["devices_per_node"], block["accumulation"], block["parallelism"]
    )
    counts = sorted({sizes(way, n * each).replicas * steps for n, each, steps, way in splits})
    for batch in batches if axis == "batch_total" else ():
        if all(batch % count for count in counts):
            raise ConfigError(
                f"{suite.path}: {axis}: found {batch}, of which no device gets a whole number; "
                "allowed: multiples of a number of devices times micro-steps "
                f"({', '.join(map(str, counts))})"
            )
    return axis, batches


def _each(total: int, parts: int) -> int | str:
    """What each of the parts has of a total batch."""
    return f"{total}/{parts}" if total % parts else total // parts


def _matches(case: Case, pattern: Axes, catalog: Catalog) -> bool:
    for axis in AXES:
        if axis not in pattern:
            continue
        values = pattern[axis]
        if axis == "compiler" and case.framework:
            values = [*values, *(catalog.compiler(case.framework, word) for word in values)]
        if getattr(case, axis) not in values:
            return False
    return True
