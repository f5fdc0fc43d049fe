"""Programs of OneFlow's tests."""

import time

import numpy as np
from harness.adapter import Mismatch

from .common import flat
from .prelude import RANK, batch_of, built, library, module_of, raised, started
from .small import small_bert, small_images


def weights(adapter):
    return flat(adapter.weights().values())


def synchronize(compiler):
    adapter = built(small_bert(layers=1, hidden=512), compiler=compiler, batch=16)
    adapter.read(adapter.step())
    handles = [adapter.step() for _ in range(3)]
    enqueued = time.perf_counter()
    adapter.synchronize()
    complete = time.perf_counter()
    values = [adapter.read(handle) for handle in handles]
    end = time.perf_counter()
    return {"waited": complete - enqueued, "late": end - complete, "values": values}


def drop_elements(compiler):
    """Tell masks of dropout, from differing outputs of one batch."""
    adapter = started(small_bert(dropout=0.5, layers=1), compiler=compiler)
    adapter.build(batch_of(adapter.model_config))  # the same batch in every rank
    one, other = adapter.outputs(), adapter.outputs()
    modules = [m for m in adapter._model.modules() if type(m).__name__ == "Dropout"]
    ones = library().ones(64)
    answers = {
        "one": flat(one).tolist(),
        "again": np.array_equal(flat(one), flat(other)),
        "masks": [modules[i](ones).numpy().tolist() for i in (1, 2)],
        "settings": adapter.settings(),
    }
    adapter.stop()
    return answers


def trace(model_config, mode):
    adapter = built(model_config, mode=mode)
    state = weights(adapter)
    random = library().get_rng_state().numpy().tolist()
    eager = adapter.matmul_dtypes()
    kept = bool(np.array_equal(state, weights(adapter)))
    same_random = random == library().get_rng_state().numpy().tolist()
    graph = built(model_config, mode=mode, compiler="graph")
    return {
        "eager": eager,
        "graph": graph.matmul_dtypes(),
        "kept": kept,
        "random": same_random,
    }


def compile_nothing():
    adapter = built(small_bert(layers=0), compiler="graph")
    compiled = adapter.compiled()
    adapter._graph._is_compiled = False
    return {"compiled": compiled, "reason": raised(Mismatch, adapter.compiled)}


def normalise():
    adapter = started(small_images(), compiler="graph")
    flow, ranks, graphs = library(), module_of("parallel.data_parallel"), module_of("compiler")

    class Definition:
        inputs = staticmethod(lambda batch: (batch["images"],))

    class Model(flow.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = flow.nn.BatchNorm2d(3)

        def forward(self, images):
            return (self.norm(images),)

    images = flow.randn(4, 3, 8, 8) + RANK
    (alone,) = Model().train()(images)
    model = ranks.replicate(Model().train(), adapter._device)
    graph = graphs.Forward(graphs.Source(Definition, model, {}, None))
    (together,) = graph(ranks.join({"images": images}, adapter._device))
    answers = {
        "alone": alone.numpy().ravel().tolist(),
        "together": together.to_local().numpy().ravel().tolist(),
        "running": float(model.norm.running_mean.to_local().numpy().mean()),
    }
    adapter.stop()
    return answers


def build_again(compiler):
    adapter = started(small_bert(layers=0), mode="inference", compiler=compiler)

    def outputs(rank):
        adapter.build(batch_of(adapter.model_config, rank=rank))
        return flat(adapter.outputs()), adapter.read(adapter.step())

    (one, mean), (other, _), (again, _) = outputs(0), outputs(1), outputs(0)
    return {
        "kept": np.array_equal(one, again),
        "differs": not np.array_equal(one, other),
        "mean": float(one.mean()),
        "read": mean,
    }


def clip():
    started(small_bert())
    oneflow, clip_global_norm = library(), module_of("optimizers").clip_global_norm

    values = np.random.default_rng(0).standard_normal((30522, 768)).astype("float32")
    gradients = [oneflow.tensor(values), oneflow.tensor(values[:100])]
    clip_global_norm(gradients, 0.5)
    after = flat(gradient.numpy() for gradient in gradients)
    few = [oneflow.tensor(values[:1] / 1e6)]
    clip_global_norm(few, 0.5)
    return {
        "norm": float(np.sqrt(after @ after)),
        "kept": bool((few[0].numpy() == values[:1] / 1e6).all()),
    }
