"""Features special to TensorFlow 1."""

import numpy as np
from harness.adapter import Mismatch

from .common import flat
from .prelude import batch_of, built, judged, library, module_of, raised, started
from .small import BERT_PRODUCTS, LAYER_PRODUCTS, RESNET_PRODUCTS, small_bert, small_images


def state(adapter):
    return flat(adapter._run.run(adapter._run.graph.get_collection("variables")))


def check_only_a_step_moves_running_statistics():
    """Running statistics are not part of the loss: a session updates them only on request."""
    adapter = built(small_images(blocks=1))
    before, names = state(adapter), [n for n in adapter._model if "running" in n]
    convolutions = 1 + 3 + 1  # the stem, a block, and the block's shortcut
    # Two in the backward pass for each in the forward pass, but none for the images' gradient.
    assert adapter.matmul_dtypes() == {"float32": 3 * (convolutions + 1) - 1}
    adapter.gradients()
    assert np.array_equal(before, state(adapter)), "looking at the model changed it"
    old = adapter._run.run({name: adapter._model[name] for name in names})
    adapter.step()
    new = adapter._run.run({name: adapter._model[name] for name in names})
    moved = [name for name in names if (old[name] != new[name]).all()]
    assert len(moved) == len(names) == 2 * convolutions
    assert len(adapter.weights()) == 3 * convolutions + 2
    assert not any("running" in n for n in adapter.weights())


def check_products_in_fused_operations_are_counted():
    for model_config, count in ((small_bert(), BERT_PRODUCTS), (small_images(), RESNET_PRODUCTS)):
        assert built(model_config, mode="inference").matmul_dtypes() == {"float32": count}


def check_an_inference_step_computes_everything_and_fetches_nothing():
    adapter = built(small_bert(), mode="inference")
    adapter.step()
    executed = module_of("steps").matmul_dtypes(adapter._executed)
    assert sum(executed.values()) == BERT_PRODUCTS
    first = float(flat(adapter.outputs()).mean())
    assert str(adapter._step()) == "[None]", "the outputs are copied to the host in every step"
    bias = {"pooler.bias": adapter._model["pooler.bias"]}
    module_of("steps").load(bias, {"pooler.bias": np.ones(32, "float32")}, adapter._run)
    before = adapter.read(adapter._outputs)
    assert np.isclose(before, first, rtol=1e-6)
    assert adapter.read(adapter.step()) != before, "the step did not compute its outputs anew"
    expected = adapter._run.run(adapter._logits)
    assert all(np.array_equal(*pair) for pair in zip(adapter.outputs(), expected))


def check_xla_compiles_all_products_of_the_step():
    def losses(compiler):
        adapter = built(small_bert(layers=1), compiler=compiler)
        return adapter, [adapter.read(adapter.step()) for _ in range(3)]

    _, plain = losses("none")
    adapter, compiled = losses("xla")
    assert np.allclose(compiled, plain, rtol=1e-5)
    assert adapter.matmul_dtypes() == {"float32": 3 * (BERT_PRODUCTS - LAYER_PRODUCTS)}
    # A layer, embeddings and heads, forward and backward.
    assert adapter.compiled()["clusters"] >= 6
    assert adapter.settings()["grappler_remapping"] is False


def check_compiled_raises_where_xla_left_something_out():
    adapter = started(small_bert(), mode="inference", compiler="xla")
    jit_scope, scopes = library().xla.experimental.jit_scope, []

    def reason(without):
        def scope():
            scopes.append(without(len(scopes)))
            return jit_scope(compile_ops=not scopes[-1])

        module_of("steps").scope = lambda compiler: scope
        adapter.build(batch_of(adapter.model_config))
        adapter.step()
        return raised(Mismatch, adapter.compiled)

    assert "0 clusters" in reason(lambda number: True)
    assert "MatMul" in reason(lambda number: number == 5), "a layer was left out"


def check_memory_that_ran_out_is_distinguished_from_other_errors():
    adapter = started(small_bert())
    tf = library()

    def judge(action):
        return judged(adapter, lambda: tf.Session(config=adapter._config).run(action()))

    assert judge(lambda: tf.random.uniform([1 << 46]))
    assert adapter.out_of_memory(MemoryError())
    assert not judge(lambda: tf.io.read_file("/no/such/file"))
