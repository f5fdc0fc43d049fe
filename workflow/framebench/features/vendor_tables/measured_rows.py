"""Our cases as rows in NVIDIA's layout: mixed next to full precision.

Both precisions of a row have equally many samples per update."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from ...cases.conditions import Key
from ...statistics import descriptive, equivalence
from ...tables import formatting
from ...tables import training as trainings
from ...tables.columns import Row
from ...tables.declared import converge, inference_step_time
from ...tables.results import CaseResult, flags_of
from ...tables.table import Inputs
from . import phases
from .printed_rows import AMP, EACH, FULL, Values

#: Models of NVIDIA's tables.
MODELS = ("resnet50_v1.5", "electra_base", "electra_base_squad")
#: NVIDIA's names of our models.
PRINTED_AS = {"electra_base_squad": "electra_base"}
_PERCENTILES = ("mean", "p50", "p90", "p95", "p99")
#: Columns of statistics over seeds, by column of the table of trainings.
_OVER_SEEDS = {
    "score_mean": "seeds_mean",
    "score_deviation": "seeds_deviation",
    "score_minimum": "seeds_minimum",
    "score_maximum": "seeds_maximum",
}


def training(inputs: Inputs) -> Iterator[Values]:
    """Yield rows of training throughput.

    Weak scaling is relative to one device with the same batch; its updates may have more
    micro-steps."""
    results = _steps(inputs, "train")
    alone: dict[Hashable, CaseResult] = {}
    for case_result in results:
        if case_result.case.devices == 1:
            alone[_on_one(case_result)] = case_result
    for amp, full in pairs(results):
        row = _row(amp, full)
        bases = []
        for side, result in (("amp", amp), ("full", full)):
            row[f"throughput_{side}"] = _figure(result)
            base = alone.get(_on_one(result)) if result else None
            row[f"weak_{side}"] = _ratio(result, base)
            bases.append(base)
        row["amp_speedup"] = _ratio(amp, full)
        row["unit"] = amp.unit
        row["flags"] = flags_of(amp, full, *bases)
        yield row


def inference(inputs: Inputs) -> Iterator[Values]:
    """Yield rows of inference throughput and latency.

    A speed-up of latency is full over mixed precision."""
    results = _steps(inputs, "inference")
    times = inference_step_time.by_case(inputs) if results else {}
    for amp, full in pairs(results):
        for result, base in ((amp, full), (full, None)):
            if result is None:
                continue
            row = _row(result, base)
            row |= {"precision": result.case.precision, "unit": result.unit}
            row["compiler"] = result.case.compiler
            row["inference_throughput"] = _figure(result)
            row["amp_speedup"] = _ratio(result, base)
            for name in _PERCENTILES:
                own = times[result.key][f"{name}_ms"]
                other = times[base.key][f"{name}_ms"] if base else None
                row[f"latency_{name}"] = "" if own is None else f"{own:.3f}"
                row[f"latency_{name}_amp_speedup"] = f"{other / own:.2f}" if own and other else ""
            yield row


def accuracy(inputs: Inputs) -> Iterator[Values]:
    """Yield rows of mean scores over seeds in percent, and of times to train.

    Pre-training has the final loss, and the hours of both phases."""
    converged = converge.by_case(inputs)
    recipe, score = _recipes(converged), _scores(converged)
    yield from _pretraining(inputs, recipe)
    for amp, full in pairs(_learned(inputs)):
        row = _row(amp, full, recipe(amp))
        times = {}
        for side, result in (("amp", amp), ("full", full)):
            found = converged[result.key] if result else {}
            row[f"score_{side}"] = _percent(found.get("score_mean"))
            times[side] = found.get("time_to_train")
            row[f"time_{side}"] = "" if times[side] is None else f"{times[side]:.4g}"
        if times["amp"] and times["full"]:
            row["time_speedup"] = f"{times['full'] / times['amp']:.2f}"
        row |= {"score": score(amp, full), "time_unit": "s"}
        yield row | {"recipe_epochs": str(converged[amp.key]["epochs"])}


def seeds(inputs: Inputs) -> Iterator[Values]:
    """Yield rows of scores over seeds, in percent; pre-training has the final loss."""
    converged = converge.by_case(inputs)
    recipe, score = _recipes(converged), _scores(converged)
    yield from _final_losses(inputs, recipe)
    for number, pair in enumerate(pairs(_learned(inputs)), 1):
        for result in filter(None, pair):
            found = converged[result.key]
            row = _row(result, None, recipe(result))
            row |= {name: _percent(found[key]) for key, name in _OVER_SEEDS.items()}
            row[EACH] = _by_seed(converge.scores_of(result), _percent)
            row |= {"precision": result.case.precision, "score": score(*pair)}
            row |= {"recipe_epochs": str(found["epochs"]), "line": str(number)}
            yield row


def _scores(converged: Mapping[Key, Row]) -> Callable[..., str]:
    """Return a function that gives the score's name of cases that differ only in precision.

    Cases without a score get the score of their model in other cases."""
    names: dict[str, dict[str, None]] = defaultdict(dict)
    for key, row in converged.items():
        if row["score"]:
            names[key.case.model][row["score"]] = None

    def score(*pair: CaseResult | None) -> str:
        some = [result for result in pair if result]
        own = [str(converged[result.key]["score"]) for result in some]
        of_model = names[some[0].case.model]
        return next(filter(None, own), "") or (next(iter(of_model)) if len(of_model) == 1 else "")

    return score


def _by_seed(values: Mapping[int, float], text: Callable[[float], str]) -> str:
    """Return the values of all seeds from 1 on as text; missing ones are empty."""
    numbers = range(1, max(values, default=0) + 1)
    return ", ".join(text(values[seed]) if seed in values else "" for seed in numbers)


def _learned(inputs: Inputs) -> list[CaseResult]:
    """Return all trainings except pre-training."""
    return [result for result in converge.results(inputs) if not phases.is_phase(result)]


def _phases(inputs: Inputs) -> Iterator[tuple[phases.TrainingPhases, phases.TrainingPhases | None]]:
    """Yield pre-trainings in mixed precision with their counterpart in full precision."""
    every = {
        id(training_phase.last): training_phase
        for training_phase in phases.training_phases(converge.results(inputs))
    }
    for amp, full in pairs(training_phases.last for training_phases in every.values()):
        yield every[id(amp)], every[id(full)] if full else None


def _pretraining(inputs: Inputs, recipe: Callable[..., str]) -> Iterator[Values]:
    for amp, full in _phases(inputs):
        row = _row(amp.last, full.last if full else None, recipe(amp.first, amp.last))
        hours: dict[str, float | None] = {}
        for side, training_phases in (("amp", amp), ("full", full)):
            if training_phases is None:
                continue
            losses, hours[side] = phases.final_losses(training_phases.last), training_phases.hours
            row[f"batch_{side}"] = training_phases.both(lambda phase: phase.case.batch_per_device)
            row[f"accumulation_{side}"] = training_phases.both(
                lambda phase: phase.case.accumulation
            )
            row[f"score_{side}"] = f"{descriptive.mean(losses):.3f}" if losses else ""
            row[f"time_{side}"] = "" if hours[side] is None else f"{hours[side]:.4g}"
        every = [
            result for pair in (amp, full) if pair for result in (pair.first, pair.last) if result
        ]
        row |= {"flags": flags_of(*every), "reason": _reasons(every)}
        mixed, whole = hours.get("amp"), hours.get("full")
        if mixed and whole:
            row["time_speedup"] = f"{whole / mixed:.2f}"
        yield row | {"score": "loss", "time_unit": "h"}


def _final_losses(inputs: Inputs, recipe: Callable[..., str]) -> Iterator[Values]:
    for pair in _phases(inputs):
        for training_phases in filter(None, pair):
            by_seed = phases.losses_of(training_phases.last)
            losses = list(by_seed.values())
            steps = training_phases.both(lambda phase: phase.case.accumulation)
            row = _row(
                training_phases.last,
                None,
                recipe(training_phases.first, training_phases.last, accumulation=steps),
            )
            if losses:
                deviation = equivalence.deviation(losses)
                row["seeds_mean"] = f"{descriptive.mean(losses):.3f}"
                row["seeds_deviation"] = "" if deviation is None else f"{deviation:.3f}"
                row["seeds_minimum"] = f"{min(losses):.3f}"
                row["seeds_maximum"] = f"{max(losses):.3f}"
            row[EACH] = _by_seed(by_seed, lambda loss: f"{loss:.3f}")
            row["batch"] = training_phases.both(lambda phase: phase.case.batch_per_device)
            yield row | {"precision": training_phases.last.case.precision, "score": "loss"}


def pairs(
    results: Iterable[CaseResult],
) -> Iterator[tuple[CaseResult, CaseResult | None]]:
    """Yield each mixed-precision case with its full-precision counterpart, or None.

    Both have equally many samples per update on the same devices. The counterpart has the same
    compiler if possible, otherwise none: NVIDIA's mixed precision is compiled, its full precision
    is not. Nothing is yielded if no case has a counterpart."""
    known = list(results)
    alike: dict[Hashable, list[CaseResult]] = defaultdict(list)
    for result in known:
        if result.case.precision in FULL:
            alike[_setting(result)].append(result)
    mixed = [result for result in known if result.case.precision == AMP]
    if not any(_setting(result) in alike for result in mixed):
        return
    for result in mixed:
        some = alike[_setting(result)]
        yield result, min(some, key=partial(_distance, result), default=None)


def _distance(amp: CaseResult, full: CaseResult) -> tuple[Any, ...]:
    compiler = full.case.compiler
    return FULL.index(full.case.precision), compiler != amp.case.compiler, compiler != "none"


def _setting(result: CaseResult) -> Hashable:
    case = result.case._replace(precision="", compiler="", batch_per_device=0, accumulation=1)
    return case, result.conditions, result.case.samples_per_step, result.unit


def _on_one(result: CaseResult) -> Hashable:
    case = result.case._replace(nodes=1, devices_per_node=1, accumulation=1)
    return case, result.conditions, result.unit


def _steps(inputs: Inputs, mode: str) -> list[CaseResult]:
    cases = inputs.cases.values()
    return [result for result in cases if result.case.mode == mode and result.case.model in MODELS]


def _recipes(converged: Mapping[Key, Row]) -> Callable[..., str]:
    """Return a function that gives the distinguishing settings of a training as text.

    A training has one or two phases; where these differ, both values are given."""
    apart = [
        column
        for column in trainings.COLUMNS
        if len({row[column.name] for row in converged.values()}) > 1
    ]

    def words(*stages: CaseResult | None, accumulation: str = "") -> str:
        some = [stage for stage in stages if stage]
        lengths = [result.case.sequence_length for result in some]
        given: dict[str, Sequence[Any]] = {"length": lengths, "accumulation": [accumulation]}
        given |= {
            column.header: [converged[stage.key][column.name] for stage in some] for column in apart
        }
        return ", ".join(
            f"{name} {text}" for name, values in given.items() if (text := _each(values))
        )

    return words


def _each(values: Sequence[Any]) -> str:
    """Return one value for all phases, or each in order; "" without values."""
    texts = ["" if value is None else str(value) for value in values]
    if len(set(texts)) == 1 or not any(texts):
        return texts[0] if texts[0] not in ("0", "1 and 1") else ""
    return " and ".join(text or "none" for text in texts)


def _row(result: CaseResult, full: CaseResult | None, more: str = "") -> Values:
    """Return the cells that identify a row.

    ``full``: its case in full precision. ``more``: further details."""
    case, where = result.case, result.conditions
    named = ("accelerator", "input", "machine", "environment")
    parts = [formatting.condition_label(name, getattr(where, name)) for name in named]
    row = {
        "source": case.source,
        "framework": case.framework,
        "framework_version": case.framework_version,
        "model": case.model,
        "details": ", ".join(filter(None, (*parts, more))),
        "nodes": str(case.nodes),
        "devices_per_node": str(case.devices_per_node),
        "batch": str(case.batch_per_device),
        "tokens": formatting.condition_text("sequence_length", case.sequence_length),
        "flags": flags_of(result, full),
        "reason": _reasons(filter(None, (result, full))),
    }
    for side, case_result in (("amp", result), ("full", full)):
        if case_result:
            row[f"batch_{side}"] = str(case_result.case.batch_per_device)
            row[f"accumulation_{side}"] = str(case_result.case.accumulation)
            row[f"compiler_{side}"] = case_result.case.compiler
    if full:
        row["full_precision"] = full.case.precision
    return row


def _reasons(results: Iterable[CaseResult]) -> str:
    return "; ".join(
        f"{result.case.precision}: {result.status}: {result.reason}"
        for result in results
        if result.reason
    )


def _figure(result: CaseResult | None) -> str:
    return f"{result.throughput:.2f}" if result and result.throughput is not None else ""


def _ratio(result: CaseResult | None, base: CaseResult | None) -> str:
    """Return the ratio of unrounded medians as text; "" without both."""
    if not (result and base and result.compared and base.compared):
        return ""
    return f"{result.compared / base.compared:.2f}"


def _percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.3f}"
