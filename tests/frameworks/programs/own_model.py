"""Programs that run users' models."""

import os
import sys
from types import SimpleNamespace

from harness.adapter import Mismatch, Unsupported
from harness.kind import Context, Workload
from harness.measuring import float64_run
from harness.measuring.checks import compiler_evidence
from harness.measuring.model import seed_of_batch
from harness.own_model import model_config

from .prelude import raised, started


def compare(cases, compiler, library=None):
    """Compare a started adapter with float64 for each case: path, mode and precision.
    ``library``: folder of modules that the models import."""
    sys.path += [library] if library else []
    errors, refused = {}, {}
    for path, mode, precision in cases:
        adapter = started(model_config(path), mode, precision, compiler, batch=8)
        workload = Workload(adapter.case, adapter.model_config, {}, 1, None, 1)
        report = SimpleNamespace(enter=print, fields={})
        context = Context(workload, adapter.rank_context, adapter, [], report)
        key = f"{os.path.basename(path)}, {mode}, {precision}"
        try:
            errors[key] = [precision, float64_run.compare(context)]
        except (Mismatch, Unsupported, TypeError) as error:
            refused[key] = str(error)
    return {"errors": errors, "refused": refused, "batch": report.fields.get("batch_checksum")}


def built(name, **options):
    adapter = started(model_config(name), **options)
    adapter.build(seed_of_batch(1, adapter.rank_context.rank))
    return adapter


def train(path, steps, compiler="none", library=None):
    """Report losses, of which dropout draws other masks, and the mean of each running mean."""
    sys.path += [library] if library else []
    adapter = built(path, compiler=compiler, batch=8 if library else 2)
    losses = [adapter.read(adapter.step()) for _ in range(steps)]
    arrays = adapter.statistics() if library else {}
    means = [float(array.mean()) for name, array in arrays.items() if "mean" in name]
    return {"losses": losses, "means": means}


def count(path, batch):
    adapter = built(path, mode="inference", batch=batch)
    return {"multiply_adds": adapter.multiply_adds()}


def build_keras():
    adapter = built("keras:MobileNetV2", mode="inference", batch=1)
    (logits,) = adapter.outputs()
    return {
        "parameters": int(adapter.trainable_parameters()),
        "shape": logits.shape,
    }


def build_torchvision():
    name = "torchvision:squeezenet1_1"
    adapter = built(name, mode="inference", batch=1)
    adapter.step()
    return {
        "name": adapter.model_config["name"],
        "source": adapter.model_config["own"]["source"],
        "parameters": int(adapter.trainable_parameters()),
        "reason": raised(Unsupported, lambda: started(model_config("timm:resnet18"))),
    }


def recompile(path):
    """Count graph breaks by Dynamo without Inductor, whose code takes long to compile."""
    import torch
    import torch._inductor.metrics

    compile_of = torch.nn.Module.compile
    torch.nn.Module.compile = lambda model, backend, mode, **more: compile_of(
        model, backend="eager", **more
    )
    torch._inductor.metrics.generated_kernel_count = 1
    adapter = built(path, compiler="inductor")
    for _ in range(2):
        adapter.read(adapter.step())
    before = adapter.recompilations()
    adapter.step()

    return {
        "counts": adapter.compiled(),
        "reasons": adapter.recompilations()[len(before) :],
    }


def compile_itself(path):
    adapter = built(path)
    adapter.read(adapter.step())
    return compiler_evidence(adapter)


def refuse_amp(path):
    """Ask for mixed precision, which JAX must refuse for a user's model on any device."""
    config = model_config(path)
    adapter = started(config)

    def make(precision):
        case = adapter.case._replace(precision=precision)
        return type(adapter.definition())(case, config, adapter.rank_context)

    amp = ("amp", "amp_bf16")
    return {"refused": [raised(Unsupported, lambda name=name: make(name)) for name in amp]}
