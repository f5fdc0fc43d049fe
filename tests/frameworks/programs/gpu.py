"""Programs on the double of a GPU of ``FRAMEWORK``."""

import contextlib
import importlib
import os
import sys
import time
from dataclasses import replace
from types import SimpleNamespace

from harness.adapter import Mismatch, Unsupported, zeros
from harness.adapter.base import PACKAGE
from harness.kinds import overlap, peak_flops, sharded_matmul, sustained
from harness.measuring import rounding, window
from harness.operations import DEVICE_TO_HOST
from harness.sensors import Sensors

from ..gpus.running import CUDA, QUEUE, measured
from . import prelude
from .prelude import FRAMEWORK, WORLD, batch_of, built, module_of, raised, started
from .small import model_config_of, small_images

double = importlib.import_module(f"tests.frameworks.gpus.{FRAMEWORK}")
outputs = getattr(double, "outputs", lambda adapter, handle: ())
observed = double.observed


def start_on_gpu():
    """Start adapters on the double unless a program names another device."""
    start = prelude.started
    prelude.started = lambda model_config, *arguments, **options: start(
        model_config, *arguments, **{"rank_context": CUDA, **options}
    )


def measure(benchmark, tf32=False, **parameters):
    """Run a benchmark; report the entry in the record and the calls that the double saw.
    ``tf32``: stands for a GPU that rounds float32 to TF32, which a processor cannot."""
    if tf32:
        rounding.observe = lambda adapter: {"matrix product": 11, "convolution": 11}
    # blocks of this size are too short to tell whether both together take longer than one
    overlap.check_longer = sharded_matmul.check_longer = lambda seconds, runs: None
    sustained.device_meter = lambda context: Sensors([0]).clock_and_energy
    if benchmark == "device_pairs":
        double.Devices.allowed = range(WORLD)
    fields = measured(benchmark, **parameters)
    return {**fields, "observed": observed(), "variables": {**os.environ}}


def measure_all(benchmarks, **options):
    ranks = [measure(name, **given, **options) for name, given in benchmarks.items()]
    return {"ranks": ranks, "observed": observed()}


def infer_attend_and_peak(inferred, attended, compiler, **quick):
    peak_flops.SIZES, peak_flops.BLOCK_SECONDS = (16, 32), 1e-4
    return {
        "inference": measured("inference", inferred, compiler=compiler),
        "attention": raised(Unsupported, lambda: measured("attention", attended, **quick)),
        "peak": measured("peak_flops", sustained_seconds=1e-3),
        "observed": observed(),
    }


def feed(pictures, model_config, compiler):
    return {
        "loaded": measured("input", small_images(), source="data", data=pictures, workers=0),
        "fed": measured("train", model_config, compiler=compiler, source="synthetic_host"),
    }


def train_with(model_config, variables):
    """Train with these variables; report those that remain."""
    os.environ.update(variables)
    actual = measured("train", model_config)
    return {"steps": len(actual["step_seconds"]), "kept": {n: os.environ[n] for n in variables}}


def end_early(model_config, compiler):
    adapter = built(model_config, compiler=compiler, rank_context=CUDA)
    read, complete = adapter.read, adapter.blocking()
    read(adapter.step())
    start = time.monotonic()
    read(adapter.step())
    # seconds on the device, much longer than on the processor
    work = 0.15 + 4 * (time.monotonic() - start)

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
    timed()  # a wait() that does nothing leaves all of a single step
    seconds, blocking = timed(2).seconds, complete
    mark, other_stream = adapter.mark, ""
    if FRAMEWORK == "pytorch":
        adapter.mark = lambda handle: double.Stream().record_event()
        other_stream, adapter.mark = raised(Mismatch, timed), mark
    adapter.wait, complete = lambda mark: None, False
    not_waited = raised(Mismatch, timed)
    adapter.synchronize = lambda: None
    return {
        "seconds": seconds,
        "work": work,
        "blocking": blocking,
        "other_stream": other_stream,
        "not_waited": not_waited,
        "not_synchronized": raised(Mismatch, timed),
    }


def take_another(model_config, compiler):
    other = replace(CUDA, local_rank=1 - CUDA.local_rank)

    def run():
        built(model_config, compiler=compiler, rank_context=other)
        observed()

    return {"refused": raised(AssertionError, run)}


def train_with_mistake(mistake, model_config, precision, compiler):
    """Train with a mistake planted in PyTorch's adapter; report the error, if any, and settings."""
    torch, settings = double.torch, {}
    adapter, devices = started(model_config, rank_context=CUDA), module_of("devices")
    take, set_precision = devices.take, devices.set_precision

    def search_no_kernels(rank_context):
        device = take(rank_context)
        torch.backends.cudnn.benchmark = False
        return device

    def leave_tf32_on(*given):
        dtype = set_precision(*given)
        torch.backends.cuda.matmul.allow_tf32 = True
        return dtype

    def bits(adapter):  # mantissa bits of a GPU that obeys the settings
        on = torch.backends.cuda.matmul.allow_tf32
        return dict.fromkeys(("matrix product", "convolution"), 11 if on else 24)

    torch._inductor.config.compile_threads = 1
    rounding.observe = bits
    if mistake == "no_autocast":
        type(adapter)._autocast = lambda adapter: contextlib.nullcontext()
    devices.take = search_no_kernels if mistake == "search_no_kernels" else take
    devices.set_precision = leave_tf32_on if mistake == "leave_tf32_on" else set_precision
    if mistake == "keep_scale":
        double._SCALER.update = lambda scaler: None

    def run():
        settings.update(measured("train", model_config, precision, compiler)["settings"])
        settings.update(observed())

    return {"error": raised((Mismatch, RuntimeError), run), "settings": settings}


def copy_ahead(model_config):
    adapter = built(model_config, rank_context=CUDA)
    batch = batch_of(adapter.model_config)

    adapter.feed(batch)
    QUEUE.add(1.5)
    start = time.monotonic()
    adapter.feed(batch)
    return {"waited": time.monotonic() - start > 1.4}


def describe_layout():
    adapter = built(small_images())
    fused = sum(
        "Fused" in type(part).__name__ for part in getattr(adapter._model, "modules", list)()
    )
    return {"settings": adapter.settings(), "fused": fused}


def train_in_named_precisions(model_config):
    def trained(precision):
        return measured("train", model_config, precision)

    float16, bfloat16 = trained("amp_fp16"), trained("amp_bf16")
    double.CAPABILITY = (7, 0)
    return {
        "float16": float16,
        "bfloat16": bfloat16,
        "default": trained("amp"),
        "refused": raised(Unsupported, lambda: trained("amp_bf16")),
    }


def allow_halves():
    """Let an adapter take half precisions that the processor lacks, or computes in float32."""
    started(small_images(), rank_context=CUDA)  # imports the framework's modules
    devices = module_of("devices")
    if FRAMEWORK == "jax":
        devices.probe = lambda dtype: {}
    if FRAMEWORK == "oneflow":
        devices.amp_dtype = lambda *given: double.oneflow.float16
    if FRAMEWORK == "paddle":
        devices.require_amp = lambda dtype: None
        # linear layers of CUDA builds take only float32 on a processor
        double.paddle.set_flags({"FLAGS_use_legacy_linear": True})


def overflow(model_config, compiler):
    """Take a step whose gradients are not finite; report what became of weights and loss scale."""
    adapter = built(model_config, precision="amp_fp16", compiler=compiler, rank_context=CUDA)
    weights, scale = adapter.weights(), adapter.loss_scale()
    first, *others = weights
    adapter.load_weights({**weights, first: weights[first] * float("nan")})
    adapter.read(adapter.step())
    after, settings = adapter.weights(), adapter.settings()
    return {
        "kept": all((after[name] == weights[name]).all() for name in others),
        "scales": [scale, adapter.loss_scale()],
        "scales_loss": settings.get("grad_scaler", settings.get("loss_scaling")),
    }


def refuse_cuda_graphs(model_config):
    adapter = started(model_config, rank_context=CUDA)

    def refused(compiler, mode="train", steps=1):
        return raised(
            Unsupported,
            lambda: module_of("steps").require_compiler(
                compiler, adapter._device, mode == "train", steps
            ),
        )

    modes = ("inductor", "inductor:reduce-overhead", "inductor:max-autotune")
    one = [refused(mode) for mode in modes]
    several = [refused(mode, steps=2) for mode in modes]
    inference = refused(modes[1], mode="inference", steps=2)
    return {"one": one, "several": several, "inference": inference}


def refuse_old_gpus(model_config):
    adapter = started(model_config, rank_context=CUDA)
    double.CAPABILITY = (6, 1)
    compiled = raised(
        Unsupported,
        lambda: module_of("steps").require_compiler("inductor", adapter._device, True, 1),
    )
    double.CAPABILITY = (8, 0)
    narrow = raised(Unsupported, lambda: started(model_config, precision="fp8", rank_context=CUDA))
    return {"compiled": compiled, "narrow": narrow}


def copy_late(model_config):
    adapter = built(model_config, rank_context=CUDA)
    copied = adapter.transfer(DEVICE_TO_HOST, zeros(4) + 1, True)
    copied.run()
    early = copied.result().tolist()
    adapter.synchronize()
    late = copied.result().tolist()
    batch = batch_of(adapter.model_config)

    def fed():
        adapter.feed(batch)
        return [
            bool((tensor.numpy() == batch[name]).all())
            for name, tensor in adapter._micro_batches[0].tensors.items()
        ]

    waited = fed()
    double.Stream.wait_stream = lambda stream, other: None
    return {"early": early, "late": late, "waited": waited, "not_waited": fed()}


def keep_random_state(model_config):
    import torch

    adapter, restored = built(model_config, rank_context=CUDA), []
    torch.cuda.get_rng_state = lambda device: torch.full([16], 7, dtype=torch.uint8)
    torch.cuda.set_rng_state = lambda state, device: restored.append([state.tolist(), device.type])
    adapter.save_training("kept")
    adapter.load_training("kept")
    return {"restored": restored}


def break_driver(model_config):
    def old():
        raise RuntimeError("The NVIDIA driver on your system is too old (found version 12040).")

    def without_fabric():
        raise RuntimeError(
            "Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized"
        )

    def missing(backend):
        raise RuntimeError("Unknown backend cuda")

    started(model_config, rank_context=CUDA)
    reasons = {}
    for error, fault in ((Unsupported, old), (Mismatch, without_fabric)):
        if FRAMEWORK == "jax":
            plugin = SimpleNamespace(name="cuda13", initialize=fault)
            plugin.load = lambda plugin=plugin: plugin
            module_of("devices").entry_points = lambda group, plugin=plugin: [plugin]
            double.jax.local_devices = missing
        else:
            double.torch.cuda.init = fault
        start = raised(error, lambda: started(model_config, rank_context=CUDA))
        reasons[error.__name__] = start
    return reasons


def tell_kernels(model_config):
    adapter = started(model_config, rank_context=CUDA)

    def kernels(*capability):
        double.CAPABILITY = capability
        return module_of("devices").kernels(adapter._gpu)

    return {
        "known": [kernels(8, 0), kernels(8, 6), kernels(9, 0)],
        "size": os.environ["CUDA_CACHE_MAXSIZE"],
        "cache": os.path.relpath(os.environ["CUDA_CACHE_PATH"], sys.prefix),
        "outside": [raised(Unsupported, lambda at=at: kernels(*at)) for at in ((12, 0), (5, 2))],
    }


def compile_for_several(model_config):
    adapter = started(model_config, compiler="jit", rank_context=CUDA)
    parallel = importlib.import_module(PACKAGE + ".sharded")
    options = parallel.options_of(adapter._device)
    program = double.jax.jit(lambda x: x + 1).lower(1.0).compile(compiler_options=options)
    return {"options": options, "value": float(program(1.0))}


def lack_kernels(model_config):
    double.CAPABILITY, double.NAME = (9, 0), "NVIDIA H100"
    return {"reason": raised(Unsupported, lambda: started(model_config, rank_context=CUDA))}


def count_linear(model_config):
    def counted():
        return built(model_config, mode="inference", rank_context=CUDA).matmul_dtypes()

    linear = counted()
    double.paddle.set_flags({"FLAGS_use_legacy_linear": True})
    return {"linear": linear, "legacy": counted(), "observed": observed()}


def attend():
    built(model_config_of("topics_electra"), rank_context=CUDA).step()
    return {"observed": observed()}
