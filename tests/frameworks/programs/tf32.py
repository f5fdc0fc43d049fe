"""Switches of TF32, set as on a GPU of another compute capability."""

from types import SimpleNamespace

from harness.adapter import Mismatch, Unsupported
from harness.measuring import checks, rounding

from .prelude import FRAMEWORK, built, library, module_of, raised
from .small import small_bert


def switch_pytorch(adapter, precision, version):
    torch = library()
    torch.cuda.get_device_capability = lambda device: version
    torch.cuda.get_device_name = lambda device: "a GPU"
    module_of("devices").set_precision(precision, torch.device("cuda", 0))
    flags = torch.backends
    return [flags.cuda.matmul.allow_tf32, flags.cudnn.allow_tf32]


def switch_jax(adapter, precision, version):
    devices = module_of("devices")
    devices.configure(adapter.rank_context, precision)
    capability = ".".join(map(str, version))
    gpu = SimpleNamespace(platform="gpu", compute_capability=capability, device_kind="a GPU")
    devices.compute_dtype(precision, gpu)
    return [library().config.jax_default_matmul_precision == "tensorfloat32"]


def switch_tensorflow(adapter, precision, version):
    module_of("devices").capability_and_name = lambda gpu: (version, "a GPU")
    module_of("devices").set_tf32(precision == "tf32", object())
    return [library().config.experimental.tensor_float_32_execution_enabled()]


def switch_paddle(adapter, precision, version):
    cuda, core = library().device.cuda, library().base.core
    cuda.get_device_capability, cuda.get_device_name = lambda: version, lambda: "a GPU"
    core.set_cudnn_switch(False)
    if precision == "tf32":
        module_of("devices").allow_tf32(True)
    return [core.get_cublas_switch(), core.get_cudnn_switch()]


def observe():
    """Set each precision; report switches, observed precision, and the reason for a refusal."""
    switch, adapter = globals()[f"switch_{FRAMEWORK}"], built(small_bert(), mode="inference")
    answers = {"older": raised(Unsupported, lambda: switch(adapter, "tf32", (7, 5)))}
    for precision in ("fp32", "tf32"):
        switches = switch(adapter, precision, (9, 0))
        actual = rounding.named(adapter.matmul_dtypes(), rounding.observe(adapter))
        asked = precision, actual
        reason = raised(Mismatch, lambda asked=asked: checks.check_matmuls(*asked))
        answers[precision] = [switches, actual, reason]
    return answers
