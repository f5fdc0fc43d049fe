"""Features special to PyTorch."""

import math

import torch
import torch._inductor.config
from harness.adapter import Mismatch, Unsupported

from .common import refuse
from .prelude import built, judged, module_of, raised, started
from .small import BERT_PRODUCTS, RESNET_PRODUCTS, model_config_of, small_bert, small_images


def check_all_products_of_amp_are_seen_and_run_in_bfloat16():
    for model_config, count in (
        (small_bert(dropout=0.1), BERT_PRODUCTS),
        (small_images(), RESNET_PRODUCTS),
    ):
        adapter = built(model_config, precision="amp")
        buffers = [b.clone() for b in adapter._model.buffers()]
        state = torch.get_rng_state()
        assert adapter.matmul_dtypes() == {"bfloat16": count}
        assert all(map(torch.equal, buffers, adapter._model.buffers()))
        assert torch.equal(state, torch.get_rng_state()), "looking drew random numbers"
        assert not any(p.grad is not None for p in adapter._model.parameters())
        assert math.isfinite(adapter.read(adapter.step()))
        settings = adapter.settings()
        assert settings["float32_matmul_precision"] == "highest"
        assert settings["amp_dtype"] == "bfloat16"
        assert settings["threads"] == 1
        assert settings["fused_optimizer"] is True


def check_compiled_counts_what_was_compiled():
    torch._inductor.config.compile_threads = 1  # no pool of processes that all import PyTorch
    adapter = built(small_bert(layers=0), mode="inference", compiler="inductor")
    assert raised(Mismatch, adapter.compiled), "a model that did not run yet counts as compiled"
    adapter.matmul_dtypes()
    first, second = adapter.read(adapter.step()), adapter.read(adapter.step())
    assert first == second
    counts = adapter.compiled()
    assert counts["unique_graphs"] == 1, "the step was compiled more than once"
    assert counts["graph_breaks"] == 0
    assert counts["kernels"] > 0
    adapter._model._compiled_call_impl = None
    assert abs(first - adapter.read(adapter.step())) < 1e-6, "compiled and eager outputs differ"


def check_compiled_raises_where_nothing_was_compiled():
    adapter = built(small_bert(), mode="inference", compiler="inductor")
    torch._dynamo.config.disable = True  # the same as setting TORCHDYNAMO_DISABLE

    def run_it():
        adapter.step()  # newer versions of PyTorch raise by themselves
        adapter.compiled()

    assert raised((Mismatch, RuntimeError), run_it), "a model that stayed eager counts as compiled"


def check_a_mode_of_the_compiler_that_had_no_effect_is_a_mismatch():
    torch._inductor.config.compile_threads = 1
    model_config = model_config_of("digits_resnet")
    model_config["hyperparameters"]["layers"] = [
        {"op": "flatten", "name": "flat"},
        {"op": "linear", "name": "fc", "features": 16},
    ]
    adapter = built(model_config, mode="inference", compiler="inductor:max-autotune")
    outputs = adapter.outputs()
    adapter.load_weights({name: 2 * array for name, array in adapter.weights().items()})
    assert any((a != b).any() for a, b in zip(outputs, adapter.outputs())), "weights are frozen"
    from torch._dynamo.utils import counters

    assert adapter.compiled()["autotuned"] > 0
    counters["inductor"].clear()
    reason = raised(Unsupported, adapter.compiled)
    assert "has chosen no kernel for any matmul" in reason


def check_a_mode_of_the_compiler_that_has_nothing_to_do_is_unsupported():
    for compiler, mode, reason in (
        ("inductor:max-autotune", "train", "for inference only"),
        ("inductor:reduce-overhead", "inference", "CUDA graphs, which a CPU does not have"),
        ("zentorch", "train", "zentorch optimizes inference only"),
        ("zentorch", "inference", "zentorch is not installed"),
    ):
        assert reason in refuse(mode=mode, compiler=compiler)["reason"]


def check_zentorch_is_proved_by_its_operators_that_a_step_ran():
    @torch.library.custom_op("zentorch::double", mutates_args=())
    def double(x: torch.Tensor) -> torch.Tensor:
        return 2 * x

    started(small_bert(), mode="inference")
    executed = module_of("steps").operators_of_zentorch
    x = torch.ones(3)
    assert executed(lambda: [double(x), double(x), x + x]) == {"double": 2}
    assert "no operator of zentorch" in raised(Mismatch, lambda: executed(lambda: x + x))


def check_memory_that_ran_out_is_distinguished_from_other_errors():
    adapter = started(small_bert())
    assert adapter.out_of_memory(torch.cuda.OutOfMemoryError("full"))
    assert not judged(adapter, lambda: torch.ones(2, 3) @ torch.ones(2, 3))
