"""GPU branch of each adapter on a processor.

Doubles in ``gpus`` replace a device's functions alone. Each benchmark runs from ``start`` to its
entry in the record."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .fork_server import ForkServer, ForkServers
from .models import BERT, small

DOUBLES = Path(__file__).with_name("gpus")
#: Small enough for a second in every framework.
MODEL, EMBEDDING = small(BERT, layers=1), small(BERT, layers=0)


FRAMEWORKS = ("pytorch", "tensorflow", "paddle", "jax", "oneflow", "mxnet", "tensorflow1")
#: Those that wait by a function of the device; the others wait for an array, as on the CPU.
WAITS_FOR_DEVICE = ("pytorch", "tensorflow", "paddle", "oneflow")
TELLS_MEMORY = ("pytorch", "tensorflow", "paddle", "jax")
NAME, NAMES = "NVIDIA A100", {"mxnet": ""}


@pytest.fixture(scope="module", params=FRAMEWORKS)
def run(request: pytest.FixtureRequest, fork_servers: ForkServers) -> ForkServer:
    return on_gpu(fork_servers, request.param)


def on_gpu(fork_servers: ForkServers, framework: str) -> ForkServer:
    """Return the server of a framework, behind the double of a GPU."""
    parts = [DOUBLES / f"{framework}.py", DOUBLES / "running.py"]
    return fork_servers(framework).after("\n".join(part.read_text() for part in parts))


def measured(run: ForkServer, call: str, ranks: int = 1) -> list[dict[str, Any]]:
    """Return each rank's entry in the record of ``measured(CALL)``, and what its double saw."""
    return run(f"answer(**measured({call}), observed=observed())", ranks=ranks)


@pytest.mark.parametrize("ranks", [1, 2])
def test_training_runs_on_a_gpu(run: ForkServer, ranks: int) -> None:
    compiler = "jit" if run.framework == "jax" else "none"  # it compiles every operation otherwise
    model = MODEL if ranks == 1 else EMBEDDING
    found = measured(run, f"'train', {model!r}, compiler={compiler!r}", ranks)
    for number, rank in enumerate(found):
        assert rank["device"] == f"cuda:{number} {NAMES.get(run.framework, NAME)}".rstrip()
        assert len(rank["step_seconds"]) == 2
        assert list(rank["products"]) == ["float32"]
        assert set(rank["significant_bits"].values()) == {24}
        # A session of TensorFlow 1 returns when all is complete.
        assert rank["run_ahead"] == (run.framework != "tensorflow1")
        assert (rank["observed"]["waits"] > 0) == (run.framework in WAITS_FOR_DEVICE)
        peak = 2**21 if run.framework in TELLS_MEMORY else None
        assert rank["peak_device_memory_bytes"] == peak


def test_matmuls_run_on_a_gpu_without_a_model(run: ForkServer) -> None:
    parameters = "shapes='16x16x16', blocks=1, block_seconds=1e-3"
    (rank,) = measured(run, f"'matmul', {parameters}")
    assert rank["products"] == {"float32": 1}
    assert (rank["observed"]["waits"] > 0) == (run.framework in WAITS_FOR_DEVICE)


@pytest.mark.parametrize("run", ["pytorch", "tensorflow"], indirect=True)
def test_a_gpu_without_bfloat16_trains_in_float16_and_scales_its_loss(run: ForkServer) -> None:
    script = f"CAPABILITY = (7, 0)\nanswer(**measured('train', {EMBEDDING!r}, 'amp'))"
    (rank,) = run(script)
    assert rank["settings"]["amp_dtype"] == "float16"
    assert rank["settings"].get("grad_scaler", rank["settings"].get("loss_scaling")) is True
    assert list(rank["products"]) == ["float16"]


@pytest.fixture(scope="module")
def pytorch(fork_servers: ForkServers) -> ForkServer:
    return on_gpu(fork_servers, "pytorch")


def test_pytorch_refuses_cuda_graphs_that_would_overwrite_gradients(pytorch: ForkServer) -> None:
    (found,) = pytorch(f"""
import torch._inductor.config as inductor
import torch._inductor.utils
adapter = started({MODEL!r}, rank_context=CUDA)
def refused(compiler, mode="train", steps=1):
    return raised(Unsupported, lambda: adapter._compiler.require(
        compiler, adapter._device, mode == "train", steps))
modes = ("inductor", "inductor:reduce-overhead", "inductor:max-autotune")
torch._inductor.utils.is_big_gpu = lambda index: True
one = [refused(mode) for mode in modes]
several = [refused(mode, steps=2) for mode in modes]
inference = refused(modes[1], mode="inference", steps=2)
inductor.triton.cudagraphs = True  # as TORCHINDUCTOR_CUDAGRAPHS does
by_variable = refused("inductor", steps=2)
torch._inductor.utils.is_big_gpu = lambda index: False
answer(one=one, several=several, inference=inference, by_variable=by_variable,
       small=refused(modes[2]))
""")
    assert found["one"] == [None] * 3
    assert found["several"][0] is found["inference"] is None
    for reason in (*found["several"][1:], found["by_variable"]):
        assert "a micro-step overwrites gradients" in reason
    assert "on a GPU with 56 multiprocessors" in found["small"]


def test_pytorch_keeps_the_random_state_of_its_gpu(pytorch: ForkServer) -> None:
    (found,) = pytorch(f"""
adapter = built({EMBEDDING!r}, rank_context=CUDA)
restored = []
torch.cuda.get_rng_state = lambda device: torch.full([16], 7, dtype=torch.uint8)
torch.cuda.set_rng_state = lambda state, device: restored.append([state.tolist(), device.type])
adapter.save_training("kept")
adapter.load_training("kept")
answer(restored=restored)
""")
    assert found["restored"] == [[[7] * 16, "cuda"]]


def test_pytorch_says_that_instances_of_mig_need_names(pytorch: ForkServer) -> None:
    (found,) = pytorch(f"""
DRIVERS_COUNT = 0  # NVML counts two
answer(reason=raised(Unsupported, lambda: started({MODEL!r}, rank_context=CUDA)))
""")
    assert "counts 2 GPUs by NVML" in found["reason"]
    assert "name instances of MIG in CUDA_VISIBLE_DEVICES" in found["reason"]


def test_pytorch_says_why_the_driver_does_not_work(pytorch: ForkServer) -> None:
    (found,) = pytorch(f"""
def old():
    raise RuntimeError("The NVIDIA driver on your system is too old (found version 12040).")
torch.cuda.init = old
answer(reason=raised(Unsupported, lambda: started({MODEL!r}, rank_context=CUDA)))
""")
    assert "The NVIDIA driver on your system is too old (found version 12040)." in found["reason"]


@pytest.fixture(scope="module")
def tensorflow(fork_servers: ForkServers) -> ForkServer:
    return on_gpu(fork_servers, "tensorflow")


def test_tensorflow_says_what_its_kernels_are(tensorflow: ForkServer) -> None:
    (found,) = tensorflow(f"""
adapter = started({MODEL!r}, rank_context=CUDA)
def kernels(*capability):
    global CAPABILITY
    CAPABILITY = capability
    return adapter._devices.kernels(adapter._gpu)
answer(known=[kernels(8, 0), kernels(8, 6), kernels(9, 0)], size=os.environ["CUDA_CACHE_MAXSIZE"],
       newer=raised(Unsupported, lambda: kernels(12, 0)))
""")
    exact, compatible, newer = found["known"]
    assert exact == compatible == "machine code"
    assert newer.startswith("PTX")
    assert int(found["size"]) == 2**32
    assert "is built for sm_60, sm_70, sm_80, compute_90; the device is" in found["newer"]


@pytest.fixture(scope="module")
def oneflow(fork_servers: ForkServers) -> ForkServer:
    return on_gpu(fork_servers, "oneflow")


def test_oneflow_is_refused_on_gpus_that_it_has_no_kernels_for(oneflow: ForkServer) -> None:
    (found,) = oneflow(f"""
CAPABILITY, NAME = (9, 0), "NVIDIA H100"
answer(reason=raised(Unsupported, lambda: started({MODEL!r}, rank_context=CUDA)))
""")
    assert found["reason"] == (
        "OneFlow 0.9.0 has kernels for compute capability 6.0 to 8.6; the device is NVIDIA H100, "
        "compute capability 9.0"
    )


@pytest.fixture(scope="module")
def paddle(fork_servers: ForkServers) -> ForkServer:
    return on_gpu(fork_servers, "paddle")


def test_paddle_counts_the_linear_layers_of_cuda_builds(paddle: ForkServer) -> None:
    (found,) = paddle(f"""
def counted():
    adapter = built({MODEL!r}, mode="inference", rank_context=CUDA)
    return adapter.matmul_dtypes(), sum(one.multiply_adds for one in adapter.matmuls(True))
linear, multiply_adds = counted()
paddle.set_flags({{"FLAGS_use_legacy_linear": True}})
answer(linear=[linear, multiply_adds], legacy=counted(), observed=observed())
""")
    assert found["linear"] == found["legacy"]
    assert found["observed"]["attention"] == ["mem_efficient"]


def test_paddle_expands_masks_for_kernels_that_do_not_broadcast(paddle: ForkServer) -> None:
    (found,) = paddle(f"""
VOLTA, AMPERE = (7, 0), (8, 0)
adapter = started({MODEL!r}, rank_context=CUDA)
def shape(capability, mixed):
    cuda.get_device_capability = lambda device=None: capability
    paddle.is_autocast_enabled = lambda device=None: mixed
    return adapter._definition.added_to_scores(paddle.ones([2, 8]), paddle.ones([1]), 4).shape
answer(shapes=[shape(VOLTA, True), shape(AMPERE, False), shape(AMPERE, True)])
""")
    assert found["shapes"] == [[2, 4, 8, 8], [2, 4, 8, 8], [2, 1, 1, 8]]
