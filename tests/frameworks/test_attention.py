"""Attention uses each framework's recommended kernel."""

from __future__ import annotations

import pytest

from .comparing import BEFORE
from .fork_server import ForkServer, served

LAYERS = 2
#: Place of the kernel in the framework's modules.
FUSED = {"pytorch": "torch.nn.functional", "paddle": "paddle.nn.functional"}
COUNT = f"""
import importlib
functional = importlib.import_module(FUNCTIONAL)
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
    vocabulary=50, hidden=32, layers={LAYERS}, heads=4, key_value_heads=4, intermediate=64
)
for item in decoder["inputs"]:
    item["below"] = 50
found = {{
    f"{{facts['name']}} {{mode}}": calls_of(facts, mode)
    for facts in (small_bert(layers={LAYERS}), decoder)
    for mode in ("train", "inference")
}}
answer(found=found)
"""

run = served(*FUSED)


@pytest.mark.parametrize("run", FUSED, indirect=True)
def test_each_layer_has_the_fused_attention(run: ForkServer) -> None:
    """Fail if a layer uses the fused kernel other than once per forward pass, also with dropout."""
    (answer,) = run(
        BEFORE.get(run.framework, "") + COUNT.replace("FUNCTIONAL", repr(FUSED[run.framework]))
    )
    models, modes = ("bert_base", "gpt2_small"), ("train", "inference")
    assert answer["found"] == {f"{model} {mode}": LAYERS for model in models for mode in modes}
