"""Features special to OneFlow."""

import math

import numpy as np
from harness.adapter import Mismatch

from .common import flat, read_nan
from .prelude import RANK, built, library, module_of, raised, started
from .small import BERT_PRODUCTS, LAYER_PRODUCTS, RESNET_PRODUCTS, small_bert, small_images

#: Matmuls of a BERT without encoder layers.
HEADS_PRODUCTS = BERT_PRODUCTS - 2 * LAYER_PRODUCTS


def check_a_graphs_dropout_differs_between_steps():
    adapter = built(small_bert(dropout=0.5, layers=1), compiler="graph")
    one, other = adapter.outputs(), adapter.outputs()
    assert not np.array_equal(flat(one), flat(other)), "two steps drop the same positions"


def check_eager_mode_and_graph_count_the_same_products():
    """A matmul of the forward pass has two in the backward pass, which a graph shows too."""
    for model_config, mode, eager, graph in (
        (small_bert(dropout=0.1, layers=0), "train", HEADS_PRODUCTS, 3 * HEADS_PRODUCTS),
        (small_images(), "inference", RESNET_PRODUCTS, RESNET_PRODUCTS),
    ):
        adapter = built(model_config, mode=mode)
        weights = flat(adapter.weights().values())
        random = library().get_rng_state().numpy().tolist()
        assert adapter.matmul_dtypes() == {"float32": eager}
        assert np.array_equal(weights, flat(adapter.weights().values()))
        assert library().get_rng_state().numpy().tolist() == random, "it drew random numbers"
        compiled = built(model_config, mode=mode, compiler="graph")
        assert compiled.matmul_dtypes() == {"float32": graph}


def check_compiled_raises_where_nothing_was_compiled():
    adapter = built(small_bert(layers=0), compiler="graph")
    proof = adapter.compiled()
    assert proof["operators"] > proof["matmuls"] == 3 * HEADS_PRODUCTS
    adapter._graph._is_compiled = False
    assert raised(Mismatch, adapter.compiled), "a step that was not compiled counts as compiled"


def normalise():
    adapter = started(small_images(), compiler="graph")
    flow, ranks, graphs = library(), module_of("devices"), module_of("steps")

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
    graph = graphs.Forward(graphs.Source(Definition, model, None))
    (together,) = graph(ranks.join({"images": images}, adapter._device))
    answers = {
        "alone": alone.numpy().ravel().tolist(),
        "together": together.to_local().numpy().ravel().tolist(),
        "running": float(model.norm.running_mean.to_local().numpy().mean()),
    }
    adapter.stop()
    return answers


def check_a_nan_is_read_as_it_is():
    assert math.isnan(read_nan(small_images(blocks=1))["poisoned"])


def check_clipping_knows_the_norm_of_many_gradients():
    """OneFlow's own norm is off by a fortieth for BERT's word embeddings."""
    started(small_bert())
    flow, clip_global_norm = library(), module_of("steps").clip_global_norm
    values = np.random.default_rng(0).standard_normal((30522, 768)).astype("float32")
    gradients = [flow.tensor(values), flow.tensor(values[:100])]
    clip_global_norm(gradients, 0.5)
    after = flat(gradient.numpy() for gradient in gradients)
    assert np.isclose(np.sqrt(after @ after), 0.5, rtol=1e-5)
    few = [flow.tensor(values[:1] / 1e6)]
    clip_global_norm(few, 0.5)
    assert (few[0].numpy() == values[:1] / 1e6).all()
