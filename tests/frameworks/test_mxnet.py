"""MXNet adapter in MXNet's own environment: features special to MXNet."""

import math
from pathlib import Path

import pytest

from ..processes import wait_for
from .fork_server import BERT_PRODUCTS, RESNET_PRODUCTS, ForkServer, served
from .processors import NO_BFLOAT16, onednn_has_bfloat16
from .programs.small import small_bert, small_images

MODELS = {"bert": (small_bert(), BERT_PRODUCTS), "resnet": (small_images(), RESNET_PRODUCTS)}

run = served("mxnet")


@pytest.fixture
def bfloat16(run: ForkServer) -> None:
    """Let a test run where MXNet has bfloat16; elsewhere it must refuse mixed precision."""
    if onednn_has_bfloat16():
        return
    (actual,) = run("common.refuse", precision="amp")
    assert NO_BFLOAT16 in actual["reason"]
    pytest.skip("MXNet has bfloat16 only on processors with AVX-512")


@pytest.mark.parametrize("compiler", ["none", "hybridize"])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("mode", ["train", "inference"])
def test_products_are_observed(run: ForkServer, model: str, mode: str, compiler: str) -> None:
    model_config, products = MODELS[model]
    (actual,) = run("mxnet.trace", model_config=model_config, mode=mode, compiler=compiler)
    assert actual["matmul_dtypes"] == actual["again"] == {"float32": products}
    assert actual["kept"], "looking at the products changed the model"
    assert bool(actual["compiled"]) == (compiler == "hybridize")
    assert (actual["fused"] == "MKLDNN") == (mode == "inference")


@pytest.mark.parametrize("compiler", ["none", "hybridize"])
def test_bfloat16_on_the_cpu(run: ForkServer, bfloat16: None, compiler: str) -> None:
    (actual,) = run("mxnet.train_in_bfloat16", compiler=compiler)
    assert actual["matmul_dtypes"] == {"bfloat16": RESNET_PRODUCTS}
    assert math.isfinite(actual["loss"])
    assert "bfloat16" in actual["logits"]
    assert actual["amp"] == "bfloat16"


@pytest.mark.parametrize("compiler", ["none", "hybridize"])
def test_amp_without_effect_is_seen(run: ForkServer, bfloat16: None, compiler: str) -> None:
    (actual,) = run("mxnet.lose_amp", compiler=compiler)
    assert actual["matmul_dtypes"] == {"float32": RESNET_PRODUCTS}


@pytest.mark.parametrize("compiler", ["none", "hybridize"])
def test_a_product_that_mxnet_lacks_in_bfloat16_stays_in_float32(
    run: ForkServer, bfloat16: None, compiler: str
) -> None:
    (actual,) = run("mxnet.train_bert_in_bfloat16", compiler=compiler)
    assert actual["matmul_dtypes"] == {"bfloat16": BERT_PRODUCTS - 4, "float32": 4}  # attention's
    assert math.isfinite(actual["losses"][-1])


def test_a_model_without_any_product_in_bfloat16_is_unsupported(run: ForkServer) -> None:
    (actual,) = run("mxnet.refuse_bfloat16")
    assert "on cpu in bfloat16" in str(actual["reason"])
    assert "float32/float64 for CPU" in str(actual["reason"]), "not MXNet's own words"


def test_float16_scales_its_loss_and_skips_what_overflows(run: ForkServer, bfloat16: None) -> None:
    """Fail if loss scaling or overflow handling is wrong; no CPU has float16 matmuls."""
    (actual,) = run("mxnet.scale_loss")
    assert actual["scaled"] == pytest.approx(actual["plain"], rel=1e-2)
    assert actual["kept"], "an overflow reached the weights"
    assert actual["trained"]


def test_compiled_raises_where_the_model_is_not_one_graph(run: ForkServer) -> None:
    (actual,) = run("mxnet.compile_parts")
    assert actual["early"], "a model that did not run yet counts as compiled"
    assert actual["parts"], "a model that was compiled in parts counts as compiled"


def test_a_fused_graph_takes_new_weights(run: ForkServer) -> None:
    (actual,) = run("mxnet.load_fused")
    assert actual["again"] == pytest.approx(actual["imperative"], rel=1e-4)
    assert actual["again"] != pytest.approx(actual["first"], rel=1e-2)


def test_ranks_that_are_killed_take_the_parameter_server_along(
    run: ForkServer, tmp_path: Path
) -> None:
    first, _ = run("mxnet.kill_ranks", ranks=2, folder=str(tmp_path))
    assert len(first["children"]) == 2
    wait_for(
        lambda: not any(map(_runs, first["children"])),
        "the scheduler and the server to end with their rank",
    )


def _runs(pid: int) -> bool:
    """Return whether the process exists and is no zombie."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_memory_that_ran_out_is_distinguished_from_other_errors(run: ForkServer) -> None:
    (actual,) = run("mxnet.run_out_of_memory")
    # a record keeps the first line, which is not one of a C++ trace
    assert actual["memory"] == [True, "Failed to allocate CPU Memory"]
    assert actual["shape"][0] is False
    assert "Traceback" not in actual["shape"][1]
    assert actual["host"] is True


@pytest.mark.parametrize("to_the_end", [True, False])
def test_workers_of_a_loader_end_by_themselves(run: ForkServer, to_the_end: bool) -> None:
    """Fail if a loader's workers do not end by themselves.
    One killed while handing a batch over would block the end of the pool forever."""
    (actual,) = run("mxnet.end_workers", to_the_end=to_the_end)
    rest = [[[2.0], [3.0]], [[4.0], [5.0]], [[6.0], [7.0]]]
    expected = {"first": [[0.0], [1.0]], "rest": rest if to_the_end else None, "codes": [0, 0]}
    assert actual == expected
