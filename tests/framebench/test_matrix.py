"""The order of the runs: rounds of all cases, shuffled; variants of a case next to each other."""

from __future__ import annotations

import itertools
import random

from framebench.matrix import Case, rounds


def case(batch: int, variant: str = "") -> Case:
    return Case("pytorch", "resnet50_v1.5", "train", 1, 1, batch, "fp32", "none", None, variant)


def test_without_variants_each_round_is_shuffled_with_a_seed_of_its_own() -> None:
    found = [case(batch) for batch in range(20)]
    expected = []
    for repeat in (1, 2, 3):
        order = list(found)
        random.Random(f"7/{repeat}").shuffle(order)
        expected += [(one, repeat) for one in order]
    assert list(rounds(found, 3, seed=7)) == expected


def test_variants_of_a_case_follow_each_other_in_an_order_of_their_own() -> None:
    batches, variants, repeats = range(20), ["a", "b", "c"], 12
    # Those of one case need not stand together in what is given.
    found = [case(batch, name) for batch in batches for name in variants[:2]]
    found += [case(batch, "c") for batch in batches]
    runs = list(rounds(found, repeats, seed=7))
    assert sorted(runs) == sorted((one, n) for one in found for n in range(1, repeats + 1))
    assert [run.repeat for run in runs] == sorted(run.repeat for run in runs)
    orders: dict[int, list[tuple[str, ...]]] = {batch: [] for batch in batches}
    groups = itertools.groupby(runs, key=lambda run: (run.repeat, run.case.batch_per_device))
    for (_, batch), group in groups:
        orders[batch].append(tuple(run.case.variant for run in group))
    for found_orders in orders.values():
        assert [sorted(order) for order in found_orders] == [variants] * repeats
        assert len(set(found_orders)) > 1, "a drift within pairs would look like a difference"
    first = [order[0] for found_orders in orders.values() for order in found_orders]
    assert all(60 <= first.count(name) <= 100 for name in variants), "about a third of 240 each"
    assert list(rounds(found, repeats, seed=7)) == runs
    assert list(rounds(found, repeats, seed=8)) != runs
