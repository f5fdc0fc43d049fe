"""Programs of JAX's tests."""

import os
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
from harness.adapter import Mismatch, RankContext, Unsupported

from .common import flat, read_nan
from .prelude import RANK, batch_of, built, judged, library, module_of, raised, started
from .small import small_bert, small_images


def tiny_bert(**changes):
    """Return a BERT without encoder layers, since compiling is slow."""
    return small_bert(layers=0, **changes)


def small_resnet(**options):
    """Start an adapter with a ResNet of one block."""
    return started(small_images(blocks=1), **options)


def take_broken_plugin():
    def initialize():
        raise RuntimeError("Unable to load cuPTI. Is it installed?")

    plugin = SimpleNamespace(name="xla_cuda13", load=lambda: SimpleNamespace(initialize=initialize))
    started(small_bert(layers=0))
    module_of("devices").entry_points = lambda group: [plugin]
    rank_context = RankContext(0, 0, ["rank:0"], "cuda", 1, 0)
    return {"reason": raised(Mismatch, lambda: module_of("devices").take(rank_context))}


def probe_amp():
    reason = raised(Unsupported, lambda: started(small_bert(), precision="amp"))
    from framework_under_test import devices, programs

    single, half = devices.probe(jnp.float32), devices.probe(jnp.bfloat16)
    devices.probe = lambda dtype: {}
    executed = {
        model["name"]: sorted(
            programs.executed_dtypes(built(model, precision="amp", compiler="jit")._step)
        )
        for model in (small_bert(layers=1), small_images())
    }
    return {"reason": reason, "single": single, "half": half, "executed": executed}


def refuse_amp(widened):
    """Return for which cases amp is refused where XLA widens these forms of matmul."""
    started(small_bert())
    from framework_under_test import devices

    devices.probe = lambda dtype: {
        form: ["float32" if form in widened else "bfloat16"] for form in devices.FORMS
    }
    return {
        f"{model['name']} {mode}": raised(
            Unsupported,
            lambda model=model, mode=mode: started(
                model, mode, "amp", sequence=16 if model["name"] == "bert_base" else None
            ),
        )
        for model in (small_bert(), small_images())
        for mode in ("train", "inference", "generate")
    }


def trace(model_config, precision):
    adapter = started(model_config)
    adapter.case = adapter.case._replace(precision=precision)
    module_of("devices").probe = lambda dtype: {}
    adapter._dtype = module_of("devices").compute_dtype(precision, adapter._device)
    adapter.build(batch_of(adapter.model_config))
    master = sorted({str(a.dtype) for a in adapter._shared.parameters.values()})
    outputs = library().eval_shape(adapter._logits, *adapter._local_arguments())
    logits = sorted({str(output.dtype) for output in outputs})
    return {
        "matmul_dtypes": adapter.matmul_dtypes(),
        "master": master,
        "logits": logits,
        "amp": adapter.settings()["amp_dtype"],
    }


def let_products_become_tf32():
    adapter = started(small_bert(), mode="inference")
    adapter.build(batch_of(adapter.model_config))
    before = adapter.matmul_dtypes()
    library().config.update("jax_default_matmul_precision", None)
    adapter.build(batch_of(adapter.model_config))
    return {"before": before, "after": adapter.matmul_dtypes()}


def compile_once():
    compilations = []
    adapter = built(tiny_bert(dropout=0.1), compiler="jit")
    adapter.step()
    adapter.synchronize()
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, seconds, **rest: compilations.append(event) if "compile" in event else None
    )
    before = adapter._shared.parameters
    for _ in range(3):
        adapter.step()
    adapter.synchronize()
    return {
        **adapter.compiled(),
        "compilations": compilations,
        "donated": all(array.is_deleted() for array in before.values()),
    }


def compile_nothing():
    adapter = built(tiny_bert())
    adapter.case = adapter.case._replace(compiler="jit")
    return {"reason": raised(Mismatch, adapter.compiled)}


def synchronize():
    adapter = built(tiny_bert())
    adapter.step()
    adapter.synchronize()
    state = library().tree.leaves((adapter._shared, adapter._own, adapter._latest))
    return {"pending": sum(not array.is_ready() for array in state)}


def average():
    """Tell a rank's batch statistics, averaged gradients, and how far a clipped step goes."""
    adapter = small_resnet(compiler="jit")
    adapter.model_config["hyperparameters"].update(
        clip_global_norm=0.01, learning_rate=1.0, momentum=0.0, weight_decay=0.0
    )
    adapter.build(batch_of(adapter.model_config, rank=RANK))
    start = adapter.weights()
    loss = adapter.read(adapter.step())
    own = module_of("parallel.data_parallel").local(adapter._own.statistics)
    own = {name: np.array(array) for name, array in own.items()}
    moved = [start[name] - array for name, array in adapter.weights().items()]
    adapter.load_weights({**start, **own})
    gradients = adapter.gradients()

    def sample(arrays):
        return flat(np.asarray(arrays[name]).ravel()[:50] for name in sorted(arrays)).tolist()

    # what op-by-op steps do with the gradients of a rank
    single = library().jit(adapter._observed)(*adapter._local_arguments())[2]
    by_operation = adapter._ranks.average(single)
    answers = {
        "moved": float(np.sqrt(sum((array.astype("d") ** 2).sum() for array in moved))),
        "gradients": sample(gradients),
        "single": sample(single),
        "by_operation": sample(by_operation),
        "statistics": float(own["bn1.running_mean"][0]),
        "loss": loss,
        "checksum": adapter.weights_checksum(),
        "total": adapter.all_reduce(0.1 * (RANK + 1)),
        "settings": adapter.settings(),
    }
    adapter.stop()
    return answers


def run_out_of_memory():
    adapter = started(small_bert())
    return {
        "allocation": judged(adapter, lambda: jnp.zeros(1 << 46).block_until_ready()),
        "host": adapter.out_of_memory(MemoryError()),
        "device": adapter.out_of_memory(
            library().errors.JaxRuntimeError(
                "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 1 bytes"
            )
        ),
        "shapes": judged(adapter, lambda: jnp.zeros([2, 3]) @ jnp.zeros([2, 3])),
    }


def lose_nan():
    del os.environ["XLA_FLAGS"]
    return read_nan(small_images(blocks=1), "jit")
