"""Features special to JAX."""

import math
import os

import jax
import jax.numpy as jnp
import numpy as np
from harness.adapter import Mismatch, Unsupported

from .common import flat, read_nan
from .prelude import RANK, batch_of, built, judged, library, module_of, raised, started
from .small import BERT_PRODUCTS, RESNET_PRODUCTS, small_bert, small_images


def check_amp_is_unsupported_where_xla_multiplies_in_float32():
    """XLA for CPUs widens some matmuls of bfloat16 arrays; JAX's own graph hides it."""
    reason = raised(Unsupported, lambda: started(small_bert(), precision="amp"))
    from framework_under_test import devices, steps

    single, half = devices.probe(jnp.float32), devices.probe(jnp.bfloat16)
    assert {form for dtypes in single.values() for form in dtypes} == {"float32"}
    devices.probe = lambda dtype: {}
    executed = {
        form
        for model in (small_bert(layers=1), small_images())
        for form in steps.executed_dtypes(built(model, precision="amp", compiler="jit")._step)
    }
    assert (reason is not None) == ("float32" in executed), executed
    for form in {*half} - {"convolution"} if reason else ():  # matmul forms of a BERT training
        assert (form in reason) == ("float32" in half[form]), form


def check_products_have_the_precision_asked_for():
    """Mixed precision is traced as on a device that supports it."""
    bert, images = small_bert(dropout=0.1), small_images()
    for model_config, precision, products in (
        (bert, "fp32", {"float32": 3 * BERT_PRODUCTS}),
        (bert, "amp", {"bfloat16": 3 * BERT_PRODUCTS}),
        (images, "amp", {"bfloat16": 3 * RESNET_PRODUCTS - 1}),  # images have no gradient
    ):
        adapter = started(model_config)
        adapter.case = adapter.case._replace(precision=precision)
        module_of("devices").probe = lambda dtype: {}
        adapter._dtype = module_of("devices").compute_dtype(precision, adapter._device)
        adapter.build(batch_of(adapter.model_config))
        assert adapter.matmul_dtypes() == products
        assert {str(a.dtype) for a in adapter._shared.parameters.values()} == {"float32"}
        outputs = jax.eval_shape(adapter._logits, *adapter._local_arguments())
        expected = "float32" if precision == "fp32" else "bfloat16"
        assert {str(output.dtype) for output in outputs} == {expected}
        assert (adapter.settings()["amp_dtype"] or "float32") == expected


def check_float32_that_may_become_tf32_does_not_count_as_float32():
    adapter = built(small_bert(), mode="inference")
    assert adapter.matmul_dtypes() == {"float32": BERT_PRODUCTS}
    jax.config.update("jax_default_matmul_precision", None)
    adapter.build(batch_of(adapter.model_config))
    after = adapter.matmul_dtypes()
    assert "float32" not in after
    assert sum(after.values()) == BERT_PRODUCTS


def check_compiled_is_one_executable_that_keeps_its_memory():
    compilations = []
    adapter = built(small_bert(layers=0, dropout=0.1), compiler="jit")
    adapter.step()
    adapter.synchronize()
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, seconds, **rest: compilations.append(event) if "compile" in event else None
    )
    before = adapter._shared.parameters
    for _ in range(3):
        adapter.step()
    adapter.synchronize()
    assert compilations == [], "steps behind the first compiled something"
    assert all(array.is_deleted() for array in before.values()), "the state is copied in each step"
    proof = adapter.compiled()
    assert proof["executables"] == 1
    assert proof["fusions"] > 0


def check_compiled_raises_where_xla_compiled_nothing():
    adapter = built(small_bert(layers=0))
    adapter.case = adapter.case._replace(compiler="jit")
    assert "operation by operation" in raised(Mismatch, adapter.compiled)


def average():
    """Report a rank's batch statistics, averaged gradients, and how far a clipped step goes."""
    adapter = started(small_images(blocks=1), compiler="jit")
    adapter.model_config["hyperparameters"].update(
        clip_global_norm=0.01, learning_rate=1.0, momentum=0.0, weight_decay=0.0
    )
    adapter.build(batch_of(adapter.model_config, rank=RANK))
    start = adapter.weights()
    loss = adapter.read(adapter.step())
    own = module_of("devices").local(adapter._own.statistics)
    own = {name: np.array(array) for name, array in own.items()}
    moved = [start[name] - array for name, array in adapter.weights().items()]
    adapter.load_weights({**start, **own})
    gradients = adapter.gradients()

    def sample(arrays):
        return flat(np.asarray(arrays[name]).ravel()[:50] for name in sorted(arrays)).tolist()

    # compute a rank's gradients like op-by-op steps
    single = jax.jit(adapter._observed)(*adapter._local_arguments())[2]
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


def check_memory_that_ran_out_is_distinguished_from_other_errors():
    adapter = started(small_bert())
    assert judged(adapter, lambda: jnp.zeros(1 << 46).block_until_ready())
    assert adapter.out_of_memory(MemoryError())
    full = "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 1 bytes"
    assert adapter.out_of_memory(library().errors.JaxRuntimeError(full))
    assert not judged(adapter, lambda: jnp.zeros([2, 3]) @ jnp.zeros([2, 3]))


def check_a_nan_in_the_input_reaches_the_loss():
    """With ``jax.nn.relu``, XLA's CPU kernels lose it in the last ReLU and average pooling."""
    del os.environ["XLA_FLAGS"]
    assert math.isnan(read_nan(small_images(blocks=1), "jit")["poisoned"])
