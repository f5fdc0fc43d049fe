"""Programs of TensorFlow 1's tests."""

import numpy as np
from harness.adapter import ExecutedMatmul, Mismatch, Unsupported

from .common import flat, optimizer_errors
from .prelude import RANK, batch_of, built, judged, library, module_of, raised, started
from .small import small_bert, small_images


def state(adapter):
    return flat(adapter._run.run(adapter._run.graph.get_collection("variables")))


def nodes(adapter, kind):
    return [op for op in adapter._run.graph.get_operations() if op.type == kind]


def describe_resnet():
    model_config = small_images()
    model_config["hyperparameters"]["batch_norm_epsilon"] = 1e-7
    adapter = built(model_config, mode="inference")
    convolutions = nodes(adapter, "Conv2D")

    def kernel(op):
        return op.inputs[1].shape[0].value

    return {
        "layers": len(convolutions),
        "strided": sorted(kernel(op) for op in convolutions if op.get_attr("strides")[1] == 2),
        "symmetric": all(
            op.get_attr("padding") != b"SAME" or kernel(op) == 1 for op in convolutions
        )
        and all(
            op.get_attr("explicit_paddings") == [0, 0] + [kernel(op) // 2] * 4 + [0, 0]
            for op in convolutions
            if op.get_attr("padding") == b"EXPLICIT"
        ),
        "epsilons": sorted({op.get_attr("epsilon") for op in nodes(adapter, "FusedBatchNormV3")}),
        "fed": len(nodes(adapter, "Placeholder")),
    }


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


def clip_and_decay():
    """Gradients in the optimizer: its first moment holds a tenth of them."""
    model_config = small_bert(layers=0, clip_global_norm=0.01, weight_decay=100.0)
    adapter = started(model_config)
    reached = adapter.all_reduce(RANK + 1.0)  # the harness asks before the model is there
    adapter.build(batch_of(model_config, rank=RANK))
    gradients = flat(adapter.gradients().values())
    adapter.step()
    moments = {
        v.op.name: v
        for v in adapter._run.graph.get_collection("variables")
        if v.op.name.endswith("/Adam")
    }
    names = [variable.op.name for variable in adapter._model.values()]
    seen = flat(adapter._run.run([moments[name + "/Adam"] for name in names])) / 0.1
    answers = {"reached": reached, "gradients": gradients.tolist(), "seen": seen.tolist()}
    adapter.stop()
    return answers


def drop_elements(compiler):
    adapter = started(small_bert(dropout=0.5, layers=0), compiler=compiler)
    adapter.build(batch_of(adapter.model_config))
    answers = {"outputs": [float(flat(adapter.outputs()).sum()) for _ in range(2)]}
    adapter.stop()
    return answers


def trace(model_config):
    adapter = built(model_config, mode="inference")
    return {"matmul_dtypes": adapter.matmul_dtypes()}


def infer():
    adapter = built(small_bert(), mode="inference")
    adapter.step()
    executed = module_of("matmuls").matmuls(adapter._executed)
    first, fetched = adapter.outputs(), adapter._step()
    bias = {"pooler.bias": adapter._model["pooler.bias"]}
    module_of("variables").load(bias, {"pooler.bias": np.ones(32, "float32")}, adapter._run)
    before = adapter.read(adapter._outputs)
    after = adapter.read(adapter.step())
    expected = adapter._run.run(adapter._logits)
    return {
        "executed": len(executed),
        "fetched": str(fetched),
        "before": before,
        "after": after,
        "first": float(np.concatenate([array.ravel() for array in first]).mean()),
        "right": all(np.array_equal(*pair) for pair in zip(adapter.outputs(), expected)),
    }


def refuse_amp(mode):
    adapter = started(small_bert(layers=0), mode=mode, precision="amp")
    reason = raised(Unsupported, lambda: adapter.build(batch_of(adapter.model_config)))
    matmuls = [ExecutedMatmul("float16"), ExecutedMatmul("float32")]
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


def follow_torch():
    def by_tensorflow(hyper, starts, steps):
        with tf.Graph().as_default():
            variable = tf.Variable(starts[0].astype("float32"), use_resource=True)
            gradient = tf.placeholder(tf.float32, [20])
            rate = tf.Variable(hyper["learning_rate"], trainable=False, use_resource=True)
            optimizer = optimizers.from_model_config({"hyperparameters": hyper}, rate, {})
            update = optimizer.apply_gradients([(gradient, variable)])
            session = tf.Session(config=adapter._config)
            session.run(tf.global_variables_initializer())
            for (value,) in steps:
                session.run(update, {gradient: value})
            return [session.run(variable)]

    adapter = started(small_bert())
    tf, optimizers = library(), module_of("optimizers")
    return optimizer_errors(by_tensorflow)
