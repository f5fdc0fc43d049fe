"""Users' models: the documented files are valid, and a verification finds mistakes in them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from framebench.environments import uv

from ..bench import Bench
from ..commands import git
from ..conftest import ROOT, build_environment
from ..harness.validity import assert_outcome
from .comparing import beyond
from .fork_server import ForkServer, served

DOCUMENT = "docs/own-model.md"
#: Models as users write them.
OWN = Path(__file__).parent / "own_models"
FRAMEWORKS = ("jax", "pytorch", "tensorflow")
#: Changes of the documented file, by framework and file name.
MISTAKES: dict[str, dict[str, tuple[str, str]]] = {
    "pytorch": {
        "cast.py": ("nn.ReLU(),", "Half(),"),
        "gradient.py": ("nn.ReLU(),", "Doubled(),"),
        "update.py": ("lr=1e-3", "lr=1e-3 if next(parameters).dtype == torch.float64 else 0"),
        "random.py": ("nn.ReLU(),", "Noise(),"),
        "parts.py": ("(inputs, targets), nn", "inputs, nn"),
        "loss.py": ("nn.CrossEntropyLoss()", "None"),
        "optimizer.py": ("return torch.optim.AdamW", "torch.optim.AdamW"),
        "zero.py": ("nn.CrossEntropyLoss()", "lambda *of: 0.0 * nn.CrossEntropyLoss()(*of)"),
    },
    "jax": {
        "half.py": ('"hidden"])', '"hidden"]).astype("float16").astype(inputs.dtype)'),
        "outputs.py": ("return jax.nn.relu(", "return 0.0 * jax.nn.relu("),
    },
    "tensorflow": {
        "half.py": ("layers.BatchNormalization(),", "layers.Lambda(half),"),
    },
}
#: Changes after which the documented file is still correct, by framework.
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
    "tensorflow": (
        "return model, (inputs, targets), keras.losses.SparseCategoricalCrossentropy("
        "from_logits=True)",
        "return Named(model), ({'x': inputs}, [targets]), loss",
    ),
}
#: Changed files that are refused, with the reason.
REFUSED = {
    "half.py": "): there is no float64 run to compare with",
    "random.py": "it draws random numbers",
    "parts.py": "make must return model, (inputs, targets), loss",
    "loss.py": "make returned NoneType as the loss, not a function",
    "optimizer.py": "optimizer returned NoneType; allowed: one of ",
    "zero.py": "all gradients of the model are zero",
    "outputs.py": "all outputs of the model are zero",
}


def example(framework: str) -> str:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / DOCUMENT).read_text(), re.DOTALL)
    (actual,) = [block for block in blocks if f'FRAMEWORK = "{framework}"' in block]
    return actual.replace("512", "64").replace("784", "32")


def written(folder: Path, framework: str, name: str = "good.py", *change: str) -> str:
    more = OWN / f"more_{framework}.py"
    text = example(framework) + (more.read_text() if more.exists() else "")
    path = folder / name
    path.write_text(text.replace(*change) if change else text)
    assert not change or path.read_text() != text, f"{change[0]} is nowhere in {DOCUMENT}"
    return str(path)


run = served(*FRAMEWORKS)


def compared(
    run: ForkServer,
    cases: list[tuple[str, str, str]],
    ranks: int = 1,
    library: Path | None = None,
) -> list[dict[str, Any]]:
    # the compiler with which users run the framework
    compiler = {"jax": "jit"}.get(run.framework, "none")
    options = {"library": str(library)} if library else {}
    return run("own_model.compare", ranks, cases=cases, compiler=compiler, **options)


def test_a_file_of_25_lines_is_verified_and_mistakes_in_it_are_found(
    run: ForkServer, tmp_path: Path
) -> None:
    framework = run.framework
    assert len(example(framework).splitlines()) <= 25
    good = written(tmp_path, framework)
    cases = [(good, "train", "fp32"), (good, "inference", "fp32")]
    cases += [] if framework == "jax" else [(good, "train", "amp")]
    nested = written(tmp_path, framework, "nested_good.py", *NESTED[framework])
    cases += [(nested, mode, "fp32") for mode in ("train", "inference")]
    cases += [(nested, "train", "bf16")] if framework == "pytorch" else []
    for name, change in MISTAKES[framework].items():
        mode = "inference" if name == "outputs.py" else "train"
        cases.append((written(tmp_path, framework, name, *change), mode, "fp32"))
    (actual,) = compared(run, cases)
    refused = {name.partition(",")[0]: reason for name, reason in actual["refused"].items()}
    assert set(refused) == set(REFUSED) & set(MISTAKES[framework])
    assert all(REFUSED[name] in reason for name, reason in refused.items())
    wrong = {name: beyond({name: errors}) for name, errors in actual["errors"].items()}
    assert not {name: own for name, own in wrong.items() if own and "good.py" in name}
    quantities = {entry["quantity"] for entry in actual["errors"]["good.py, train, fp32"][1]}
    assert quantities >= {"outputs", "gradients", "loss", "first update"}
    found_in = {name.partition(",")[0]: {entry[1] for entry in own} for name, own in wrong.items()}
    if framework == "pytorch":
        assert "outputs" in found_in["cast.py"]
        assert found_in["gradient.py"] >= {"gradients", "gradients, total"}
        assert found_in["update.py"] == {"first update", "first update, total"}


@pytest.mark.parametrize("run", ["pytorch", "tensorflow"], indirect=True)
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
        for entry in (first, second):
            assert entry["errors"]
            assert not beyond(entry["errors"])


def test_a_run_is_of_the_file_as_it_was(tmp_path: Path) -> None:
    python, framework = build_environment("pytorch"), ROOT / "scripts" / "frameworks" / "pytorch"
    path = written(tmp_path, "pytorch")
    text = Path(path).read_text()
    (tmp_path / "parts").mkdir()
    (tmp_path / "far.py").write_text("from parts.near import nn\n")
    (tmp_path / "parts" / "near.py").write_text("from torch import nn\n")
    Path(path).write_text(text.replace("from torch import nn", "from far import nn"))
    bench = Bench(tmp_path, python)
    for arguments in (("init", "-q"), ("add", "far.py", "parts", path), ("commit", "-qm", "one")):
        git(tmp_path, *arguments)
    (tmp_path / "parts" / "near.py").write_text("from torch import nn  # near\n")
    record = bench.run(framework=framework, model=path, precision="amp").record
    assert record["status"] == "ok", record["reason"]
    assert {*record["own_model"]["files"]} == {"far", "parts.near"}
    assert record["own_model"]["source"] == path
    assert re.fullmatch("[0-9a-f]{40}", record["own_model"]["commit"])
    assert record["own_model"]["modified"] is True
    assert record["case"]["model"] == f"good@{record['own_model']['sha256'][:8]}"
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
    computed = text.replace("from torch import nn", "nn = __import__(f'{\"far\"}').nn")
    Path(path).write_text(computed)
    failed = bench.run(framework=framework, model=path).record
    assert_outcome(failed, "failed", ".py, which none of its import statements names")
    bench.output.unlink()
    other = bench.run(framework=framework.with_name("jax"), model=path).record
    assert_outcome(other, "unsupported", "is a model for pytorch, not for jax")
    bench.output.unlink()
    cut = bench.run(framework=framework, model=path, accumulation=2).record
    assert cut["status"] == "unsupported"
    assert cut["reason"].endswith("makes its batch itself, on the device: no accumulation 2")
    bench.assert_nothing_left()


@pytest.mark.parametrize("run", ["tensorflow"], indirect=True)
def test_models_of_keras_have_penalties_and_parts_without_a_gradient(
    run: ForkServer, tmp_path: Path
) -> None:
    path = str(OWN / "two_inputs.py")
    (actual,) = compared(run, [(path, mode, "fp32") for mode in ("train", "inference")])
    assert actual["refused"] == {}
    assert not beyond(actual["errors"])
    (actual,) = run("own_model.train", path=path, steps=1)
    assert 100 < actual["losses"][0] <= 101


@pytest.mark.parametrize("run", ["tensorflow"], indirect=True)
def test_models_of_keras_are_built_by_name(run: ForkServer) -> None:
    (actual,) = run("own_model.build_keras")
    assert actual["parameters"] == 3_504_872
    assert actual["shape"] == [1, 1000]


@pytest.mark.parametrize("run", ["pytorch"], indirect=True)
def test_models_of_libraries_are_built_by_name(run: ForkServer) -> None:
    (actual,) = run("own_model.build_torchvision")
    assert actual["name"] == actual["source"] == "torchvision:squeezenet1_1"
    assert actual["parameters"] == 1_235_496
    assert actual["reason"] == "timm is not installed in this environment"


#: Flax and the packages that it imports.
FLAX = ("flax==0.12.12", "msgpack", "rich", "PyYAML", "typing_extensions", "treescope")


@pytest.fixture(scope="session")
def flax(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install Flax for JAX's environment, without what only its checkpoints import."""
    settings, folder = uv.pip_settings(), tmp_path_factory.mktemp("flax")
    place = ("--python", build_environment("jax"), "--target", str(folder), "--no-deps")
    subprocess.run(
        [uv.executable(), "pip", "install", "-q", *place, *uv.arguments(settings), *FLAX],
        check=True,
        env=uv.variables(settings),
    )
    return folder


@pytest.mark.parametrize("run", ["jax"], indirect=True)
@pytest.mark.parametrize("kind", ["linen", "nnx"])
def test_modules_of_flax_have_modes_dropout_and_running_statistics(
    run: ForkServer, flax: Path, kind: str
) -> None:
    path = OWN / f"{kind}_net.py"
    cases = [(str(path), mode, "fp32") for mode in ("train", "inference")]
    (actual,) = compared(run, cases, library=flax)
    assert actual["refused"] == {}
    assert not beyond(actual["errors"])
    quantities = {entry["quantity"] for entry in actual["errors"][f"{path.name}, train, fp32"][1]}
    assert quantities >= {"outputs", "gradients", "first update", "running statistics"}
    (stepped,) = run("own_model.train", path=str(path), compiler="jit", steps=2, library=str(flax))
    (mean,) = stepped["means"]
    assert stepped["losses"][0] != stepped["losses"][1]
    assert 0.15 < mean < 0.25, "0.1 of a mean of 1, and 0.1 of the rest"


@pytest.mark.parametrize("run", ["pytorch"], indirect=True)
def test_layers_may_be_lazy_and_left_out_of_steps(run: ForkServer) -> None:
    for entry in run("own_model.train", ranks=2, path=str(OWN / "changing.py"), steps=4):
        assert len({*entry["losses"]}) == 4


@pytest.mark.parametrize("run", ["pytorch"], indirect=True)
def test_gradients_may_be_sparse_and_weights_complex(run: ForkServer) -> None:
    path = OWN / "spectral.py"
    (actual,) = compared(run, [(str(path), mode, "fp32") for mode in ("train", "inference")])
    assert actual["refused"] == {}
    assert not beyond(actual["errors"])


@pytest.mark.parametrize("run", ["pytorch"], indirect=True)
def test_parameters_may_be_in_bfloat16_and_have_a_gradient_on_one_rank_only(
    run: ForkServer,
) -> None:
    for entry in compared(run, [(str(OWN / "routed.py"), "train", "amp")], ranks=2):
        assert entry["refused"] == {}
        assert entry["errors"]
        assert not beyond(entry["errors"])


@pytest.mark.parametrize("run", ["pytorch"], indirect=True)
def test_matmuls_of_experts_are_counted(run: ForkServer) -> None:
    (actual,) = run("own_model.count", path=str(OWN / "experts.py"), batch=6)
    assert actual["multiply_adds"] == 6 * 8 * 16


@pytest.mark.parametrize("run", ["pytorch"], indirect=True)
def test_graph_breaks_and_recompilations_are_counted_and_named(
    run: ForkServer, tmp_path: Path
) -> None:
    path, call = OWN / "changing.py", "torch._dynamo.graph_break()"
    line = 1 + path.read_text().split("\n").index(f"        {call}")
    (actual,) = run("own_model.recompile", path=str(path))
    assert actual["counts"]["graph_breaks"] == 1
    assert actual["counts"]["breaks"] == [f"changing.py:{line}: Call to `{call}`"]
    assert "self.steps == " in actual["reasons"][0]


@pytest.mark.parametrize("run", ["pytorch"], indirect=True)
def test_a_model_that_compiles_itself_is_no_eager_one(run: ForkServer) -> None:
    (actual,) = run("own_model.compile_itself", path=str(OWN / "experts.py"))
    assert actual == {}
    (actual,) = run("own_model.compile_itself", path=str(OWN / "self_compiled.py"))
    assert actual["unique_graphs"] > 0


@pytest.mark.parametrize("run", ["jax"], indirect=True)
def test_jax_has_no_mixed_precision_for_users_models(run: ForkServer, tmp_path: Path) -> None:
    path = tmp_path / "net.py"
    path.write_text(example("jax"))
    (actual,) = run("own_model.refuse_amp", path=str(path))
    assert ["no mixed precision" in reason for reason in actual["refused"]] == [True, True]
