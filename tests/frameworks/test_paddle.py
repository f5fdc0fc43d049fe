"""PaddlePaddle adapter in Paddle's own environment: features special to Paddle."""

import math
from typing import Any

import pytest

from .fork_server import BERT_PRODUCTS, RESNET_PRODUCTS, ForkServer, distance, norm, served
from .processors import onednn_has_bfloat16
from .programs.small import small_bert, small_images

run = served("paddle")


def test_resnet50_is_version_1_5(run: ForkServer) -> None:
    (actual,) = run("paddle.describe_resnet")
    assert actual["parameters"] == 25_557_032
    assert actual["all"] > actual["parameters"], "Paddle counts running statistics as parameters"
    assert actual["layers"] == 53
    assert actual["biases"] == 0, "a convolution before a batch normalisation has a bias"
    assert actual["strided"] == [1, 1, 1, 3, 3, 3, 7], "v1.5 strides in the 3x3 convolution"
    assert actual["norms"] == [[1e-05, 0.9]], "Paddle's momentum is 1 - PyTorch's"
    assert actual["deviation"] == pytest.approx(math.sqrt(2 / (512 * 9)), rel=0.01)


@pytest.mark.parametrize(
    "model_config",
    [small_images(), small_bert(epsilon=1e-3, clip_global_norm=0.1, weight_decay=0.3)],
    ids=["sgd", "adamw"],
)
def test_optimizers_follow_pytorchs_rules(run: ForkServer, model_config: dict[str, Any]) -> None:
    (actual,) = run("paddle.follow_rule", model_config=model_config)
    assert actual["length"] > 0.1, "nothing was clipped"
    assert actual["worst"] < 2e-3


@pytest.mark.parametrize("compiler", ["none", "to_static"])
def test_two_ranks_average_their_gradients_without_a_launcher(
    run: ForkServer, compiler: str
) -> None:
    options = {"model_config": small_bert(layers=0), "compiler": compiler}
    (alone,) = run("common.average", halves=[0, 1], **options)
    first, second = run("common.average", ranks=2, **options)
    assert first["settings"]["process_group"] == "gloo"
    assert first["total"] == second["total"] == 3.0
    assert first["loss"] != second["loss"], "both ranks saw the same batch"
    assert first["gradients"] == second["gradients"], "the ranks' gradients differ"
    assert distance(first["gradients"], alone["gradients"]) < 1e-5 * norm(alone["gradients"])
    assert first["checksum"] == second["checksum"]
    assert first["checksum"] == pytest.approx(alone["checksum"], rel=1e-5)
    assert ("backward_operations" in first["compiled"]) == (compiler == "to_static")


@pytest.mark.parametrize("compiler", ["none", "to_static"])
@pytest.mark.parametrize(
    ("model_config", "products"),
    [(small_bert(dropout=0.1), BERT_PRODUCTS), (small_images(), RESNET_PRODUCTS)],
    ids=["bert", "resnet"],
)
def test_counting_products_changes_nothing(
    run: ForkServer, model_config: dict[str, Any], products: int, compiler: str
) -> None:
    (actual,) = run("paddle.trace", model_config=model_config, compiler=compiler)
    assert actual["matmul_dtypes"] == {"float32": products}
    assert actual["kept"], "looking at the products changed the running statistics"
    assert actual["random"], "looking at the products drew random numbers"
    assert actual["gradients"] == 0
    assert math.isfinite(actual["first"])
    if products == BERT_PRODUCTS:  # batch 2, sequence 16, 2 predictions; attention included
        layer = 16 * (4 * 32 * 32 + 2 * 32 * 64) + 2 * 16 * 16 * 32
        heads = 2 * (32 * 32 + 32 * 50) + 32 * 32 + 32 * 2
        assert actual["multiply_adds"] == 2 * (2 * layer + heads)


def test_amp_without_effect_is_unsupported_in_paddles_words(run: ForkServer) -> None:
    (actual,) = run("common.refuse", build=True, precision="amp")
    assert "float32" in actual["reason"]
    assert "it makes no effect" in actual["reason"]


@pytest.mark.skipif(onednn_has_bfloat16(), reason="oneDNN has bfloat16 on this processor")
def test_amp_in_a_program_is_refused_where_the_processor_has_no_bfloat16(run: ForkServer) -> None:
    (actual,) = run("paddle.refuse_programs")
    assert "a bfloat16 matmul in a program: " in actual["inference"]
    assert "bfloat16 matmul in a program: " in actual["train"]


@pytest.mark.skipif(
    not onednn_has_bfloat16(), reason="oneDNN has no bfloat16 on this processor: refused"
)
def test_amp_runs_in_a_program_where_paddle_can(run: ForkServer) -> None:
    """Fail if amp does not run in a program where Paddle can.
    oneDNN has bfloat16 matmuls for programs; their gradient crashes, and batch normalisation
    refuses bfloat16."""
    (actual,) = run("paddle.infer_in_bfloat16")
    assert actual["matmul_dtypes"] == {"bfloat16": BERT_PRODUCTS}
    assert actual["weights"] == ["paddle.float32"]
    assert 0 < actual["difference"] < 0.05 * actual["scale"]
    assert actual["compiled"]["programs"] == 1
    assert "Segmentation fault" in actual["training"]
    assert "batch_norm_" in actual["normalization"]
    assert "bfloat16" in actual["normalization"]


def test_programs_are_proved_to_have_run(run: ForkServer) -> None:
    (actual,) = run("paddle.leave_programs")
    assert actual["early"], "a program that did not run yet counts as compiled"
    assert actual["disabled"], "a model in the dynamic graph counts as compiled"
    assert actual["programs"] == 1, "the model was traced more than once"
    assert actual["forward_operations"] > 0
    assert actual["same"] < 1e-6


def test_a_build_without_cinn_or_cuda_says_so(run: ForkServer) -> None:
    (actual,) = run("paddle.refuse_builds")
    assert "without CINN" in actual["cinn"]
    assert "without CUDA" in actual["cuda"]


def test_weights_that_do_not_fit_are_refused(run: ForkServer) -> None:
    (actual,) = run("paddle.load_too_little")
    assert actual["shape"] == [3, 3, 64, 64]
    assert "running_mean" in actual["missing"]


def test_memory_that_ran_out_is_distinguished_from_other_errors(run: ForkServer) -> None:
    (actual,) = run("paddle.run_out_of_memory")
    assert actual == {"memory": True, "shape": False, "program": True}


@pytest.mark.parametrize("frozen", [False, True], ids=["default", "in a timed window"])
def test_no_worker_of_a_loader_ends_inherited_garbage(run: ForkServer, frozen: bool) -> None:
    """Fail if a loader's worker finalises an inherited reader: it waits forever for parent
    threads."""
    (actual,) = run("paddle.collect_garbage", frozen=frozen)
    assert actual == {"given": [[[0.0, 0.0]], [[0.0, 0.0]]], "ended": True, "kept": True}
