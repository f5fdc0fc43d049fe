"""GPU branch of each adapter on a processor.

Doubles in ``gpus`` replace a device's functions alone. Each benchmark runs from ``start`` to its
entry in the record."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from framebench.config import tuned
from framebench.config.catalog import load_catalog
from framebench.config.tuned import load_tuned
from harness.communication import ALL_REDUCE

from ..conftest import ROOT
from ..harness.loader import images
from .comparing import beyond, compared
from .fork_server import ForkServer, ForkServers
from .models import BERT, BLOCKS, RESNET, small

DOUBLES = Path(__file__).with_name("gpus")
#: Small enough for a second in every framework.
MODEL, EMBEDDING = small(BERT, layers=1), small(BERT, layers=0)
TEXT = small("gpt2_small")


FRAMEWORKS = ("pytorch", "tensorflow", "paddle", "jax", "oneflow", "mxnet", "tensorflow1")
#: Frameworks that refuse GPUs before they ask for one, and need no double.
REFUSES_GPUS = ("megengine", "mindspore")
#: Frameworks that wait by a function of the device; others wait for an array, as on the CPU.
WAITS_FOR_DEVICE = ("pytorch", "tensorflow", "paddle", "oneflow")
TELLS_MEMORY = ("pytorch", "tensorflow", "paddle", "jax")
NAME, NAMES = "NVIDIA A100", {"mxnet": ""}


@pytest.fixture(scope="module", params=FRAMEWORKS)
def run(request: pytest.FixtureRequest, fork_servers: ForkServers) -> ForkServer:
    return on_gpu(fork_servers, request.param)


def on_gpu(fork_servers: ForkServers, framework: str, has_double: bool = True) -> ForkServer:
    """Return the server of a framework, behind the double of a GPU if it has one."""
    double = [DOUBLES / f"{framework}.py"] if has_double else []
    parts = [*double, DOUBLES / "running.py"]
    lines = f"GPU_LINES = {os.environ.get('FRAMEBENCH_GPU_LINES', '')!r}"
    return fork_servers(framework).after("\n".join([lines, *(part.read_text() for part in parts)]))


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
        assert list(rank["matmul_dtypes"]) == ["float32"]
        assert set(rank["significant_bits"].values()) == {24}
        # A session of TensorFlow 1 returns when all is complete.
        assert rank["run_ahead"] == (run.framework != "tensorflow1")
        assert (rank["observed"]["waits"] > 0) == (run.framework in WAITS_FOR_DEVICE)
        peak = 2**21 if run.framework in TELLS_MEMORY else None
        assert rank["peak_device_memory_bytes"] == peak


QUICK = "blocks=2, block_seconds=1e-4"
#: Benchmarks on one device, and on two.
ALONE = {
    "elementwise": f"elements=64, {QUICK}",
    "launch": QUICK,
    "sustained": "seconds=1e-3, size=16, block_seconds=1e-4",
    "convolution": f"facts={small(RESNET)!r}, {QUICK}",
}
TOGETHER = {
    "collective": f"operation='{ALL_REDUCE}', largest_bytes=64, {QUICK}",
    "sharded_matmul": f"shapes='16x16x16', {QUICK}",
    "overlap": f"shape='16x16x16', matmuls=2, message_bytes=64, {QUICK}",
}


def test_operations_run_on_a_gpu(run: ForkServer) -> None:
    calls = ", ".join(f"measured({name!r}, {given})" for name, given in ALONE.items())
    (found,) = run(f"""
from harness.kinds import sustained
from harness.telemetry import meters
sustained.device_meter = lambda context: meters.CpuMeter([0])
answer(ranks=[{calls}], observed=observed())
""")
    for name, rank in zip(ALONE, found["ranks"], strict=True):
        assert rank["blocks"], name
    assert (found["observed"]["waits"] > 0) == (run.framework in WAITS_FOR_DEVICE)


def test_inference_attention_and_peak_run_on_a_gpu(run: ForkServer) -> None:
    compiler = "jit" if run.framework == "jax" else "none"
    (found,) = run(f"""
from harness.kinds import peak_flops
peak.SIZES, peak.BLOCK_SECONDS = (16, 32), 1e-4
inference = measured("inference", {EMBEDDING!r}, compiler={compiler!r})
attention = raised(Unsupported, lambda: measured("attention", {MODEL!r}, {QUICK}))
peak = measured("peak_flops", sustained_seconds=1e-3)
answer(inference=inference, peak=peak, attention=attention, observed=observed())
""")
    assert len(found["inference"]["step_seconds"]) == 2
    assert [*found["peak"]["matmul_dtypes"]] == ["float32"]
    assert (found["observed"]["waits"] > 0) == (run.framework in WAITS_FOR_DEVICE)
    has_none = run.framework in ("oneflow", "mxnet", "tensorflow1")
    assert has_none == bool(found["attention"])
    assert "CPU" not in (found["attention"] or "")


@pytest.mark.parametrize("name", TOGETHER)
def test_two_gpus_exchange_arrays(run: ForkServer, name: str) -> None:
    # Blocks of this size are too short to tell whether both together take longer than one.
    script = f"""
from harness.kinds import overlap, sharded_matmul
overlap.check_longer = sharded_matmul.check_longer = lambda seconds, runs: None
answer(**measured({name!r}, {TOGETHER[name]}))
"""
    for rank in run(script, ranks=2):
        assert rank["blocks"]


def test_a_window_that_ends_before_its_work_is_found(run: ForkServer) -> None:
    """Fail if an adapter does not wait for the device, or if nobody notices."""
    compiler = "jit" if run.framework == "jax" else "none"
    (found,) = run(f"""
from harness.measuring import window
adapter = built({EMBEDDING!r}, compiler={compiler!r}, rank_context=CUDA)
read, complete = adapter.read, adapter.blocking()
read(adapter.step())
start = time.monotonic()
read(adapter.step())
work = 0.15 + 4 * (time.monotonic() - start)  # of the device, much longer than the processor's
def step():
    handle = adapter.step()
    QUEUE.add(work, outputs(adapter, handle))
    if complete:
        QUEUE.wait()
    return handle
def read_late(handle):
    QUEUE.wait()
    return read(handle)
def timed(steps=1):
    return window.measure(adapter, steps, window.run_ahead(adapter), step=step)
adapter.read = read_late
seconds, blocking = timed(2).seconds, complete
adapter.wait, complete = lambda mark: None, False
not_waited = raised(Mismatch, timed)
adapter.synchronize = lambda: None
answer(seconds=seconds, work=work, blocking=blocking, not_waited=not_waited,
       not_synchronized=raised(Mismatch, timed))
""")
    assert found["seconds"] >= 2 * found["work"]
    early = "synchronize() returned before the work was complete"
    assert early in found["not_synchronized"]
    assert (early if found["blocking"] else "wait() returned before") in found["not_waited"]


#: Stands for a GPU that rounds float32 to TF32, which a processor cannot.
IN_TF32 = """
from harness.measuring.verification import rounding
rounding.observe = lambda adapter: {"matrix product": 11, "convolution": 11}
"""


@pytest.mark.parametrize("run", ["pytorch"], indirect=True)
def test_operations_in_tf32_are_named_by_what_is_observed(run: ForkServer) -> None:
    alone = {**ALONE, "matmul": f"shapes='16x16x16', {QUICK}"}
    named = {name: given for name, given in alone.items() if name not in ("elementwise", "launch")}
    calls = ", ".join(f"measured({name!r}, precision='tf32', {one})" for name, one in named.items())
    (found,) = run(f"""{IN_TF32}
from harness.kinds import sustained
from harness.telemetry import meters
sustained.device_meter = lambda context: meters.CpuMeter([0])
answer(ranks=[{calls}])
""")
    assert [[*rank["matmul_dtypes"]] for rank in found["ranks"]] == [["tf32"]] * len(named)
    for name in ("sharded_matmul", "overlap"):
        script = f"""{IN_TF32}
from harness.kinds import overlap, sharded_matmul
overlap.check_longer = sharded_matmul.check_longer = lambda seconds, runs: None
answer(**measured({name!r}, precision='tf32', {TOGETHER[name]}))
"""
        for rank in run(script, ranks=2):
            assert [*rank["matmul_dtypes"]] == ["tf32"]


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return images.folder(tmp_path_factory.mktemp("pictures"))


def test_a_gpu_is_fed_from_files_and_from_the_host(run: ForkServer, pictures: Path) -> None:
    compiler = "jit" if run.framework == "jax" else "none"
    (found,) = run(f"""
loaded = measured("input", small_images(), source="data", data={str(pictures)!r}, workers=0)
fed = measured("train", {EMBEDDING!r}, compiler={compiler!r}, source="synthetic_host")
answer(loaded=loaded, fed=fed)
""")
    assert found["loaded"]["loaded"]["images"] == 6
    assert len(found["fed"]["input_pipeline"]["copy_seconds"]) == 2


@pytest.mark.parametrize("run", ["pytorch", "jax", "mxnet", "oneflow"], indirect=True)
def test_a_batch_is_copied_while_the_step_before_runs(run: ForkServer) -> None:
    (found,) = run(f"""
adapter = built({EMBEDDING!r}, rank_context=CUDA)
batch = batch_of(adapter.model_config)
def seconds_of_copy():
    QUEUE.add(0.3)
    start = time.monotonic()
    adapter.feed(batch)
    return time.monotonic() - start
seconds_of_copy()
adapter.synchronize()
answer(seconds=seconds_of_copy())
""")
    assert found["seconds"] < 0.2


#: Stands for DALI: the framework's own loader, whose images lie in memory that is overwritten when
#: nothing refers to them. Tests hand it to the adapter as on a GPU, and as arrays of numpy.
DALI_ON_GPU = """
import importlib
import numpy
import weakref
from types import SimpleNamespace
from harness.loader import DeviceArray, Loaded
from harness.measuring.loading import PACKAGE

load_adapter(f"{SCRIPTS}/frameworks/{FRAMEWORK}")
own = importlib.import_module(PACKAGE + ".loader")
DLPACK, copied = True, []

class Tensor:
    def __init__(self, images):
        memory = numpy.empty(images.nbytes + 256, numpy.uint8)  # aligned, as a device's is
        start = -memory.ctypes.data % 256
        values = memory[start : start + images.nbytes].view(images.dtype).reshape(images.shape)
        values[:] = images
        self.images, self.shape = values, lambda: list(values.shape)
        self.__dlpack_device__ = values.__dlpack_device__
        weakref.finalize(self, values.fill, numpy.nan)

    def as_cpu(self):
        copied.append(self.images.shape)
        return self.images

    def __dlpack__(self, **options):
        return self.images.__dlpack__(**options)

def load(asked, accelerator):
    for batch in own.load(asked, accelerator):
        images, labels, numbers = map(numpy.array, batch)
        yield Loaded(DeviceArray(Tensor(images)) if DLPACK else images, labels, numbers)
sys.modules["harness.loader.dali_gpu"] = SimpleNamespace(
    load=load, pixels=own.pixels, settings=lambda accelerator: {"loader": "double"}
)
"""
FEEDS_FROM_DALI = ("pytorch", "tensorflow", "jax", "paddle", "mxnet", "oneflow")


@pytest.mark.parametrize(("ranks", "steps"), [(1, 1), (1, 2), (2, 1)])
@pytest.mark.parametrize("run", FEEDS_FROM_DALI, indirect=True)
def test_a_gpu_is_fed_with_images_that_dali_keeps_there(
    run: ForkServer, pictures: Path, ranks: int, steps: int
) -> None:
    if steps > 1 and run.framework == "oneflow":
        pytest.skip("OneFlow's adapter has no micro-steps")
    compiler = "jit" if run.framework == "jax" else "none"
    script = f"""{DALI_ON_GPU}
def trained():
    return measured("train", {small(RESNET)!r}, compiler={compiler!r}, steps={steps},
                    source="dali_gpu", data={str(pictures)!r})
found = [trained()]
on_host, DLPACK = len(copied), False
if WORLD == 1:  # ranks join once
    found.append(trained())
answer(found=found, on_host=on_host)
"""
    for rank in run(script, ranks):
        for found in rank["found"]:
            assert len(found["input_pipeline"]["copy_seconds"]) == 2
            assert found["loader"]["loader"] == "double"
            assert found["input_pipeline"]["loader_samples"] > 0
            assert found["last_value"] == rank["found"][0]["last_value"]
        assert rank["on_host"] == 2, "the check and the batch of build()"


@pytest.mark.parametrize("run", FEEDS_FROM_DALI, indirect=True)
def test_images_of_dali_are_kept_until_no_step_reads_them(run: ForkServer) -> None:
    (found,) = run(f"""{DALI_ON_GPU}
import gc
adapter = built(small_images(), rank_context=CUDA)
batch = batch_of(adapter.model_config)
fed = []
for number in range(5):
    tensor = Tensor(batch["images"])
    fed.append(weakref.ref(tensor))
    adapter.feed({{**batch, "images": DeviceArray(tensor)}})
    del tensor
gc.collect()
answer(kept=[tensor() is not None for tensor in fed])
""")
    assert found["kept"] == [False, False, True, True, True]


@pytest.mark.parametrize("run", ["jax"], indirect=True)
def test_micro_batches_on_the_gpu_are_joined_there(run: ForkServer) -> None:
    (found,) = run("""
import jax
adapter = started(small_images(), rank_context=CUDA)
part = {"images": jax.numpy.ones((2, 3))}
joined = adapter._data_parallel.side_by_side([part, part])["images"]
answer(shape=joined.shape, there=isinstance(joined, jax.Array))
""")
    assert found == {"shape": [2, 2, 3], "there": True}


@pytest.mark.parametrize("run", ["tensorflow1"], indirect=True)
def test_who_takes_no_images_from_a_gpu_says_so(run: ForkServer, pictures: Path) -> None:
    (found,) = run(f"""{DALI_ON_GPU}
given = dict(source="dali_gpu", data={str(pictures)!r})
answer(refused=raised(Unsupported, lambda: measured("train", small_images(), **given)))
""")
    assert "takes no images from DALI's GPU memory: module" in found["refused"]
    assert "has no attribute 'dlpack'" in found["refused"]


@pytest.mark.parametrize("run", ["tensorflow"], indirect=True)
def test_tensorflow_finds_images_on_its_only_gpu_by_its_own_number(run: ForkServer) -> None:
    (found,) = run(f"""{DALI_ON_GPU}
import ctypes, tensorflow
class OnSecondGpu(Tensor):
    def __dlpack__(self, **options):
        capsule = super().__dlpack__(**options)
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.argtypes, pointer.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
        device = (ctypes.c_int32 * 2).from_address(pointer(capsule, b"dltensor") + 8)
        device[:] = [2, 1]  # CUDA's second
        return capsule
adapter = started(small_images(), rank_context=CUDA)
array = DeviceArray(OnSecondGpu(numpy.ones((2, 4, 4, 3), "float32")))
take = tensorflow.experimental.dlpack.from_dlpack
errors = tensorflow.errors.InvalidArgumentError
answer(as_it_is=raised(errors, lambda: take(array.__dlpack__())),
       taken=raised(errors, lambda: adapter.device_tensor(array)))
""")
    assert "GPU:1 unknown device" in found["as_it_is"]
    assert "GPU:0 unknown device" in found["taken"]


@pytest.mark.parametrize("run", ["pytorch", "tensorflow", "paddle", "jax"], indirect=True)
def test_text_is_generated_on_a_gpu(run: ForkServer) -> None:
    compiler = "jit" if run.framework == "jax" else "none"
    (rank,) = measured(run, f"'generate', {TEXT!r}, compiler={compiler!r}, new_tokens=4")
    assert rank["generated"]


def test_matmuls_run_on_a_gpu_without_a_model(run: ForkServer) -> None:
    parameters = "shapes='16x16x16', blocks=1, block_seconds=1e-3"
    (rank,) = measured(run, f"'matmul', {parameters}")
    assert rank["matmul_dtypes"] == {"float32": 1}
    assert (rank["observed"]["waits"] > 0) == (run.framework in WAITS_FOR_DEVICE)


@pytest.mark.parametrize("run", ["pytorch", "tensorflow"], indirect=True)
def test_a_gpu_without_bfloat16_trains_in_float16_and_scales_its_loss(run: ForkServer) -> None:
    script = f"CAPABILITY = (7, 0)\nanswer(**measured('train', {EMBEDDING!r}, 'amp'))"
    (rank,) = run(script)
    assert rank["settings"]["amp_dtype"] == "float16"
    assert rank["settings"].get("grad_scaler", rank["settings"].get("loss_scaling")) is True
    assert list(rank["matmul_dtypes"]) == ["float16"]


#: Starts adapters on the double unless a test names another device.
STARTED_ON_GPU = """
_started = started
def started(facts, **options):
    return _started(facts, **{"rank_context": CUDA, **options})
"""


@pytest.mark.parametrize("run", ["paddle", "oneflow", "mxnet"], indirect=True)
def test_networks_in_the_layout_of_gpus_compute_what_the_reference_does(
    run: ForkServer, references: dict[str, Path]
) -> None:
    server = run.after(STARTED_ON_GPU)
    assert not beyond(compared(server, [references[BLOCKS]]))
    (found,) = server("""
adapter = built(small_images())
fused = sum("Fused" in type(part).__name__ for part in getattr(adapter._model, "modules", list)())
answer(settings=adapter.settings(), fused=fused)
""")
    assert (found["fused"] > 0) == (run.framework == "oneflow")
    layout = {"paddle": "data_format", "oneflow": "memory_format", "mxnet": "layout"}
    last = "channels_last" if run.framework == "oneflow" else "NHWC"
    assert found["settings"][layout[run.framework]] == last


@pytest.mark.parametrize("run", ["pytorch", "tensorflow"], indirect=True)
def test_mixed_precision_is_in_the_dtype_of_its_name_or_refused(run: ForkServer) -> None:
    (found,) = run(f"""
def trained(precision):
    return measured('train', {EMBEDDING!r}, precision)
float16, bfloat16 = trained('amp_fp16'), trained('amp_bf16')
CAPABILITY = (7, 0)
answer(float16=float16, bfloat16=bfloat16, refused=raised(Unsupported, lambda: trained('amp_bf16')))
""")
    for dtype in ("float16", "bfloat16"):
        assert list(found[dtype]["matmul_dtypes"]) == [dtype]
        assert found[dtype]["settings"]["amp_dtype"] == dtype
    assert "is in float16, not in bfloat16" in found["refused"]


@pytest.mark.parametrize(
    ("run", "variables"),
    [
        pytest.param(framework, tuned.variables(own, "cuda", "none"), id=f"{framework}-{name}")
        for name in ("tuned_nvidia", "tuned_dlperf")
        for framework, own in load_tuned(load_catalog(ROOT), name).frameworks.items()
    ],
    indirect=["run"],
)
def test_frameworks_train_with_published_settings_and_keep_them(
    run: ForkServer, variables: dict[str, str]
) -> None:
    script = f"""
given = {variables!r}
os.environ.update(given)
found = measured('train', {EMBEDDING!r})
answer(steps=len(found["step_seconds"]), kept={{name: os.environ[name] for name in given}})
"""
    assert run(script) == [{"steps": 2, "kept": variables}]


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


def test_pytorch_refuses_gpus_before_those_of_triton_and_float8(pytorch: ForkServer) -> None:
    (found,) = pytorch(f"""
adapter = started({MODEL!r}, rank_context=CUDA)
CAPABILITY = (6, 1)
compiled = raised(Unsupported, lambda: adapter._compiler.require(
    "inductor", adapter._device, True, 1))
CAPABILITY = (8, 0)
narrow = raised(Unsupported, lambda: started({MODEL!r}, precision="fp8", rank_context=CUDA))
answer(compiled=compiled, narrow=narrow)
""")
    assert "Triton needs compute capability" in found["compiled"]
    assert "fp8 needs NVIDIA's GPUs of compute capability 8.9" in found["narrow"]


def test_copies_by_pytorch_that_nobody_waits_for_arrive_late(pytorch: ForkServer) -> None:
    """Fail if the double of late copies, or the adapter's waiting for them, is not what it says."""
    (found,) = pytorch(f"""
from harness.adapter import zeros
from harness.transfers import DEVICE_TO_HOST
adapter = built({EMBEDDING!r}, rank_context=CUDA)
copied = adapter.transfer(DEVICE_TO_HOST, zeros(4) + 1, True)
copied.run()
early = copied.result().tolist()
adapter.synchronize()
late = copied.result().tolist()
batch = batch_of(adapter.model_config)
def fed():
    adapter.put(batch)
    return [bool((one.numpy() == batch[name]).all())
            for name, one in adapter._micro_batches[0].tensors.items()]
waited = fed()
Stream.wait_stream = lambda stream, other: None
answer(early=early, late=late, waited=waited, not_waited=fed())
""")
    assert (found["early"], found["late"]) == ([0.0], [1.0])
    assert all(found["waited"])
    assert not all(found["not_waited"]), "copies are not by a stream of their own"


def test_pytorch_copies_on_and_between_gpus(pytorch: ForkServer) -> None:
    (alone,) = measured(pytorch, f"'transfer', largest_bytes=2**20, {QUICK}")
    first, _ = measured(pytorch, f"'device_pairs', bytes=64, {QUICK}", ranks=2)
    assert alone["blocks"]
    assert len(first["blocks"]) == 2


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
reason = raised(Unsupported, lambda: started({MODEL!r}, rank_context=CUDA))
def broken(device):
    raise RuntimeError("CUDA error: uncorrectable ECC error encountered")
torch.cuda.set_device = broken
answer(reason=reason, other=raised(RuntimeError, lambda: started({MODEL!r}, rank_context=CUDA)))
""")
    assert found["other"] == "CUDA error: uncorrectable ECC error encountered"
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
       outside=[raised(Unsupported, lambda: kernels(*one)) for one in ((12, 0), (5, 2))])
""")
    exact, compatible, newer = found["known"]
    assert exact == compatible == "machine code"
    assert newer.startswith("PTX")
    assert int(found["size"]) == 2**32
    for reason in found["outside"]:
        assert "is built for sm_60, sm_70, sm_80, compute_90; the device is" in reason


@pytest.mark.parametrize("run", ["jax"], indirect=True)
def test_jax_compiles_with_its_options_for_several_gpus(run: ForkServer) -> None:
    (found,) = run(f"""
import importlib
from harness.measuring.loading import PACKAGE
adapter = started({MODEL!r}, compiler="jit", rank_context=CUDA)
options = importlib.import_module(PACKAGE + ".parallel.data_parallel").options_of(adapter._device)
program = jax.jit(lambda x: x + 1).lower(1.0).compile(compiler_options=options)
answer(options=options, value=float(program(1.0)))
""")
    assert found["options"] == {"xla_gpu_enable_latency_hiding_scheduler": True}
    assert found["value"] == 2.0


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


@pytest.mark.parametrize(
    ("framework", "why"),
    [("megengine", "on CPUs alone"), ("mindspore", "for CPUs only")]
    + [("jax", "Unknown backend cuda"), ("oneflow", "OneFlow sees 0 CUDA devices")]
    + [(name, "is a build without CUDA") for name in FRAMEWORKS if name not in ("jax", "oneflow")],
)
def test_builds_for_cpus_are_refused_on_every_gpu(
    fork_servers: ForkServers, framework: str, why: str
) -> None:
    (found,) = on_gpu(fork_servers, framework, has_double=False)(f"""
answer(reason=raised(Unsupported, lambda: started({MODEL!r}, rank_context=CUDA)))
""")
    assert why in found["reason"]


def test_every_framework_is_run_or_refused_on_a_gpu() -> None:
    known = {path.parent.name for path in ROOT.glob("scripts/frameworks/*/framework.json")}
    assert {*FRAMEWORKS, *REFUSES_GPUS} == known


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


def test_paddle_attends_with_the_kernels_of_gpus_as_the_reference_does(
    paddle: ForkServer, references: dict[str, Path], decoder_references: Path
) -> None:
    """Fail if masks of BERT or ELECTRA are not those that memory-efficient attention takes."""
    folders = [references[BERT], decoder_references / "electra_base"]
    assert not beyond(compared(paddle.after(STARTED_ON_GPU), folders, modes=("train",)))
    (found,) = paddle("""
built(facts_of("topics_electra"), rank_context=CUDA).step()
answer(observed=observed())
""")
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
