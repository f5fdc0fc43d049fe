"""Table of costs and emissions per million samples or tokens, under stated assumptions."""

from __future__ import annotations

from typing import Any

from ...records.sidecars.assumptions import Assumptions
from ...statistics import descriptive
from ..columns import (
    NUMBER,
    RESULT_COLUMNS,
    TEXT,
    THREE_DIGITS,
    Column,
    Row,
    interval,
    interval_cells,
    shared,
)
from ..results import CaseResult, median_interval
from ..table import Table

MILLION = 1e6
_SECONDS = 3600.0
#: Joules per kilowatt-hour.
_KILOWATT_HOUR = 3.6e6


def _cells(result: CaseResult, assumed: Assumptions) -> Row | None:
    """Return costs and emissions of a case with a figure; None if neither can be computed.

    1. Cost of a million samples, or tokens for models with sequences: nodes x price per hour / 3600
       / samples per second. Its interval follows from that of the throughput.
    2. Emissions: median over repeats of joules per sample x PUE x g/kWh / 3.6e6, with the interval
       of this median."""
    if not assumed.has_costs or result.throughput is None:
        return None
    per, samples = _amount(result)
    cost, cost_ends = None, None
    if assumed.price_per_hour is not None:
        seconds = samples * result.case.nodes / _SECONDS * assumed.price_per_hour
        cost = result.throughput and seconds / result.throughput
        if result.interval:
            slowest, fastest = result.interval
            cost_ends = (fastest and seconds / fastest, slowest and seconds / slowest)
    emissions, emitted_ends = None, None
    energies = [run.joules_per_sample for run in result.ok if run.joules_per_sample is not None]
    if assumed.grid_intensity is not None and energies:
        factor = samples * assumed.pue * assumed.grid_intensity / _KILOWATT_HOUR
        about = median_interval(energies)
        emissions = factor * descriptive.median(energies)
        emitted_ends = about and (factor * about[0], factor * about[1])
    is_unread = assumed.grid_intensity is not None and not energies
    return {
        "per": per,
        "cost": cost,
        **interval_cells("cost", cost_ends),
        "emissions": emissions,
        **interval_cells("emissions", emitted_ends),
        "price_per_hour": assumed.price_per_hour,
        "currency": assumed.currency,
        "grid_intensity": assumed.grid_intensity,
        "pue": assumed.pue,
        "reason": "no energy could be read on this machine" if is_unread else "",
    }


def _amount(result: CaseResult) -> tuple[str, float]:
    """Return the reference amount of the figures, and its number of samples."""
    length = result.case.sequence_length
    if length:
        return "million tokens", MILLION / length
    return f"million {result.unit.removesuffix('/s')}", MILLION


def _number(name: str, meaning: str, unit: str, title: str, **shown: Any) -> Column:
    return Column(name, NUMBER, meaning, unit, title=title, form=THREE_DIGITS, **shown)


_FOR: dict[str, Any] = {"form": THREE_DIGITS, "optional": True}
COSTS = Table(
    name="costs",
    title="Costs and emissions",
    explanation="What a million samples, of models with sequences a million tokens, cost and emit. "
    "Nothing of that is measured but throughput and energy: what an hour of a node costs, what "
    "a kilowatt-hour emits, and what the computing centre needs besides its computers is assumed, "
    "and stands here. A case pays for the whole of its nodes, however many devices it uses.",
    columns=(
        *RESULT_COLUMNS,
        Column("per", TEXT, "what the figures are for", hoisted=True, follows="model"),
        _number("cost", "nodes x price of an hour over what an hour does", "currency", "cost",
                flagged=True, optional=True),
        *interval("cost", "the cost", "currency", **_FOR),
        _number("emissions", "energy x PUE x what a kilowatt-hour emits", "g CO2e", "g CO2e",
                optional=True),
        *interval("emissions", "the emissions", "g CO2e", **_FOR),
        _number("price_per_hour", "assumed: what an hour of a node costs", "currency",
                "price of a node's hour", hoisted=True, optional=True),
        Column("currency", TEXT, "that of cost and price", hoisted=True),
        _number("grid_intensity", "assumed: what a kilowatt-hour emits", "g CO2e/kWh",
                "g CO2e per kWh", hoisted=True, optional=True),
        _number("pue", "assumed: energy of the computing centre over that of its computers", "",
                "PUE", hoisted=True),
        *shared("flags", "reason"),
    ),
    rows=lambda inputs: inputs.cases_with(lambda result: _cells(result, inputs.assumptions)),
    group="Where the time goes",
    sectioned=True,
)  # fmt: skip
TABLES = (COSTS,)
