"""Users' models: the documented files are valid, and a verification finds mistakes in them."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from framebench.environments import uv

from ..bench import Bench
from ..conftest import ROOT, build_environment
from .comparing import beyond, in_one_process
from .fork_server import ForkServer, served

DOCUMENT = "docs/own-model.md"
FRAMEWORKS = ("jax", "mindspore", "pytorch", "tensorflow")
#: Compares one started adapter with float64 for each of CASES.
COMPARE = """
import os
from types import SimpleNamespace
from harness.kind import Context, Workload
from harness.measuring.verification import float64_run
from harness.request.own_model import model_config
errors, refused = {}, {}
for path, mode, precision in CASES:
    adapter = started(model_config(path), mode, precision, COMPILER, batch=8)
    workload = Workload(adapter.case, adapter.model_config, {}, 1, None, 1)
    report = SimpleNamespace(enter=print, fields={})
    context = Context(workload, adapter.rank_context, adapter, [], report)
    key = f"{os.path.basename(path)}, {mode}, {precision}"
    try:
        errors[key] = [precision, float64_run.compare(context)]
    except (Mismatch, Unsupported, TypeError) as error:
        refused[key] = str(error)
answer(errors=errors, refused=refused, batch=report.fields.get("batch_checksum"))
"""
#: Changes of the documented file, by framework and file name.
MISTAKES: dict[str, dict[str, tuple[str, str]]] = {
    "pytorch": {
        "half.py": ("nn.ReLU(),", "Half(),"),
        "gradient.py": ("nn.ReLU(),", "Doubled(),"),
        "update.py": ("lr=1e-3", "lr=1e-3 if next(parameters).dtype == torch.float64 else 0"),
        "random.py": ("nn.ReLU(),", "Noise(),"),
        "words.py": ("nn.Linear(64, 10)", "nn.Linear(64, 10), Words()"),
        "fewer.py": ("randn(batch_size", "randn(batch_size // 2"),
        "parts.py": ("(inputs, targets), nn", "inputs, nn"),
        "model.py": ("return model,", "return model.forward,"),
        "inputs.py": ("(inputs, targets), nn", "(None, targets), nn"),
        "loss.py": ("nn.CrossEntropyLoss()", "None"),
        "losses.py": ("nn.CrossEntropyLoss()", "nn.CrossEntropyLoss(reduction='none')"),
        "optimizer.py": ("return torch.optim.AdamW", "torch.optim.AdamW"),
        "frozen.py": ("return model,", "return model.requires_grad_(False),"),
        "zero.py": ("nn.CrossEntropyLoss()", "lambda *of: 0.0 * nn.CrossEntropyLoss()(*of)"),
    },
    "jax": {
        "half.py": ('"hidden"])', '"hidden"]).astype("float16").astype(inputs.dtype)'),
        "model.py": ("}, apply), (inputs", "}), (inputs"),
        "inputs.py": ("(inputs, targets), loss", "((), targets), loss"),
        "optimizer.py": ("def apply", "def optimizer():\n    pass\n\n\ndef apply"),
        "zero.py": ("targets).mean()", "targets).mean() * 0.0"),
        "outputs.py": ("return jax.nn.relu(", "return 0.0 * jax.nn.relu("),
    },
    "mindspore": {
        "half.py": ("nn.ReLU(),", "Half(),"),
        "gradient.py": ("nn.ReLU(),", "Doubled(),"),
        "update.py": ("=1e-3", "=1e-3 if parameters[0].dtype == mindspore.float64 else 1e-9"),
        "random.py": ("nn.ReLU(),", "Noise(),"),
        "words.py": ("nn.Dense(64, 10)", "nn.Dense(64, 10), Words()"),
        "model.py": ("return model,", "return model.construct,"),
        "losses.py": ("nn.CrossEntropyLoss()", "nn.CrossEntropyLoss(reduction='none')"),
        "optimizer.py": ("return nn.AdamWeightDecay", "nn.AdamWeightDecay"),
        "frozen.py": ("return model,", "return frozen(model),"),
        "narrow.py": ("nn.ReLU(),", "nn.ReLU6(),"),
        "recurrent.py": ("nn.ReLU(),", "Recurrent(),"),
    },
    "tensorflow": {
        "half.py": ("layers.BatchNormalization(),", "layers.Lambda(half),"),
        "inputs.py": ("(inputs, targets), keras", "((), targets), keras"),
        "optimizer.py": ("def make", "def optimizer():\n    pass\n\n\ndef make"),
    },
}
#: Changes of the documented file that leave it right, by framework.
NESTED = {
    "pytorch": (
        "return model, (inputs, targets), nn.CrossEntropyLoss()",
        "return Named(model), ({'x': inputs, 'no': None}, targets), loss",
    ),
    "jax": (
        'parameters["out"]\n\n\ndef loss(outputs, targets):\n',
        'parameters["out"], {"two": inputs}\n\n\n'
        "def loss(outputs, targets):\n    outputs, _ = outputs\n",
    ),
    "mindspore": (
        "return model, (inputs, targets), nn.CrossEntropyLoss()",
        "return Named(model), ({'no': None, 'x': inputs}, {'classes': targets}), loss",
    ),
    "tensorflow": (
        "return model, (inputs, targets), keras.losses.SparseCategoricalCrossentropy("
        "from_logits=True)",
        "return Named(model), ({'x': inputs}, [targets]), loss",
    ),
}
#: Changed files that are refused, with the reason.
REFUSED = {
    "random.py": "it draws random numbers",
    "words.py": " without a tensor; allowed: a tensor, or tuples, lists",
    "fewer.py": "make was asked for 8 samples; its inputs have the shape (4, 32)",
    "parts.py": "make must return model, (inputs, targets), loss",
    "model.py": " as the model, not ",
    "inputs.py": " as the inputs; allowed: an array whose first axis is the batch, or several",
    "loss.py": "make returned NoneType as the loss, not a function",
    "losses.py": "the loss must be a tensor with one number",
    "optimizer.py": "optimizer returned NoneType; allowed: one of ",
    "frozen.py": "make returned a model without a parameter that is trained",
    "zero.py": "all gradients of the model are zero",
    "narrow.py": "no float64 run to compare with: For primitive[ReLU6], the input argument",
    "recurrent.py": "no float64 run to compare with: gradients of LSTM are wrong in it",
    "outputs.py": "all outputs of the model are zero",
}
#: Definitions that the changed files use.
MORE = {
    "pytorch": """

import collections
import dataclasses


class Half(nn.Module):
    def forward(self, x):
        return torch.relu(x).half().to(x.dtype)


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x

    @staticmethod
    def backward(context, gradient):
        return gradient * (1 if gradient.dtype == torch.float64 else 2)


class Doubled(nn.Module):
    def forward(self, x):
        return Twice.apply(torch.relu(x))


@dataclasses.dataclass
class ModelOutput(collections.OrderedDict):
    loss: torch.Tensor
    logits: dict
    cache: object = None


class Named(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x, no):
        logits = self.model(x)
        return ModelOutput(logits.square().mean(), {"classes": logits}, object())


def loss(outputs, targets):
    assert outputs.loss.dtype in (torch.float32, torch.float64)
    return outputs.loss + nn.functional.cross_entropy(outputs.logits["classes"], targets)


class Words(nn.Module):
    def forward(self, x):
        return {"logits": "none"}


class Noise(nn.Module):
    def forward(self, x):
        return nn.functional.dropout(torch.relu(x), 0.5)
""",
    "mindspore": """


class Half(nn.Cell):
    def construct(self, x):
        return ops.relu(x).astype(mindspore.float16).astype(x.dtype)


class Doubled(nn.Cell):
    def construct(self, x):
        return ops.relu(x)

    def bprop(self, x, out, dout):
        times = 1 if x.dtype == mindspore.float64 else 2
        return (times * ops.where(x > 0, dout, ops.zeros_like(dout)),)


class Noise(nn.Cell):
    def construct(self, x):
        return ops.dropout(ops.relu(x), 0.5)


class Recurrent(nn.Cell):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(64, 64, batch_first=True)

    def construct(self, x):
        return self.lstm(x[:, None])[0][:, 0]


class Words(nn.Cell):
    def construct(self, x):
        return {"logits": "none"}


class Named(nn.Cell):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def construct(self, x, no=None):
        logits = self.model(x)
        return {"logits": [logits], "norm": logits.square().mean()}


def loss(outputs, targets):
    return outputs["norm"] + ops.cross_entropy(outputs["logits"][0], targets["classes"])


def frozen(model):
    for parameter in model.get_parameters():
        parameter.requires_grad = False
    return model
""",
    "tensorflow": """

def half(x):
    return tf.cast(tf.cast(x, tf.float16), x.dtype)


class Named(keras.Model):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def call(self, inputs, training=None):
        logits = self.model(inputs["x"], training=training)
        return {"logits": [logits], "norm": tf.reduce_mean(tf.square(logits))}


def loss(targets, outputs):
    assert outputs["norm"].dtype in (tf.float32, tf.float64)
    crossed = keras.losses.sparse_categorical_crossentropy(
        targets[0], outputs["logits"][0], from_logits=True
    )
    return tf.reduce_mean(crossed) + outputs["norm"]
""",
}


def example(framework: str) -> str:
    """Return the documented file of a framework."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / DOCUMENT).read_text(), re.DOTALL)
    (found,) = [block for block in blocks if f'FRAMEWORK = "{framework}"' in block]
    return found.replace("512", "64").replace("784", "32")


def written(folder: Path, framework: str, name: str = "good.py", *change: str) -> str:
    text = example(framework) + MORE.get(framework, "")
    path = folder / name
    path.write_text(text.replace(*change) if change else text)
    assert not change or path.read_text() != text, f"{change[0]} is nowhere in {DOCUMENT}"
    return str(path)


run = served(*FRAMEWORKS)


def compared(
    run: ForkServer,
    cases: list[tuple[str, str, str]],
    ranks: int = 1,
    before: str = "",
    compiler: str = "",
) -> list[dict[str, Any]]:
    before += in_one_process(run.framework)
    script = before + COMPARE.replace("CASES", repr(cases))
    compiler = compiler or {"jax": "jit"}.get(run.framework, "none")  # as its users run it
    return run(script.replace("COMPILER", repr(compiler)), ranks)


def test_a_file_as_short_as_is_said_is_verified_and_what_is_wrong_with_one_is_found(
    run: ForkServer, tmp_path: Path
) -> None:
    framework = run.framework
    assert len(example(framework).splitlines()) <= 25
    good = written(tmp_path, framework)
    cases = [(good, "train", "fp32"), (good, "inference", "fp32")]
    cases += [] if framework in ("jax", "mindspore") else [(good, "train", "amp")]
    if framework in NESTED:
        nested = written(tmp_path, framework, "nested_good.py", *NESTED[framework])
        cases += [(nested, mode, "fp32") for mode in ("train", "inference")]
        cases += [(nested, "train", "bf16")] if framework == "pytorch" else []
    for name, change in MISTAKES[framework].items():
        mode = "inference" if name == "outputs.py" else "train"
        cases.append((written(tmp_path, framework, name, *change), mode, "fp32"))
    (found,) = compared(run, cases)
    refused = {name.partition(",")[0]: reason for name, reason in found["refused"].items()}
    assert set(refused) == set(REFUSED) & set(MISTAKES[framework])
    assert all(REFUSED[name] in reason for name, reason in refused.items())
    wrong = {name: beyond({name: errors}) for name, errors in found["errors"].items()}
    assert not {name: own for name, own in wrong.items() if own and "good.py" in name}
    quantities = {one["quantity"] for one in found["errors"]["good.py, train, fp32"][1]}
    assert quantities >= {"float64 run", "outputs", "gradients", "loss", "first update"}
    outputs = next(
        one for one in found["errors"]["good.py, train, fp32"][1] if one["quantity"] == "outputs"
    )
    assert 0 < outputs["rounding"] <= outputs["error"] < 1e-4, "the raw error is not shown"
    found_in = {name.partition(",")[0]: {one[1] for one in own} for name, own in wrong.items()}
    assert "float64 run" in found_in["half.py"]
    if framework in ("pytorch", "mindspore"):
        assert found_in["gradient.py"] >= {"gradients", "gradients, total"}
        assert found_in["update.py"] == {"first update", "first update, total"}


@pytest.mark.parametrize("run", ["mindspore"], indirect=True)
def test_graphs_of_mindspore_compute_the_model(run: ForkServer, tmp_path: Path) -> None:
    path = written(tmp_path, run.framework, "nested_good.py", *NESTED["mindspore"])
    (found,) = compared(run, [(path, "train", "fp32")], compiler="jit")
    assert found["errors"]
    assert not beyond(found["errors"])


@pytest.mark.parametrize("run", ["mindspore", "pytorch", "tensorflow"], indirect=True)
def test_two_devices_have_the_mean_of_their_gradients_and_batches_of_their_own(
    run: ForkServer, tmp_path: Path
) -> None:
    if run.framework == "pytorch":
        path = written(tmp_path, run.framework, "same.py", "torch.randn(", "torch.ones(")
        text = Path(path).read_text()
        Path(path).write_text(text.replace("torch.randint(10, ", "torch.ones(dtype=int, size="))
        first, second = compared(run, [(path, "train", "fp32")], ranks=2)
        assert first["batch"] == second["batch"], "the harness refuses equal batches"
    else:  # there Keras also divides the loss by the ranks
        good = written(tmp_path, run.framework)
        first, second = compared(run, [(good, "train", "fp32")], ranks=2)
        assert first["batch"] != second["batch"]
        for found in (first, second):
            assert found["errors"]
            assert not beyond(found["errors"])


def test_a_run_is_of_the_file_as_it_was(tmp_path: Path) -> None:
    python, framework = build_environment("pytorch"), ROOT / "scripts" / "frameworks" / "pytorch"
    path = written(tmp_path, "pytorch")
    bench = Bench(tmp_path, python)
    record = bench.run(framework=framework, model=path, precision="amp").record
    assert record["status"] == "ok", record["reason"]
    content = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    assert record["own_model"] == {"framework": "pytorch", "source": path, "sha256": content}
    assert record["case"]["model"] == f"good@{content[:8]}"
    assert record["samples"] == 4 * 5
    assert record["metrics"]["throughput"]["unit"] == "samples/s"
    assert record["ranks"][0]["trainable_parameters"] == 32 * 64 + 64 + 64 * 10 + 10
    assert record["ranks"][0]["matmul_dtypes"] == {"bfloat16": 2}
    work = {
        "multiply_adds": 32 * 64 + 64 * 10,
        "tokens": None,
        "read_parameters": record["ranks"][0]["trainable_parameters"],
    }
    assert record["ranks"][0]["sample_work"] == work
    assert path in record["command"]
    bench.output.unlink()
    other = bench.run(framework=framework.with_name("jax"), model=path).record
    assert other["status"] == "unsupported"
    assert "is a model of pytorch, not of jax" in other["reason"]
    bench.output.unlink()
    cut = bench.run(framework=framework, model=path, accumulation=2).record
    assert cut["status"] == "unsupported"
    assert cut["reason"].endswith("makes its batch itself, on the device: no accumulation 2")
    bench.assert_nothing_left()


#: A model with two inputs, dropout in a cell, a penalty of 100 and a head that its loss leaves out.
OF_KERAS = """
import keras
import tensorflow as tf

FRAMEWORK = "tensorflow"

def make(batch_size):
    layers = keras.layers
    words, more = keras.Input((6,), dtype="int32", name="words"), keras.Input((8,), name="more")
    x = layers.GRU(8, dropout=0.5)(layers.Embedding(50, 8)(words))
    x = layers.Dense(1, kernel_initializer="ones", kernel_regularizer=keras.regularizers.L2(12.5))(
        layers.Add()([x, more]))
    model = keras.Model({"words": words, "more": more}, {"value": x, "other": layers.Dense(2)(x)})
    inputs = {"words": tf.random.uniform((batch_size, 6), maxval=50, dtype=tf.int32),
              "more": tf.random.normal((batch_size, 8))}
    return model, (inputs, tf.random.normal((batch_size, 1))), loss

def loss(targets, outputs):
    return tf.reduce_mean(tf.tanh(tf.square(outputs["value"] - targets)))
"""


@pytest.mark.parametrize("run", ["tensorflow"], indirect=True)
def test_models_of_keras_have_penalties_and_parts_without_a_gradient(
    run: ForkServer, tmp_path: Path
) -> None:
    path = tmp_path / "two.py"
    path.write_text(OF_KERAS)
    (found,) = compared(run, [(str(path), mode, "fp32") for mode in ("train", "inference")])
    assert found["refused"] == {}
    assert not beyond(found["errors"])
    script = in_one_process(run.framework) + STEPS.replace("PATH", repr(str(path)))
    (found,) = run(script + "answer(losses=stepped('none', 1)[1])")
    assert 100 < found["losses"][0] <= 101


#: Layers whose products are not matrices by matrices.
PRODUCTS = """
import keras
import tensorflow as tf

FRAMEWORK = "tensorflow"

def make(batch_size):
    layers = keras.layers
    image = keras.Input((4, 4, 4, 3))
    x = layers.Conv3D(5, 2, use_bias=False)(image)
    x = layers.Conv2DTranspose(6, 2, strides=2, use_bias=False)(layers.Reshape((9, 3, 5))(x))
    x = layers.Lambda(lambda x: tf.einsum("bhwc,bhwd->bcd", x, x))(x)
    model = keras.Model(image, x)
    return model, (tf.random.normal((batch_size, 4, 4, 4, 3)), tf.zeros(())), loss

def loss(targets, outputs):
    return tf.reduce_mean(outputs)
"""


@pytest.mark.parametrize("run", ["tensorflow"], indirect=True)
def test_products_of_other_layers_of_keras_are_counted(run: ForkServer, tmp_path: Path) -> None:
    path = tmp_path / "products.py"
    path.write_text(PRODUCTS)
    script = f"""
from harness.measuring.model import seed_of_batch
from harness.request.own_model import model_config
adapter = started(model_config({str(path)!r}), mode="inference", batch=2)
adapter.build(seed_of_batch(1, 0))
answer(counted=sum(one.multiply_adds for one in adapter.matmuls(True)))
"""
    (found,) = run(in_one_process(run.framework) + script)
    assert found["counted"] == 2 * (27 * 5 * 8 * 3 + 27 * 5 * 4 * 6 + 18 * 6 * 6 * 6)


@pytest.mark.parametrize("run", ["tensorflow"], indirect=True)
def test_models_of_keras_are_built_by_name(run: ForkServer) -> None:
    script = """
from harness.measuring.model import seed_of_batch
from harness.request import own_imports
from harness.request.own_model import NotAModel, model_config
own_imports.check("keras:MobileNetV2")
adapter = started(model_config("keras:MobileNetV2"), mode="inference", batch=1)
adapter.build(seed_of_batch(1, 0))
(logits,) = adapter.outputs()
answer(parameters=int(adapter.trainable_parameters()), shape=logits.shape,
       reason=raised(NotAModel, lambda: own_imports.check("keras:MobileNet9")))
"""
    (found,) = run(in_one_process(run.framework) + script)
    assert found["parameters"] == 3_504_872
    assert found["shape"] == [1, 1000]
    assert "'keras:MobileNet9' (did you mean MobileNet" in found["reason"]


@pytest.mark.parametrize("run", ["pytorch"], indirect=True)
def test_models_of_libraries_are_built_by_name(run: ForkServer) -> None:
    script = """
from harness.measuring.model import seed_of_batch
from harness.request.own_model import model_config
facts = model_config("torchvision:squeezenet1_1")
adapter = started(facts, mode="inference", batch=1)
adapter.build(seed_of_batch(1, 0))
adapter.step()
answer(name=facts["name"], source=facts["own"]["source"],
       parameters=int(adapter.trainable_parameters()),
       reason=raised(Unsupported, lambda: started(model_config("timm:resnet18"))))
"""
    (found,) = run(in_one_process(run.framework) + script)
    assert found["name"] == found["source"] == "torchvision:squeezenet1_1"
    assert found["parameters"] == 1_235_496
    assert found["reason"] == "timm is not installed in this environment"


#: A library with the functions of transformers that a model of it needs.
TRANSFORMERS = """
import collections, dataclasses
import torch
from torch import nn

class Config:
    def __init__(self, **values):
        given = dict(hidden_size=8, vocab_size=50, dropout=0.5, pad_token_id=None)
        vars(self).update({**given, "is_encoder_decoder": False, **values})
    from_dict = classmethod(lambda kind, values: kind(**values))
    def get_text_config(self):
        return self

class TwoConfig(Config):
    max_target_positions = 20
    vision_config = Config(image_size=12)

class TinyForSequenceClassification(nn.Module):
    config_class, main_input_name = Config, "input_ids"
    def __init__(self, config):
        super().__init__()
        self.config, self.embed = config, nn.Embedding(config.vocab_size, config.hidden_size)
        self.head = nn.Linear(config.hidden_size, 3)
    def set_experts_implementation(self, name):
        self.experts = name
    def forward(self, input_ids, labels=None):
        assert self.config.pad_token_id == 0
        if self.head.weight.dtype == torch.float64:
            assert self.experts == "eager"
        x = nn.functional.dropout(self.embed(input_ids).mean(1), self.config.dropout)
        logits = self.head(x)
        loss = None if labels is None else nn.functional.cross_entropy(logits, labels)
        return Output(loss, logits)

@dataclasses.dataclass
class Output(collections.OrderedDict):
    loss: object
    logits: object

class TinyModel(TinyForSequenceClassification):
    main_input_name = "bbox"

class TinyForCTC(TinyForSequenceClassification):
    pass

class TinyTwo(TinyForSequenceClassification):
    config_class = TwoConfig
    def get_text_features(self):
        pass
    def forward(self, input_ids=None, pixel_values=None):
        assert input_ids.shape[1] == 20
        assert pixel_values.shape[1:] == (3, 12, 12)
        of_images = pixel_values.mean((1, 2, 3))[:, None]
        return Output(None, self.head(self.embed(input_ids)).sum(1) * of_images)
"""


@pytest.mark.parametrize("run", ["pytorch"], indirect=True)
def test_models_of_transformers_get_the_inputs_of_their_class(
    run: ForkServer, tmp_path: Path
) -> None:
    (tmp_path / "transformers.py").write_text(TRANSFORMERS)
    folder = tmp_path / "mine"
    folder.mkdir()
    values = {"architectures": ["TinyForSequenceClassification"], "hidden_size": 16}
    (folder / "config.json").write_text(json.dumps(values))
    cases = [(str(folder), mode, "fp32") for mode in ("train", "inference")]
    cases += [(f"transformers:Tiny{name}", "train", "fp32") for name in ("ForCTC", "Model")]
    cases.append(("transformers:TinyTwo", "inference", "fp32"))
    (found,) = compared(run, cases, before=f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n")
    measured = {f"mine, {mode}, fp32" for mode in ("train", "inference")}
    assert {*found["errors"]} == {*measured, "transformers:TinyTwo, inference, fp32"}
    assert not beyond(found["errors"])
    quantities = {one["quantity"] for one in found["errors"]["mine, train, fp32"][1]}
    assert quantities >= {"outputs", "gradients", "loss", "first update"}
    refused = found["refused"]
    assert "computes no loss from one label" in refused["transformers:TinyForCTC, train, fp32"]
    assert "takes bbox, whose shape" in refused["transformers:TinyModel, train, fp32"]


#: Flax and what it imports.
FLAX = ("flax==0.12.12", "msgpack", "rich", "PyYAML", "typing_extensions", "treescope")
OF_FLAX = """
import jax
import optax
from flax import linen, nnx

FRAMEWORK = "jax"
KIND = "linen"

class Linen(linen.Module):
    @linen.compact
    def __call__(self, x, train):
        x = linen.BatchNorm(use_running_average=not train, momentum=0.9)(x)
        return linen.Dense(10)(linen.Dropout(0.5, deterministic=not train)(x))

class Nnx(nnx.Module):
    def __init__(self, rngs):
        self.norm = nnx.BatchNorm(32, momentum=0.9, rngs=rngs)
        self.dropout = nnx.Dropout(0.5, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(
            2, 32, dropout_rate=0.5, decode=False, rngs=rngs)
        self.out = nnx.Linear(32, 10, rngs=rngs)

    def __call__(self, x):
        x = self.dropout(self.norm(x))
        return self.out(x + self.attention(x[:, None])[:, 0])

def loss(outputs, targets):
    return optax.softmax_cross_entropy_with_integer_labels(outputs, targets).mean()

def make(batch_size, key):
    model = Linen() if KIND == "linen" else Nnx(nnx.Rngs(key))
    inputs = 1 + jax.random.normal(key, (batch_size, 32))
    return model, ({"x": inputs}, jax.random.randint(key, (batch_size,), 0, 10)), loss
"""
#: Outputs in training, of which each draws other masks, and the running mean after two steps.
OF_STEPS = """
from harness.measuring.model import seed_of_batch
adapter = started(model_config(CASES[0][0]), compiler="jit", batch=8)
adapter.build(seed_of_batch(1, 0))
losses = [adapter.read(adapter.step()) for _ in range(2)]
(mean,) = [array for name, array in adapter.statistics().items() if "mean" in name]
answer(losses=losses, mean=float(mean.mean()))
"""


@pytest.fixture(scope="session")
def flax(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install Flax for JAX's environment, without what only its checkpoints import."""
    settings, folder = uv.pip_settings(), tmp_path_factory.mktemp("flax")
    words = ["pip", "install", "-q", "--python", build_environment("jax"), "--target", str(folder)]
    subprocess.run(
        [uv.executable(), *words, "--no-deps", *uv.arguments(settings), *FLAX],
        check=True,
        env={**os.environ, **uv.variables(settings)},
    )
    return folder


@pytest.mark.parametrize("run", ["jax"], indirect=True)
@pytest.mark.parametrize("kind", ["linen", "nnx"])
def test_modules_of_flax_have_modes_dropout_and_running_statistics(
    run: ForkServer, tmp_path: Path, flax: Path, kind: str
) -> None:
    path = tmp_path / "net.py"
    path.write_text(OF_FLAX.replace('KIND = "linen"', f"KIND = {kind!r}"))
    before = f"import sys; sys.path.append({str(flax)!r})\n"
    cases = [(str(path), mode, "fp32") for mode in ("train", "inference")]
    (found,) = compared(run, cases, before=before)
    assert found["refused"] == {}
    assert not beyond(found["errors"])
    quantities = {one["quantity"] for one in found["errors"]["net.py, train, fp32"][1]}
    assert quantities >= {"outputs", "gradients", "first update", "running statistics"}
    script = in_one_process(run.framework) + before
    script += "from harness.request.own_model import model_config\n"
    (stepped,) = run(script + OF_STEPS.replace("CASES[0][0]", repr(str(path))))
    assert stepped["losses"][0] != stepped["losses"][1]
    assert 0.15 < stepped["mean"] < 0.25, "0.1 of a mean of 1, and 0.1 of the rest"


#: A model some of whose layers have no gradient in some steps, and shapes from its first pass; with
#: a compiler, a graph break and a recompilation in each step.
CHANGING = """
import torch
from torch import nn

FRAMEWORK = "pytorch"

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.steps = nn.LazyLinear(8), 0
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(3))

    def forward(self, x):
        self.steps += 1
        x = self.first(x)
        torch._dynamo.graph_break()
        for number, layer in enumerate(self.layers):
            x = x if number == self.steps % 3 else layer(x)
        return x

def make(batch_size):
    batch = torch.randn(batch_size, 8), torch.randint(8, (batch_size,))
    return Net(), batch, nn.CrossEntropyLoss()
"""
STEPS = """
from harness.measuring.model import seed_of_batch
from harness.request.own_model import model_config
def stepped(compiler, steps):
    adapter = started(model_config(PATH), compiler=compiler)
    adapter.build(seed_of_batch(1, adapter.rank_context.rank))
    return adapter, [adapter.read(adapter.step()) for _ in range(steps)]
"""
#: Dynamo without Inductor, whose code takes long to compile.
EAGER = """
import torch, torch._dynamo, torch._inductor.metrics
compile_of = torch.nn.Module.compile
torch.nn.Module.compile = lambda model, backend, mode, **more: compile_of(
    model, backend="eager", **more
)
torch._inductor.metrics.generated_kernel_count = 1
adapter, losses = stepped("inductor", 2)
before = adapter.recompilations()
adapter.step()
answer(counts=adapter.compiled(), reasons=adapter.recompilations()[len(before):],
       refused=raised(Exception, lambda: stepped("inductor:fullgraph", 1)))
"""


@pytest.mark.parametrize("run", ["pytorch"], indirect=True)
@pytest.mark.parametrize("ranks", [1, 2])
def test_layers_may_be_lazy_and_left_out_of_steps(
    run: ForkServer, tmp_path: Path, ranks: int
) -> None:
    path = tmp_path / "changing.py"
    path.write_text(CHANGING)
    script = in_one_process(run.framework) + STEPS.replace("PATH", repr(str(path)))
    for found in run(script + "answer(losses=stepped('none', 4)[1])", ranks):
        assert len({*found["losses"]}) == 4


#: A model with sparse gradients, complex weights, matmuls and outputs.
SPECTRAL = """
import torch
from torch import nn

FRAMEWORK = "pytorch"

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(50, 16, sparse=True)
        self.mix = nn.Parameter(0.1 * torch.randn(9, 9, dtype=torch.complex64))
        self.head = nn.Linear(16, 4)

    def forward(self, tokens):
        spectrum = torch.fft.rfft(self.table(tokens).mean(1)) @ self.mix
        return self.head(torch.fft.irfft(spectrum)), spectrum

def loss(outputs, targets):
    logits, spectrum = outputs
    return nn.functional.cross_entropy(logits, targets) + spectrum.abs().square().mean()

def make(batch_size):
    batch = torch.randint(50, (batch_size, 6)), torch.randint(4, (batch_size,))
    return Net(), batch, loss
"""


@pytest.mark.parametrize("run", ["pytorch"], indirect=True)
def test_gradients_may_be_sparse_and_weights_complex(run: ForkServer, tmp_path: Path) -> None:
    path = tmp_path / "spectral.py"
    path.write_text(SPECTRAL)
    (found,) = compared(run, [(str(path), mode, "fp32") for mode in ("train", "inference")])
    assert found["refused"] == {}
    assert not beyond(found["errors"])
    wrong = tmp_path / "wrong.py"
    halved = "if self.mix.dtype == torch.complex64: spectrum = spectrum.real + 0j"
    wrong.write_text(
        SPECTRAL.replace("        return self.head", f"        {halved}\n        return self.head")
    )
    (found,) = compared(run, [(str(wrong), "train", "fp32")])
    assert {"outputs", "gradients"} <= {one[1] for one in beyond(found["errors"])}


#: A mixture of experts as one kernel, with 6 rows of 8 numbers and matrices of 8 x 16.
EXPERTS = """
import torch
from torch import nn

FRAMEWORK = "pytorch"

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.experts = nn.Parameter(torch.randn(2, 8, 16))

    def forward(self, x):
        ends = torch.tensor([2, len(x)], dtype=torch.int32)
        return torch.nn.functional.grouped_mm(x, self.experts, offs=ends)

def make(batch_size):
    return Net(), (torch.randn(batch_size, 8), ()), lambda outputs, _: outputs.square().mean()
"""


@pytest.mark.parametrize("run", ["pytorch"], indirect=True)
def test_products_of_experts_are_counted(run: ForkServer, tmp_path: Path) -> None:
    path = tmp_path / "experts.py"
    path.write_text(EXPERTS)
    script = (
        in_one_process(run.framework)
        + f"""
from harness.measuring.model import seed_of_batch
from harness.request.own_model import model_config
adapter = started(model_config({str(path)!r}), mode="inference", batch=6)
adapter.build(seed_of_batch(1, 0))
answer(found=[(one.dtype, one.multiply_adds) for one in adapter.matmuls(True)])
"""
    )
    (found,) = run(script)
    assert found["found"] == [["float32", 6 * 8 * 16]]


@pytest.mark.parametrize("run", ["pytorch"], indirect=True)
def test_graph_breaks_and_recompilations_are_counted_and_named(
    run: ForkServer, tmp_path: Path
) -> None:
    path = tmp_path / "changing.py"
    path.write_text(CHANGING)
    script = in_one_process(run.framework) + STEPS.replace("PATH", repr(str(path)))
    (found,) = run(script + EAGER)
    assert found["counts"]["graph_breaks"] == 1
    assert found["counts"]["breaks"] == ["changing.py:16: Call to `torch._dynamo.graph_break()`"]
    assert "self.steps == " in found["reasons"][0]
    assert "graph_break()" in found["refused"]


@pytest.mark.parametrize("run", ["jax"], indirect=True)
def test_jax_has_no_mixed_precision_for_users_models(run: ForkServer, tmp_path: Path) -> None:
    path = tmp_path / "net.py"
    path.write_text(example("jax"))
    script = in_one_process("jax") + "from harness.request.own_model import model_config\n"
    script += f"facts = model_config({str(path)!r})\n"
    # a device of which XLA multiplies in half precisions is not needed to be refused
    script += "adapter = started(facts)\n"
    script += "made = lambda name: type(adapter.definition())("
    script += "adapter.case._replace(precision=name), facts, adapter.rank_context)\n"
    script += (
        "answer(refused=[raised(Unsupported, lambda: made(one)) for one in ('amp', 'amp_bf16')])"
    )
    (found,) = run(script)
    assert ["no mixed precision" in reason for reason in found["refused"]] == [True, True]


#: What a user's training script has before the lines of ``framebench tune``, and the dtype of what
#: a layer gives behind a line.
SCRIPTS = {
    "pytorch": """
import torch

def names():
    model = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.Linear(32, 16))
    inputs, targets = torch.randn(16, 32), torch.randint(16, (16,))
    seen = []
    model.register_forward_hook(lambda *found: seen.append(found[-1].dtype))
    return {"torch": torch, "model": model, "inputs": inputs, "targets": targets, "seen": seen,
            "criterion": torch.nn.CrossEntropyLoss()}

def behind(found):
    own = found["model"][0].weight.dtype
    return str(found["seen"][0] if found["seen"] else own)
""",
    "jax": """
import jax

def names():
    return {"jax": jax, "parameters": {"a": jax.numpy.ones(3)}, "step": lambda state: 2 * state}

def behind(found):
    return str(found["step"](found["parameters"]["a"]).dtype)
""",
    "mindspore": """
import mindspore

def names():
    return {"mindspore": mindspore, "step": mindspore.ops.square}

def behind(found):
    return "mindspore." + str(found["step"](mindspore.ops.ones((2,))).dtype).lower()
""",
    "tensorflow": """
import keras
import tensorflow as tf

def names():
    keras.mixed_precision.set_global_policy("float32")
    return {"keras": keras, "tf": tf, "step": lambda: tf.ones(2)}

def behind(found):
    found["step"]()
    return keras.layers.Dense(1).compute_dtype
""",
}
PASTED = """
dtypes = {}
for name, line in lines.items():
    found = names()
    exec(line, found)
    dtypes[name] = behind(found).rpartition(".")[2]
answer(dtypes=dtypes)
"""


@pytest.mark.parametrize("run", FRAMEWORKS, indirect=True)
def test_lines_for_a_training_script_run_there_and_set_what_they_are_for(run: ForkServer) -> None:
    declared = ROOT / "scripts" / "frameworks" / run.framework / "framework.json"
    facts = json.loads(declared.read_text())
    lines = facts["script_lines"]
    mixed = {name for name in facts["precisions"] if name.startswith("amp")}
    lacking = mixed if run.framework == "jax" else set()  # it has none for users' models
    assert {*lines} == {*facts["precisions"], *facts["compilers"]} - {"fp32", "none"} - lacking
    lines.pop("zentorch", None)  # the environment lacks it
    script = f"lines = {lines!r}\n{SCRIPTS[run.framework]}{PASTED}"
    (found,) = run(in_one_process(run.framework) + script)
    halves = {"amp": "bfloat16", "amp_bf16": "bfloat16", "amp_fp16": "float16"}
    halves |= {"bf16": "bfloat16", "fp16": "float16"}
    assert found["dtypes"] == {name: halves.get(name, "float32") for name in lines}
