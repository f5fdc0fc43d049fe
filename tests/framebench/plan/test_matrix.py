"""Order of the runs: rounds of all cases, shuffled; variants of a case next to each other."""

from __future__ import annotations

import itertools
import json
import random
from types import SimpleNamespace
from typing import Any

import pytest
from core.case import Case
from framebench.cases.fitting import capacity
from framebench.cases.matrix import rounds
from framebench.machine.local import Machine
from framebench.records import flags

from ..made_up_records import record_of


def case(batch: int, variant: str = "") -> Case:
    return Case("pytorch", "resnet50_v1.5", "train", 1, 1, batch, "fp32", "none", None, variant)


def test_variants_of_a_case_follow_each_other_in_an_order_of_their_own() -> None:
    batches, variants, repeats = range(20), ["a", "b", "c"], 12
    # The given cases need not be grouped.
    actual = [case(batch, name) for batch in batches for name in variants[:2]]
    actual += [case(batch, "c") for batch in batches]
    runs = list(rounds(actual, repeats, seed=7))
    assert sorted(runs) == sorted((one, n) for one in actual for n in range(1, repeats + 1))
    assert [repeat for _, repeat in runs] == sorted(repeat for _, repeat in runs)
    orders: dict[int, list[tuple[str, ...]]] = {batch: [] for batch in batches}
    groups = itertools.groupby(runs, key=lambda run: (run[1], run[0].batch_per_device))
    for (_, batch), group in groups:
        orders[batch].append(tuple(case.variant for case, _ in group))
    for found_orders in orders.values():
        assert [sorted(order) for order in found_orders] == [variants] * repeats
        assert len(set(found_orders)) > 1, "a drift within pairs would look like a difference"
    first = [order[0] for found_orders in orders.values() for order in found_orders]
    assert all(60 <= first.count(name) <= 100 for name in variants), "about a third of 240 each"
    assert list(rounds(actual, repeats, seed=7)) == runs
    assert list(rounds(actual, repeats, seed=8)) != runs


SMT = Machine(8, 0, physical_cores=4)


@pytest.mark.parametrize(
    ("machine", "asked", "devices", "per_device"),
    [
        (Machine(8, 0), "auto", (1, 2), 4),
        (SMT, "auto", (1, 2), 2),
        (SMT, "auto", (1, 2, 16), 2),
        (Machine(12, 0, physical_cores=9), "auto", (1, 3), 3),
        (SMT, 4, (1, 2), 4),
    ],
)
def test_a_device_is_made_of_physical_cores(
    machine: Machine, asked: Any, devices: tuple[int, ...], per_device: int
) -> None:
    settings: Any = SimpleNamespace(
        side_by_side=False, accelerator="cpu", cores_per_device=asked, memory_limit=None
    )
    some = [case(2)._replace(devices_per_node=count) for count in devices]
    actual = capacity(settings, machine, some)
    assert actual.cores_per_device == per_device
    fit = [count for count in devices if count <= actual.devices_per_node]
    assert fit == [count for count in devices if count <= machine.cores]


@pytest.mark.parametrize(
    ("per_device", "devices", "physical", "why"),
    [
        (2, 2, 4, None),
        (2, 2, 2, "4 threads had 2 physical cores between them"),
        (4, 1, 2, "4 threads had 2 physical cores between them"),
        (4, 1, None, None),
    ],
)
def test_threads_that_share_physical_cores_flag_the_figure(
    per_device: int, devices: int, physical: int | None, why: str | None
) -> None:
    options = {**case(2)._asdict(), "devices_per_node": devices}
    del options["variant"]
    record = json.loads(json.dumps(record_of(random.Random(1), options, 1)))
    record["settings"]["cores_per_device"] = per_device
    if physical is not None:
        record["environment"]["hardware"]["physical_cores"] = physical
    assert flags.flags_of(record) == (() if why is None else (("shared", why),))
