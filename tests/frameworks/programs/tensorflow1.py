"""Programs of TensorFlow 1's tests."""

import numpy as np
from harness.adapter import Mismatch, Unsupported

from .common import flat
from .prelude import batch_of, built, judged, library, module_of, raised, started
from .small import small_bert, small_images


def state(adapter):
    return flat(adapter._run.run(adapter._run.graph.get_collection("variables")))


def nodes(adapter, kind):
    return [op for op in adapter._run.graph.get_operations() if op.type == kind]


def move_statistics():
    adapter = built(small_images(blocks=1))
    before, names = state(adapter), [n for n in adapter._model if "running" in n]
    products = adapter.matmul_dtypes()
    adapter.gradients()
    kept = bool(np.array_equal(before, state(adapter)))
    old = adapter._run.run({name: adapter._model[name] for name in names})
    adapter.step()
    new = adapter._run.run({name: adapter._model[name] for name in names})
    moved = sum(bool((old[name] != new[name]).all()) for name in names)
    return {
        "matmul_dtypes": products,
        "kept": kept,
        "statistics": len(names),
        "moved": moved,
        "trainable": len(adapter.weights()),
        "running": any("running" in n for n in adapter.weights()),
    }


def trace(model_config):
    adapter = built(model_config, mode="inference")
    return {"matmul_dtypes": adapter.matmul_dtypes()}


def infer():
    adapter = built(small_bert(), mode="inference")
    adapter.step()
    executed = module_of("matmuls").matmul_dtypes(adapter._executed)
    first, fetched = adapter.outputs(), adapter._step()
    bias = {"pooler.bias": adapter._model["pooler.bias"]}
    module_of("variables").load(bias, {"pooler.bias": np.ones(32, "float32")}, adapter._run)
    before = adapter.read(adapter._outputs)
    after = adapter.read(adapter.step())
    expected = adapter._run.run(adapter._logits)
    return {
        "executed": sum(executed.values()),
        "fetched": str(fetched),
        "before": before,
        "after": after,
        "first": float(np.concatenate([array.ravel() for array in first]).mean()),
        "right": all(np.array_equal(*pair) for pair in zip(adapter.outputs(), expected)),
    }


def refuse_amp(mode):
    adapter = started(small_bert(layers=0), mode=mode, precision="amp")
    reason = raised(Unsupported, lambda: adapter.build(batch_of(adapter.model_config)))
    matmuls = {"float16": 1, "float32": 1}
    require = module_of("devices").require_halves
    return {"reason": reason, "rewritten": raised(Unsupported, lambda: require(matmuls))}


def compile_all():
    def losses(compiler):
        adapter = built(small_bert(layers=1), compiler=compiler)
        return adapter, [adapter.read(adapter.step()) for _ in range(3)]

    _, plain = losses("none")
    adapter, compiled = losses("xla")
    return {
        "plain": plain,
        "compiled": compiled,
        "proof": adapter.compiled(),
        "matmul_dtypes": adapter.matmul_dtypes(),
        "remapping": adapter.settings()["grappler_remapping"],
    }


def compile_parts():
    adapter = started(small_bert(), mode="inference", compiler="xla")
    jit_scope, scopes = library().xla.experimental.jit_scope, []

    def reason(without):
        def scope():
            scopes.append(without(len(scopes)))
            return jit_scope(compile_ops=not scopes[-1])

        module_of("compiler").scope = lambda compiler: scope
        adapter.build(batch_of(adapter.model_config))
        adapter.step()
        return raised(Mismatch, adapter.compiled)

    return {"nothing": reason(lambda number: True), "layer": reason(lambda number: number == 5)}


def run_out_of_memory():
    adapter = started(small_bert())
    tf = library()

    def judge(action):
        return judged(adapter, lambda: tf.Session(config=adapter._config).run(action()))

    return {
        "allocation": judge(lambda: tf.random.uniform([1 << 46])),
        "host": adapter.out_of_memory(MemoryError()),
        "missing": judge(lambda: tf.io.read_file("/no/such/file")),
    }
