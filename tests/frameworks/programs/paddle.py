"""Programs of PaddlePaddle's tests."""

import gc
import os

import numpy as np
import paddle
from harness.adapter import Mismatch, Unsupported

from .prelude import NO_GPU, built, judged, raised, started
from .small import model_config_of, small_bert, small_images


def describe_resnet():
    adapter = started(model_config_of("resnet50_v1.5"))
    model = adapter._definition.build(adapter.model_config)
    layers = dict(model.named_sublayers())
    convolutions = {n: m for n, m in layers.items() if isinstance(m, paddle.nn.Conv2D)}
    norms = [m for m in layers.values() if isinstance(m, paddle.nn.BatchNorm2D)]
    trainable = [p for p in model.parameters() if not p.stop_gradient]
    return {
        "parameters": sum(int(p.size) for p in trainable),
        "all": sum(int(p.size) for p in model.parameters()),
        "layers": len(convolutions),
        "biases": sum(m.bias is not None for m in convolutions.values()),
        "strided": sorted(m._kernel_size[0] for m in convolutions.values() if m._stride == [2, 2]),
        "norms": sorted({(m._epsilon, round(m._momentum, 6)) for m in norms}),
        "deviation": float(layers["layer4.2.conv2"].weight.std()),
    }


def follow_rule(model_config):
    """Tell how far two updates are from the rule on the gradients of the adapter."""
    adapter = built(model_config)
    hyper = model_config["hyperparameters"]
    before = adapter.weights()
    moments = {name: [np.zeros(value.shape)] * 2 for name, value in before.items()}
    worst = 0.0
    for number in (1, 2):
        gradients = {n: g.astype("float64") for n, g in adapter.gradients().items()}
        length = np.sqrt(sum((g**2).sum() for g in gradients.values()))
        adapter.step()
        after = adapter.weights()
        for name, g in gradients.items():
            w, (m, v) = before[name].astype("float64"), moments[name]
            if hyper["optimizer"] == "sgd":
                m = hyper["momentum"] * m + g + hyper["weight_decay"] * w
                change = -hyper["learning_rate"] * m
            else:
                g = g * min(1.0, hyper["clip_global_norm"] / length)
                m = hyper["beta1"] * m + (1 - hyper["beta1"]) * g
                v = hyper["beta2"] * v + (1 - hyper["beta2"]) * g**2
                scale = hyper["learning_rate"] / (1 - hyper["beta1"] ** number)
                root = np.sqrt(v / (1 - hyper["beta2"] ** number))
                change = -scale * m / (root + hyper["epsilon"])
                change -= hyper["learning_rate"] * hyper["weight_decay"] * w
            moments[name] = [m, v]
            size = max(np.linalg.norm(change), 1e-3 * np.linalg.norm(w))
            worst = max(worst, float(np.linalg.norm(after[name] - w - change) / size))
        before = after
    return {"worst": worst, "length": float(length)}


def trace(model_config, compiler):
    built(model_config, compiler=compiler)
    expected = paddle.rand([4]).tolist()
    adapter = built(model_config, compiler=compiler)
    fixed = [p.numpy() for p in adapter._model.parameters()]
    counted = adapter.matmul_dtypes()
    return {
        "matmul_dtypes": counted,
        "multiply_adds": sum(matmul.multiply_adds for matmul in adapter.matmuls(True)),
        "kept": all((a == p.numpy()).all() for a, p in zip(fixed, adapter._model.parameters())),
        "random": paddle.rand([4]).tolist() == expected,
        "gradients": sum(p.grad is not None for p in adapter._model.parameters()),
        "first": adapter.read(adapter.step()),
    }


def reason(model_config, mode):
    """Return why mixed precision is refused in a program."""
    options = {"mode": mode, "precision": "amp", "compiler": "to_static"}
    return raised(Unsupported, lambda: built(model_config, **options))


def refuse_programs():
    return {mode: reason(small_bert(), mode) for mode in ("inference", "train")}


def infer_in_bfloat16():
    exact = built(small_bert(), mode="inference").outputs()
    adapter = built(small_bert(), mode="inference", precision="amp", compiler="to_static")
    adapter.step()
    return {
        "matmul_dtypes": adapter.matmul_dtypes(),
        "compiled": adapter.compiled(),
        "weights": sorted({str(p.dtype) for p in adapter._model.parameters()}),
        "difference": max(float(abs(a - b).max()) for a, b in zip(exact, adapter.outputs())),
        "scale": float(abs(exact[0]).max()),
        "training": reason(small_bert(), "train"),
        "normalization": reason(small_images(), "inference"),
    }


def leave_programs():
    adapter = built(small_bert(), mode="inference", compiler="to_static")
    early = raised(Mismatch, adapter.compiled)
    paddle.jit.enable_to_static(False)
    adapter.step()
    disabled = raised(Mismatch, adapter.compiled)
    dynamic = adapter.outputs()
    paddle.jit.enable_to_static(True)
    adapter.step()
    return {
        "early": early,
        "disabled": disabled,
        **adapter.compiled(),
        "same": max(float(abs(a - b).max()) for a, b in zip(dynamic, adapter.outputs())),
    }


def refuse_builds():
    return {
        "cinn": raised(Unsupported, lambda: started(small_bert(), compiler="cinn")),
        "cuda": raised(Unsupported, lambda: started(small_bert(), rank_context=NO_GPU)),
    }


def load_too_little():
    adapter = built(small_images())
    weights = adapter.weights()
    return {
        "shape": weights["layer1.0.conv2.weight"].shape,
        "missing": raised(KeyError, lambda: adapter.load_weights(weights)),
    }


def run_out_of_memory():
    adapter = started(small_bert())
    return {
        "memory": judged(adapter, lambda: paddle.empty([2**50])),
        "shape": judged(adapter, lambda: paddle.ones([2, 3]) @ paddle.ones([2, 3])),
        "program": adapter.out_of_memory(OSError("(ResourceExhausted) Fail to alloc memory")),
    }


def collect_garbage(frozen):
    started(small_bert())
    from framework_under_test import loader

    parent, ended = os.getpid(), []

    class Circle:
        def __init__(self):
            self.itself = self

        def __del__(self):
            ended.append(os.getpid())

    class Samples:
        def __len__(self):
            return 2

        def __getitem__(self, number):
            gc.collect()
            return (np.float32([os.getpid() in ended, os.getpid() == parent]),)

    gc.disable()
    if frozen:
        gc.freeze()
    Circle()
    given = [batch[0].tolist() for batch in loader.batches(Samples(), 1, 1, "cpu")]
    kept = bool(gc.get_freeze_count()) == frozen
    gc.collect()
    return {"given": given, "ended": ended == [parent], "kept": kept}
