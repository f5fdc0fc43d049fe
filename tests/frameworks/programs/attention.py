"""Calls of a framework's attention."""

import importlib

from harness.measuring.synthetic import make_batch

from .comparing import started
from .prelude import SEQUENCE
from .small import model_config_of, small_bert


def count_calls(functional, layers):
    functional = importlib.import_module(functional)
    fused, calls = functional.scaled_dot_product_attention, []

    def counted(*arguments, **named):
        calls.append(named)
        return fused(*arguments, **named)

    functional.scaled_dot_product_attention = counted

    def calls_of(model_config, mode):
        adapter = started(model_config, mode=mode)
        adapter.build(make_batch(model_config["inputs"], 2, SEQUENCE, 0, 0))
        calls.clear()
        adapter.step()
        adapter.synchronize()
        adapter.stop()
        return len(calls)

    decoder = model_config_of("gpt2_small")
    decoder["hyperparameters"].update(
        vocabulary=50, hidden=32, layers=layers, heads=4, key_value_heads=4, intermediate=64
    )
    for item in decoder["inputs"]:
        item["below"] = 50
    return {
        f"{model_config['name']} {mode}": calls_of(model_config, mode)
        for model_config in (small_bert(layers=layers), decoder)
        for mode in ("train", "inference")
    }
