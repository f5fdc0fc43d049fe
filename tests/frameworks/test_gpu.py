"""GPU branch of each adapter on a processor: doubles in ``gpus`` replace a device's functions."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from core.case import Case
from framebench.config.catalog import load_catalog
from framebench.config.suite import load_tuned
from harness.operations import ALL_REDUCE

from ..conftest import ROOT
from ..harness.loader import images
from . import fork_server
from .comparing import beyond, compared
from .fork_server import ForkServer, ForkServers
from .models import BERT, BLOCKS, RESNET, small

#: Small enough for a second in every framework.
MODEL, EMBEDDING = small(BERT, layers=1), small(BERT, layers=0)
TEXT = small("gpt2_small")


FRAMEWORKS = ("pytorch", "tensorflow", "paddle", "jax", "oneflow", "mxnet", "tensorflow1")
#: Frameworks that wait by a function of the device; others wait for an array, as on the CPU.
WAITS_FOR_DEVICE = ("pytorch", "tensorflow", "paddle", "oneflow")
TELLS_MEMORY = ("pytorch", "tensorflow", "paddle", "jax")
NAME, NAMES = "NVIDIA A100", {"mxnet": ""}
#: Settings and variables of fp32 on a GPU, as started frameworks report them.
NO_TF32 = {"NVIDIA_TF32_OVERRIDE": "0"}
SWITCHES: dict[str, dict[str, Any]] = {
    "pytorch": {
        "cudnn_benchmark": True, "cuda_matmul_allow_tf32": False, "cudnn_allow_tf32": False,
        "float32_matmul_precision": "highest", "deterministic": False,
    },
    "tensorflow": {
        "tf32": False, "CUDA_CACHE_MAXSIZE": str(2**32), "memory_growth": True,
        "deterministic": False,
    },
    "jax": {
        "default_matmul_precision": "highest", "memory_fraction": ".90", "preallocate": "default",
    },
    "paddle": NO_TF32, "mxnet": NO_TF32,
    "tensorflow1": {**NO_TF32, "memory_growth": True},
    "oneflow": {"ONEFLOW_EP_CUDA_ENABLE_TF32_EXECUTION": "0"},
}  # fmt: skip
#: The same where the precision is TF32.
TF32: dict[str, dict[str, Any]] = {
    "pytorch": {
        "cuda_matmul_allow_tf32": True, "cudnn_allow_tf32": True,
        "float32_matmul_precision": "high",
    },
    "tensorflow": {"tf32": True},
    "jax": {"default_matmul_precision": "tensorfloat32"},
    "paddle": {"tf32": [True, True], "tf32_override": None},
}  # fmt: skip


@pytest.fixture(autouse=True)
def _seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Soon end ranks that wait for one that the double has refused."""
    monkeypatch.setattr(fork_server, "SECONDS", 90)


@pytest.fixture(scope="module", params=FRAMEWORKS)
def run(request: pytest.FixtureRequest, fork_servers: ForkServers) -> ForkServer:
    return fork_servers(request.param)


def test_a_rank_on_the_gpu_of_another_is_found(run: ForkServer) -> None:
    """Fail if the double does not refuse it: ranks on one GPU would go unnoticed in other tests."""
    compiler = "jit" if run.framework == "jax" else "none"
    (actual,) = run("gpu.take_another", model_config=EMBEDDING, compiler=compiler)
    assert actual["refused"] is not None


@pytest.mark.parametrize("ranks", [1, 2])
def test_training_runs_on_a_gpu(run: ForkServer, ranks: int) -> None:
    # without jit, JAX compiles each operation separately
    compiler = "jit" if run.framework == "jax" else "none"
    model = MODEL if ranks == 1 else EMBEDDING
    actual = run("gpu.measure", ranks, benchmark="train", model_config=model, compiler=compiler)
    for number, rank in enumerate(actual):
        assert rank["device"] == f"cuda:{number} {NAMES.get(run.framework, NAME)}".rstrip()
        assert len(rank["step_seconds"]) == 2
        assert list(rank["matmul_dtypes"]) == ["float32"]
        assert set(rank["significant_bits"].values()) == {24}
        # A session of TensorFlow 1 returns when all is complete.
        assert rank["run_ahead"] == (run.framework != "tensorflow1")
        assert (rank["observed"]["waits"] > 0) == (run.framework in WAITS_FOR_DEVICE)
        peak = 2**21 if run.framework in TELLS_MEMORY else None
        assert rank["peak_device_memory_bytes"] == peak
        assert_switches(rank, SWITCHES[run.framework])


def assert_switches(rank: dict[str, Any], switches: dict[str, Any]) -> None:
    told = {**rank["variables"], **rank["settings"], **rank["observed"]}
    assert switches == {name: told[name] for name in switches}


@pytest.mark.parametrize("run", TF32, indirect=True)
def test_tf32_is_on_where_it_is_the_precision(run: ForkServer) -> None:
    inference = {"benchmark": "inference", "model_config": EMBEDDING}
    (rank,) = run("gpu.measure", precision="tf32", tf32=True, **inference)
    assert_switches(rank, TF32[run.framework])


@pytest.mark.parametrize(
    ("mistake", "precision", "compiler", "error"),
    [
        ("", "amp", "inductor", None),
        ("no_autocast", "amp", "inductor", "are torch.float32, not torch.bfloat16"),
        ("leave_tf32_on", "fp32", "none", "fp32, but .*tf32"),
        ("keep_scale", "amp_fp16", "none", r"called after step\(\)"),
        ("search_no_kernels", "fp32", "none", None),
    ],
)
def test_a_mistake_of_training_on_a_gpu_is_found(
    fork_servers: ForkServers, mistake: str, precision: str, compiler: str, error: str | None
) -> None:
    (actual,) = fork_servers("pytorch")(
        "gpu.train_with_mistake", 1, mistake=mistake, model_config=EMBEDDING,
        precision=precision, compiler=compiler,
    )  # fmt: skip
    if error:
        assert re.search(error, actual["error"])
    else:
        assert actual["error"] is None
        is_as_asked = SWITCHES["pytorch"].items() <= actual["settings"].items()
        assert is_as_asked == (mistake == "")


QUICK = {"blocks": 2, "block_seconds": 1e-4}
SHAPES = {"shapes": "16x16x16", **QUICK}
#: Benchmarks that run on one device, and on two.
ALONE: dict[str, dict[str, Any]] = {
    "matmul": SHAPES,
    "elementwise": {"elements": 64, **QUICK},
    "launch": QUICK,
    "sustained": {"seconds": 1e-3, "size": 16, "block_seconds": 1e-4},
    "convolution": {"model_config": small(RESNET), **QUICK},
}
TOGETHER: dict[str, dict[str, Any]] = {
    "collective": {"operation": ALL_REDUCE, "largest_bytes": 64, **QUICK},
    "sharded_matmul": SHAPES,
    "overlap": {"shape": "16x16x16", "matmuls": 2, "message_bytes": 64, **QUICK},
}


def test_operations_run_on_a_gpu(run: ForkServer) -> None:
    (actual,) = run("gpu.measure_all", benchmarks=ALONE)
    for name, rank in zip(ALONE, actual["ranks"], strict=True):
        assert rank["blocks"], name
        if name == "launch":
            (block,) = rank["blocks"]
            has_events = [seconds is not None for seconds in block["event_seconds"]]
            assert has_events == [run.framework == "pytorch"] * len(block["seconds"])
    assert (actual["observed"]["waits"] > 0) == (run.framework in WAITS_FOR_DEVICE)


@pytest.mark.parametrize("dtype", ["float64", "int8"])
def test_pytorch_multiplies_in_dtypes_that_no_model_trains_in(
    fork_servers: ForkServers, dtype: str
) -> None:
    """Fail if a result differs from that of float64, which the benchmark checks itself."""
    shapes = {**SHAPES, "shapes": "32x16x24", "dtype": dtype}
    (rank,) = fork_servers("pytorch")("gpu.measure", 1, benchmark="matmul", **shapes)
    assert rank["matmul_dtypes"] == {dtype: 1}
    assert rank["blocks"][0]["error"] <= 1e-12


def test_inference_attention_and_peak_run_on_a_gpu(run: ForkServer) -> None:
    compiler = "jit" if run.framework == "jax" else "none"
    options = {"inferred": EMBEDDING, "attended": MODEL, "compiler": compiler}
    (actual,) = run("gpu.infer_attend_and_peak", **options, **QUICK)
    assert len(actual["inference"]["step_seconds"]) == 2
    assert [*actual["peak"]["matmul_dtypes"]] == ["float32"]
    assert (actual["observed"]["waits"] > 0) == (run.framework in WAITS_FOR_DEVICE)
    has_none = run.framework in ("oneflow", "mxnet", "tensorflow1")
    assert has_none == bool(actual["attention"])
    assert "CPU" not in (actual["attention"] or "")


@pytest.mark.parametrize(
    ("run", "name"),
    [(name, "collective") for name in FRAMEWORKS]
    + [("pytorch", "sharded_matmul"), ("pytorch", "overlap")],
    indirect=["run"],
)
def test_two_gpus_exchange_arrays(run: ForkServer, name: str) -> None:
    for rank in run("gpu.measure", ranks=2, benchmark=name, **TOGETHER[name]):
        assert rank["blocks"]


def test_a_window_that_ends_before_its_work_is_found(run: ForkServer) -> None:
    compiler = "jit" if run.framework == "jax" else "none"
    (actual,) = run("gpu.end_early", model_config=EMBEDDING, compiler=compiler)
    assert actual["seconds"] >= 2 * actual["work"]
    early = "synchronize() returned before the work was complete"
    assert run.framework != "pytorch" or "wait() returned before" in actual["other_stream"]
    assert early in actual["not_synchronized"]
    assert (early if actual["blocking"] else "wait() returned before") in actual["not_waited"]


@pytest.mark.parametrize("run", ["pytorch"], indirect=True)
def test_operations_in_tf32_are_named_by_what_is_observed(run: ForkServer) -> None:
    named = {name: given for name, given in ALONE.items() if name not in ("elementwise", "launch")}
    (actual,) = run("gpu.measure_all", benchmarks=named, precision="tf32", tf32=True)
    assert [[*rank["matmul_dtypes"]] for rank in actual["ranks"]] == [["tf32"]] * len(named)
    tf32 = {"precision": "tf32", "tf32": True}
    for name in ("sharded_matmul", "overlap"):
        for rank in run("gpu.measure", ranks=2, benchmark=name, **tf32, **TOGETHER[name]):
            assert [*rank["matmul_dtypes"]] == ["tf32"]


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return images.folder(tmp_path_factory.mktemp("pictures"))


def test_a_gpu_is_fed_from_files_and_from_the_host(run: ForkServer, pictures: Path) -> None:
    compiler = "jit" if run.framework == "jax" else "none"
    (actual,) = run("gpu.feed", pictures=str(pictures), model_config=EMBEDDING, compiler=compiler)
    assert actual["loaded"]["loaded"]["images"] == 6
    assert len(actual["fed"]["input_pipeline"]["copy_seconds"]) == 2


@pytest.mark.parametrize("run", ["pytorch", "jax", "mxnet", "oneflow"], indirect=True)
def test_a_batch_is_copied_while_the_step_before_runs(run: ForkServer) -> None:
    (actual,) = run("gpu.copy_ahead", model_config=EMBEDDING)
    assert not actual["waited"]


@pytest.mark.parametrize("run", ["pytorch", "tensorflow", "paddle", "jax"], indirect=True)
def test_text_is_generated_on_a_gpu(run: ForkServer) -> None:
    compiler = "jit" if run.framework == "jax" else "none"
    options = {"model_config": TEXT, "compiler": compiler, "new_tokens": 4}
    (rank,) = run("gpu.measure", benchmark="generate", **options)
    assert rank["generated"]


@pytest.mark.parametrize("run", ["paddle", "oneflow", "mxnet"], indirect=True)
def test_networks_in_the_layout_of_gpus_compute_what_the_reference_does(
    run: ForkServer, references: dict[str, Path]
) -> None:
    server = run.after("gpu.start_on_gpu")
    assert not beyond(compared(server, [references[BLOCKS]]))
    (actual,) = server("gpu.describe_layout")
    assert (actual["fused"] > 0) == (run.framework == "oneflow")
    layout = {"paddle": "data_format", "oneflow": "memory_format", "mxnet": "layout"}
    last = "channels_last" if run.framework == "oneflow" else "NHWC"
    assert actual["settings"][layout[run.framework]] == last


@pytest.mark.parametrize("run", ["pytorch", "tensorflow"], indirect=True)
def test_mixed_precision_is_in_the_dtype_of_its_name_or_refused(run: ForkServer) -> None:
    (actual,) = run("gpu.train_in_named_precisions", model_config=EMBEDDING)
    for dtype in ("float16", "bfloat16"):
        assert list(actual[dtype]["matmul_dtypes"]) == [dtype]
        settings = actual[dtype]["settings"]
        assert settings["amp_dtype"] == dtype
        scales = settings.get("grad_scaler", settings.get("loss_scaling"))
        assert scales == (dtype == "float16")
    assert list(actual["default"]["matmul_dtypes"]) == ["float16"], "without bfloat16"
    assert "is in float16, not in bfloat16" in actual["refused"]


@pytest.mark.parametrize(
    ("run", "compiler"),
    [("jax", "jit"), ("paddle", "to_static"), ("tensorflow", "xla")],
    indirect=["run"],
)
def test_compiled_training_is_in_mixed_precision(run: ForkServer, compiler: str) -> None:
    amp = {"benchmark": "train", "precision": "amp", "compiler": compiler}
    (actual,) = run.after("gpu.allow_halves")("gpu.measure", model_config=EMBEDDING, **amp)
    assert actual["compiled"]
    assert {*actual["matmul_dtypes"]} <= {"float16", "bfloat16"}


@pytest.mark.parametrize("run", ["pytorch", "tensorflow", "paddle", "oneflow"], indirect=True)
def test_an_overflow_leaves_the_weights_and_halves_the_loss_scale(run: ForkServer) -> None:
    in_graph = run.framework == "oneflow"  # it does not tell the loss scale
    options = {"model_config": EMBEDDING, "compiler": "graph" if in_graph else "none"}
    (actual,) = run.after("gpu.allow_halves")("gpu.overflow", **options)
    assert actual["kept"]
    before, after = actual["scales"]
    assert in_graph or after == before / 2
    assert actual["scales_loss"]


@pytest.mark.parametrize(
    ("run", "variables"),
    [
        pytest.param(framework, file.variables(case, "cuda"), id=f"{framework}-{name}")
        for name in ("tuned_nvidia", "tuned_dlperf")
        for file in [load_tuned(load_catalog(ROOT), name)]
        for framework in file.frameworks
        for case in [Case(framework, "resnet50_v1.5", "train", 1, 1, 32, "amp_fp16", "none")]
    ],
    indirect=["run"],
)
def test_frameworks_train_with_published_settings_and_keep_them(
    run: ForkServer, variables: dict[str, str]
) -> None:
    actual = run("gpu.train_with", model_config=EMBEDDING, variables=variables)
    assert actual == [{"steps": 2, "kept": variables}]


@pytest.fixture(scope="module")
def pytorch(fork_servers: ForkServers) -> ForkServer:
    return fork_servers("pytorch")


def test_pytorch_refuses_cuda_graphs_that_would_overwrite_gradients(pytorch: ForkServer) -> None:
    (actual,) = pytorch("gpu.refuse_cuda_graphs", model_config=MODEL)
    assert actual["one"] == [None] * 3
    assert actual["several"][0] is actual["inference"] is None
    for reason in actual["several"][1:]:
        assert "a micro-step overwrites gradients" in reason


def test_pytorch_refuses_gpus_before_those_of_triton_and_float8(pytorch: ForkServer) -> None:
    (actual,) = pytorch("gpu.refuse_old_gpus", model_config=MODEL)
    assert "Triton needs compute capability" in actual["compiled"]
    assert "fp8 needs NVIDIA's GPUs of compute capability 8.9" in actual["narrow"]


def test_copies_by_pytorch_that_nobody_waits_for_arrive_late(pytorch: ForkServer) -> None:
    """Fail if the double does not copy late, or the adapter does not wait for late copies."""
    (actual,) = pytorch("gpu.copy_late", model_config=EMBEDDING)
    assert (actual["early"], actual["late"]) == ([0.0], [1.0])
    assert all(actual["waited"])
    assert not all(actual["not_waited"]), "copies are not by a stream of their own"


def test_pytorch_copies_on_and_between_gpus(pytorch: ForkServer) -> None:
    transfer, pairs = {"benchmark": "transfer", **QUICK}, {"benchmark": "device_pairs", **QUICK}
    (alone,) = pytorch("gpu.measure", largest_bytes=2**20, **transfer)
    first, _ = pytorch("gpu.measure", ranks=2, bytes=64, **pairs)
    assert alone["blocks"]
    assert len(first["blocks"]) == 2


def test_pytorch_keeps_the_random_state_of_its_gpu(pytorch: ForkServer) -> None:
    (actual,) = pytorch("gpu.keep_random_state", model_config=EMBEDDING)
    assert actual["restored"] == [[[7] * 16, "cuda"]]


@pytest.mark.parametrize("run", ["pytorch", "jax"], indirect=True)
def test_a_framework_says_why_the_driver_does_not_work(run: ForkServer) -> None:
    """Fail if a fault of the machine counts as one of the framework. Others see no GPU then."""
    (actual,) = run("gpu.break_driver", model_config=MODEL)
    assert "The NVIDIA driver on your system is too old (found" in actual["Unsupported"]
    assert "Error 802: system not yet initialized" in actual["Mismatch"]


@pytest.fixture(scope="module")
def tensorflow(fork_servers: ForkServers) -> ForkServer:
    return fork_servers("tensorflow")


def test_tensorflow_says_what_its_kernels_are(tensorflow: ForkServer) -> None:
    (actual,) = tensorflow("gpu.tell_kernels", model_config=MODEL)
    exact, compatible, newer = actual["known"]
    assert exact == compatible == "machine code"
    assert newer.startswith("PTX")
    assert int(actual["size"]) == 2**32
    assert actual["cache"] == "cuda-cache", "not deleted with the environment"
    for reason in actual["outside"]:
        assert "is built for sm_60, sm_70, sm_80, compute_90; the device is" in reason


@pytest.mark.parametrize("run", ["jax"], indirect=True)
def test_jax_compiles_with_its_options_for_several_gpus(run: ForkServer) -> None:
    (actual,) = run("gpu.compile_for_several", model_config=MODEL)
    assert actual["options"] == {"xla_gpu_enable_latency_hiding_scheduler": True}
    assert actual["value"] == 2.0


@pytest.fixture(scope="module")
def oneflow(fork_servers: ForkServers) -> ForkServer:
    return fork_servers("oneflow")


def test_oneflow_is_refused_on_gpus_that_it_has_no_kernels_for(oneflow: ForkServer) -> None:
    (actual,) = oneflow("gpu.lack_kernels", model_config=MODEL)
    assert actual["reason"] == (
        "OneFlow 0.9.0 has kernels for compute capability 6.0 to 8.6; the device is NVIDIA H100, "
        "compute capability 9.0"
    )


@pytest.mark.parametrize(
    ("framework", "why"),
    [("megengine", "on CPUs only"), ("mindspore", "for CPUs only")]
    + [("jax", "Unknown backend cuda"), ("oneflow", "OneFlow 0.9.0 sees 0 CUDA devices")]
    + [(name, "is a build without CUDA") for name in FRAMEWORKS if name not in ("jax", "oneflow")],
)
def test_builds_for_cpus_are_refused_on_every_gpu(
    fork_servers: ForkServers, framework: str, why: str
) -> None:
    (actual,) = fork_servers(framework)("common.refuse_own_gpu", model_config=MODEL)
    assert why in actual["reason"]


@pytest.fixture(scope="module")
def paddle(fork_servers: ForkServers) -> ForkServer:
    return fork_servers("paddle")


def test_paddle_counts_the_linear_layers_of_cuda_builds(paddle: ForkServer) -> None:
    (actual,) = paddle("gpu.count_linear", model_config=MODEL)
    assert actual["linear"] == actual["legacy"]
    assert actual["observed"]["attention"] == ["mem_efficient"]


def test_paddle_attends_with_the_kernels_of_gpus_as_the_reference_does(
    paddle: ForkServer, references: dict[str, Path], decoder_references: Path
) -> None:
    """Fail if masks of BERT or ELECTRA are not those that memory-efficient attention takes."""
    folders = [references[BERT], decoder_references / "electra_base"]
    assert not beyond(compared(paddle.after("gpu.start_on_gpu"), folders, modes=("train",)))
    (actual,) = paddle("gpu.attend")
    assert actual["observed"]["attention"] == ["mem_efficient"]
