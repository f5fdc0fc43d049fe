"""Comparisons of adapters with their references, several in one process."""

from harness.kinds.verification import ReferenceFolder, compare

from . import prelude
from .prelude import FRAMEWORK, load_model_config, module_of

if FRAMEWORK == "tensorflow":
    import tensorflow

    # graphs as they were traced: rewriting them takes longer than running them
    tensorflow.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})


def started(model_config, mode="train", precision="fp32", **options):
    """Start an adapter so that comparing it takes little time."""
    if FRAMEWORK == "jax":
        # operation by operation, each would be compiled by itself for each shape; amp as on a
        # device whose products it reaches: XLA for CPUs widens what was rounded to bfloat16
        adapter = prelude.started(model_config, mode, **{"compiler": "jit", **options})
        adapter.case = adapter.case._replace(precision=precision)
        module_of("devices").probe = lambda dtype: {}
        adapter._dtype = module_of("devices").compute_dtype(precision, adapter._device)
        return adapter
    if FRAMEWORK == "mindspore":
        # dropout in graphs: many passes, which take 2.5 times as long operation by operation
        masked = mode == "train" and model_config["hyperparameters"].get("dropout")
        options = {"compiler": "jit" if masked else "none", **options}
    adapter = prelude.started(model_config, mode, precision, **options)
    if FRAMEWORK == "tensorflow1":
        # as for TensorFlow; mixed precision is a rewriting
        adapter._config.graph_options.rewrite_options.disable_meta_optimizer = precision != "amp"
    return adapter


def compare_all(computations):
    """Compare each of several small models."""
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


def compare_copy(reference, copy, config_name, options):
    """Compare a copy of the adapter."""
    actual = ReferenceFolder(reference)
    adapter = started(load_model_config(reference, config_name), folder=copy, **options)
    adapter.build(actual.prepare(adapter))
    return {"errors": compare(adapter, actual, print)}
