"""PyTorch adapter in PyTorch's own environment: features special to PyTorch."""

import math
import re
from typing import Any

import pytest

from .fork_server import BERT_PRODUCTS, RESNET_PRODUCTS, ForkServer, served
from .programs.small import small_bert, small_images

run = served("pytorch")


@pytest.mark.parametrize(
    ("model_config", "products"),
    [(small_bert(dropout=0.1), BERT_PRODUCTS), (small_images(), RESNET_PRODUCTS)],
    ids=["bert", "resnet"],
)
def test_all_products_of_amp_are_seen_and_run_in_bfloat16(
    run: ForkServer, model_config: dict[str, Any], products: int
) -> None:
    (actual,) = run("pytorch.trace_amp", model_config=model_config)
    assert actual["matmul_dtypes"] == {"bfloat16": products}
    assert actual["kept"], "looking at the products changed the running statistics"
    assert actual["random"], "looking at the products drew random numbers"
    assert actual["gradients"] == 0
    assert math.isfinite(actual["first"])
    settings = actual["settings"]
    assert settings["float32_matmul_precision"] == "highest"
    assert settings["amp_dtype"] == "bfloat16"
    assert settings["threads"] == 1
    assert settings["fused_optimizer"] is True


def test_amp_without_effect_is_a_mismatch(run: ForkServer) -> None:
    (actual,) = run("pytorch.disable_autocast")
    assert "float32" in str(actual["reason"])


def test_compiled_counts_what_was_compiled(run: ForkServer) -> None:
    (actual,) = run("pytorch.compile_once")
    assert actual["unique_graphs"] == 1, "the step was compiled more than once"
    assert actual["graph_breaks"] == 0
    assert actual["kernels"] > 0
    assert actual["same"]
    assert actual["difference"] < 1e-6, "compiled and eager outputs differ"


def test_compiled_raises_where_nothing_was_compiled(run: ForkServer) -> None:
    (actual,) = run("pytorch.compile_nothing")
    assert actual["early"], "a model that did not run yet counts as compiled"
    assert actual["disabled"], "a model that stayed eager counts as compiled"


def test_inductor_without_a_compiler_is_unsupported(run: ForkServer) -> None:
    (actual,) = run("pytorch.lack_compiler")
    assert "no-such-compiler" in str(actual["reason"])


def test_a_mode_of_the_compiler_that_had_no_effect_is_a_mismatch(run: ForkServer) -> None:
    (actual,) = run("pytorch.tune")
    assert actual["tuned"] > 0
    assert actual["changed"], "weights that are loaded later are not those that were frozen"
    assert "has chosen no kernel for any matmul" in str(actual["untuned"])


@pytest.mark.parametrize(
    ("compiler", "mode", "reason"),
    [
        ("inductor:max-autotune", "train", "for inference only"),
        ("inductor:reduce-overhead", "inference", "CUDA graphs, which a CPU does not have"),
        ("zentorch", "train", "zentorch optimizes inference alone"),
        ("zentorch", "inference", "zentorch is not installed"),
    ],
)
def test_a_mode_of_the_compiler_that_has_nothing_to_do_is_unsupported(
    run: ForkServer, compiler: str, mode: str, reason: str
) -> None:
    (actual,) = run("common.refuse", mode=mode, compiler=compiler)
    assert reason in str(actual["reason"])


def test_zentorch_is_proved_by_its_operators_that_a_step_ran(run: ForkServer) -> None:
    (actual,) = run("pytorch.use_zentorch")
    assert actual["ran"] == {"double": 2}
    assert "no operator of its own" in str(actual["none"])


def test_weights_are_frozen_for_the_kernels_of_cpus_alone(run: ForkServer) -> None:
    (actual,) = run("pytorch.freeze")
    assert actual == {"cuda": False, "cpu": True}


def test_a_residual_is_added_where_its_block_put_out(run: ForkServer) -> None:
    """Fail if a residual is not added in place, as in torchvision.
    A sum in new memory costs 6 % of ResNet-50's inference."""
    (actual,) = run("pytorch.add_residuals")
    assert actual["names"] == ["aten::add_"] * 3


def test_memory_that_ran_out_is_distinguished_from_other_errors(run: ForkServer) -> None:
    (actual,) = run("pytorch.run_out_of_memory")
    assert actual == {"shape": False, "device": True}


def test_what_is_copied_to_another_device_arrives(run: ForkServer) -> None:
    """Fail if copies to another device do not arrive; here both devices are the host."""
    (actual,) = run("pytorch.copy_between")
    assert (actual["before"], actual["after"]) == ([0] * 5, [*range(5)]), "it is the array itself"
    assert actual["dtype"] == "float32"
    assert re.search("CUDA|NVIDIA driver", actual["asked"]), "it was no copy between two GPUs"
