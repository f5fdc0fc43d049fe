"""Comparisons of adapters with their references, several in one process."""

import functools
import types

from harness.adapter import Unsupported
from harness.kinds import verification
from harness.kinds.verification import ReferenceFolder, compare
from harness.measuring.checks import check_matmuls, compiler_evidence

from . import prelude
from .prelude import FRAMEWORK, load_model_config, module_of
from .small import SLOW


def leave_out_steps():
    """Let slow frameworks skip comparing training steps of models built from now on, and compiling
    them where nothing needs them: dropout's statistics take steps, and amp's products are those of
    a step."""
    if FRAMEWORK not in SLOW:
        return
    verification.Comparison.training = lambda self: []
    start = prelude.started

    def started(model_config, *arguments, **options):
        adapter = start(model_config, *arguments, **options)
        drops = model_config["hyperparameters"].get("dropout")
        needed = drops or adapter.case.precision != "fp32"
        if FRAMEWORK == "jax" and not needed:
            ready = adapter._ready
            adapter._ready = lambda *arguments, donated=(), **more: (
                None if donated else ready(*arguments, **more)
            )
        elif FRAMEWORK == "tensorflow":
            steps = module_of("steps")
            training = getattr(steps.training, "__wrapped__", steps.training)

            @functools.wraps(training)
            def untraced(*arguments):
                none = types.SimpleNamespace(get_concrete_function=lambda batch: None)
                return training(*arguments)._replace(step=none)

            steps.training = training if needed else untraced
        return adapter

    prelude.started = started


def compare_modes(folder, precision, compiler):
    reference = ReferenceFolder(folder)
    errors, refused = {}, {}
    for mode in ("train", "inference"):
        try:
            adapter = started(load_model_config(folder), mode, precision, compiler=compiler)
            adapter.build(dict(reference.arrays("batch-0")))
            check_matmuls(precision, adapter.matmul_dtypes())
            errors[mode] = compare(adapter, reference, print)
            compiler_evidence(adapter)
            adapter.stop()
        except Unsupported as reason:
            refused[mode] = str(reason)
    return {"errors": errors, "refused": refused}


if FRAMEWORK == "tensorflow":
    import tensorflow

    # use graphs as traced: optimizing them takes longer than running them
    tensorflow.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})


def started(model_config, mode="train", precision="fp32", **options):
    """Start an adapter with settings that make comparisons fast."""
    if FRAMEWORK == "jax":
        # Without a compiler, each operation would be compiled separately for each shape. For amp
        # the device supports bfloat16 here, because XLA for CPUs widens it.
        adapter = prelude.started(model_config, mode, **{"compiler": "jit", **options})
        adapter.case = adapter.case._replace(precision=precision)
        module_of("devices").probe = lambda dtype: {}
        adapter._dtype = module_of("devices").compute_dtype(precision, adapter._device)
        return adapter
    if FRAMEWORK == "mindspore":
        # dropout takes many passes, which take 2.5 times as long without graphs
        masked = mode == "train" and model_config["hyperparameters"].get("dropout")
        options = {"compiler": "jit" if masked else "none", **options}
    adapter = prelude.started(model_config, mode, precision, **options)
    if FRAMEWORK == "tensorflow1":
        # without Grappler's rewrites, except the one for mixed precision
        adapter._config.graph_options.rewrite_options.disable_meta_optimizer = precision != "amp"
    return adapter


def compare_all(computations):
    errors = {}
    for folder, name, mode, precision in computations:
        model_config = load_model_config(folder, name)
        reference = ReferenceFolder(folder)
        adapter = started(model_config, mode, precision)
        adapter.build(reference.prepare(adapter))
        key = f"{model_config['name']}, {name}, {mode}, {precision}"
        errors[key] = [precision, compare(adapter, reference, print)]
        adapter.stop()
    return {"errors": errors}


def compare_rank(reference, options):
    actual = ReferenceFolder(reference)
    adapter = started(load_model_config(reference), **options)
    adapter.build(actual.prepare(adapter))
    return {"errors": compare(adapter, actual, print)}
