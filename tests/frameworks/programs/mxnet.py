"""Features special to MXNet."""

import os
import resource
import time

import numpy as np
from harness.adapter import Mismatch, Unsupported
from mxnet.contrib import amp

from ..processors import NO_BFLOAT16, onednn_has_bfloat16
from .common import refuse
from .prelude import batch_of, built, library, module_of, raised, started
from .ranks import answer
from .small import BERT_PRODUCTS, RESNET_PRODUCTS, small_bert, small_images


def check_products_are_observed_without_changing_the_model():
    for model_config, count in ((small_bert(), BERT_PRODUCTS), (small_images(), RESNET_PRODUCTS)):
        for mode, compiler in (("train", "none"), ("train", "hybridize"), ("inference", "none")):
            observe_products(model_config, mode, compiler, count)
    observe_products(small_bert(), "inference", "hybridize", BERT_PRODUCTS)


def observe_products(model_config, mode, compiler, count):
    adapter = built(model_config, mode=mode, compiler=compiler)

    def state():
        return [p.data().asnumpy() for p in adapter._model.collect_params().values()]

    before = state()
    assert adapter.matmul_dtypes() == {"float32": count}
    assert all(map(np.array_equal, before, state()))
    adapter.step()
    assert adapter.matmul_dtypes() == {"float32": count}
    assert compiler == "none" or adapter.compiled()
    assert (adapter._hybridize.get("backend") == "MKLDNN") == (mode == "inference")


def train_in_bfloat16(model_config, compiler, dtypes):
    """Check a model in mixed precision, where the processor has it. MXNet names operations of all
    models of a process anew, so there is one each time."""
    if not onednn_has_bfloat16():
        assert NO_BFLOAT16 in refuse(precision="amp", compiler=compiler)["reason"]
        return
    adapter = built(model_config, precision="amp", compiler=compiler)
    losses = [adapter.read(adapter.step()) for _ in range(8)]
    assert adapter.matmul_dtypes() == dtypes
    assert np.isfinite(losses).all()
    assert "bfloat16" in str(adapter.logits()[0].dtype)
    assert adapter.settings()["amp_dtype"] == "bfloat16"


def check_amp_runs_in_bfloat16_in_a_graph():
    train_in_bfloat16(small_images(), "hybridize", {"bfloat16": RESNET_PRODUCTS})


def check_running_statistics_are_those_of_all_steps_so_far():
    adapter = built(small_images(), compiler="hybridize")
    for _ in range(20):
        adapter.step()
    read = adapter.statistics()
    adapter.synchronize()
    after = adapter.statistics()
    assert all(np.array_equal(read[name], after[name]) for name in after)


#: The matmuls of attention, which MXNet lacks in bfloat16, stay in float32.
ATTENTION_IN_FLOAT32 = {"bfloat16": BERT_PRODUCTS - 4, "float32": 4}


def check_a_product_that_mxnet_lacks_in_bfloat16_stays_in_float32():
    train_in_bfloat16(small_bert(), "none", ATTENTION_IN_FLOAT32)


def check_amp_without_effect_is_seen():
    amp.init = lambda *arguments, **options: None
    for compiler in ("none", "hybridize") if onednn_has_bfloat16() else ():
        adapter = built(small_images(), precision="amp", compiler=compiler)
        assert adapter.matmul_dtypes() == {"float32": RESNET_PRODUCTS}


def check_a_model_without_any_product_in_bfloat16_is_unsupported():
    context = started(small_bert())._context
    reason = raised(
        Unsupported, lambda: module_of("devices").set_precision("amp", context, ("batch_dot",))
    )
    assert "on cpu in bfloat16" in reason
    assert "float32/float64 for CPU" in reason, "not MXNet's own words"


def check_float16_scales_its_loss_and_skips_what_overflows():
    """No CPU has float16 matmuls: the gradients are those of bfloat16."""
    if not onednn_has_bfloat16():
        return

    def gradients(dtype):
        adapter._dtype = dtype
        adapter.build(batch_of(adapter.model_config))
        return adapter.gradients()

    adapter = started(small_images(), precision="amp")
    plain, scaled = gradients("bfloat16"), gradients("float16")
    norms = [[float(np.linalg.norm(g)) for g in each.values()] for each in (plain, scaled)]
    assert np.allclose(*norms, rtol=1e-2)
    start = adapter.weights_checksum()
    scaler = adapter._trainer._amp_loss_scaler
    scaler._loss_scale = scaler._next_loss_scale = 3e38
    adapter.step()
    assert adapter.weights_checksum() == start, "an overflow reached the weights"
    scaler._loss_scale = scaler._next_loss_scale = 2.0**16
    adapter.step()
    assert adapter.weights_checksum() != start


def check_compiled_raises_where_the_model_is_not_one_graph():
    adapter = built(small_bert(), mode="inference", compiler="hybridize")
    assert raised(Mismatch, adapter.compiled), "a model that did not run yet counts as compiled"
    adapter._model.hybridize(active=False)
    adapter._model.layers.hybridize()
    adapter.step()
    assert raised(Mismatch, adapter.compiled), "a model compiled in parts counts as compiled"


def check_a_fused_graph_takes_new_weights():
    adapter = built(small_bert(), mode="inference", compiler="hybridize")
    adapter.step()
    changed = {name: array * 2 for name, array in adapter.weights().items()}
    adapter.load_weights(changed)
    other = built(small_bert(), mode="inference")
    other.load_weights(changed)
    values = adapter.read(adapter.step()), other.read(other.step())
    assert np.isclose(*values, rtol=1e-4), values


def kill_ranks(folder):
    adapter = started(small_bert())
    adapter.all_reduce(0.0)
    answer(children=[child.pid for child in adapter._group._children])
    os.mkdir(f"{folder}/{os.getpid()}")
    while len(os.listdir(folder)) < 2:  # otherwise the other rank would wait for its sum for ever
        time.sleep(0.02)
    os.kill(os.getpid(), 9)


def check_memory_that_ran_out_is_distinguished_from_other_errors():
    """A record keeps the first line, which is not one of a C++ trace."""
    adapter = started(small_bert())
    nd = library().nd

    def judge(action):
        try:
            action().wait_to_read()
        except Exception as error:
            return adapter.out_of_memory(error), str(error).splitlines()[0]

    is_memory, line = judge(lambda: nd.ones((2, 3)).reshape((7, 7)))
    assert not is_memory
    assert "Traceback" not in line
    resource.setrlimit(resource.RLIMIT_AS, (1 << 32, 1 << 32))
    assert judge(lambda: nd.zeros((1 << 29, 3))) == (True, "Failed to allocate CPU Memory")
    assert adapter.out_of_memory(MemoryError())
