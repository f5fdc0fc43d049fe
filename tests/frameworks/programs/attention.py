"""Calls of a framework's attention."""

import importlib

from harness.measuring.synthetic import make_batch

from .comparing import started
from .prelude import SEQUENCE
from .small import facts_of, small_bert


def count_calls(functional, layers):
    functional = importlib.import_module(functional)
    fused, calls = functional.scaled_dot_product_attention, []

    def counted(*arguments, **named):
        calls.append(named)
        return fused(*arguments, **named)

    functional.scaled_dot_product_attention = counted

    def calls_of(facts, mode):
        adapter = started(facts, mode=mode)
        adapter.build(make_batch(facts["inputs"], 2, SEQUENCE, 0, 0))
        calls.clear()
        adapter.step()
        adapter.synchronize()
        adapter.stop()
        return len(calls)

    decoder = facts_of("gpt2_small")
    decoder["hyperparameters"].update(
        vocabulary=50, hidden=32, layers=layers, heads=4, key_value_heads=4, intermediate=64
    )
    for item in decoder["inputs"]:
        item["below"] = 50
    return {
        f"{facts['name']} {mode}": calls_of(facts, mode)
        for facts in (small_bert(layers=layers), decoder)
        for mode in ("train", "inference")
    }
