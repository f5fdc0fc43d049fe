"""A user's model replaces the models of a suite, and is identified by its content."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest
from framebench.config.catalog import SCALE
from framebench.config.settings import Settings
from framebench.config.validation import ConfigError
from framebench.machine.local import Machine
from framebench.plan import costs, targets
from framebench.plan.plan import Plan
from framebench.plan.planning import make_plan
from framebench.records import flags
from framebench.runs import checks, commands
from harness import own_model

from ..made_up_records import record_of
from ..made_up_verifications import CASE, flag_of, run_in, verification_in
from ..settings import CATALOG
from ..settings import settings as settings_of_suite

GOOD = 'FRAMEWORK = "pytorch"\ndef make(batch_size): ...\n'
SUITE: dict[str, Any] = {
    "repeats": 1,
    "axes": {
        "model": ["resnet50_v1.5"],
        "batch_per_device": {"resnet50_v1.5": [2, 4], "bert_base": [4, 8]},
    },
    "include": [
        {"mode": ["inference"], "model": ["bert_base"]},
        {"framework": ["jax"], "compiler": ["native"]},
        {"devices_per_node": [2]},
    ],
    "exclude": [
        {"model": ["bert_base"], "framework": ["mxnet"]},
        {"framework": ["jax"], "mode": ["inference"]},
        {"devices_per_node": [2], "batch_per_device": [2, 4]},
    ],
    "measurements": {
        "peak_flops": {},
        "independent": {"devices_per_node": [2], "batch_per_device": [8]},
    },
}


def settings(folder: Path, source: str, suite: Any = SUITE, **config: Any) -> Settings:
    return settings_of_suite(folder, suite, results=str(folder), model=source, **config)


def planned(folder: Path, source: str, suite: Any = SUITE, **config: Any) -> Plan:
    checked = settings(folder, source, suite, **config)
    assert checked.model
    return make_plan(checked, checked.model.among(CATALOG), Machine(2, 0), None)


def file(folder: Path, text: str = GOOD, name: str = "my_model.py") -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


def test_a_source_that_is_no_model_is_refused_before_anything_starts(tmp_path: Path) -> None:
    def made(text: str) -> str:
        path = tmp_path / str(len(list(tmp_path.iterdir())))
        path.mkdir()
        return file(path, text)

    wrong = {
        "no Python file": ("my_model.txt", ["'my_model.txt'", "torchvision:NAME, timm:NAME"]),
        "no Python": (made("def make(:\n"), ["which is not Python, line 1: invalid syntax"]),
        "no FRAMEWORK": (
            made("def make(b): ..."),
            ["without FRAMEWORK", "jax, pytorch, tensorflow"],
        ),
        "no make": (made('FRAMEWORK = "jax"\n'), ["without make", "returns model, (inputs,"]),
    }
    for name, (source, parts) in wrong.items():
        with pytest.raises(own_model.NotAModel) as caught:
            own_model.model_config(source)
        text = str(caught.value)
        assert all(part in text for part in ["found", "allowed:", *parts]), (name, text)
    for source, words in (
        ("none.py", "model: found 'none.py': No such file or directory; allowed: the path of a"),
        ("resnet18", "model: found 'resnet18'; allowed: the path of a"),
    ):
        with pytest.raises(ConfigError, match=re.escape(words)):
            settings(tmp_path, source)


def test_an_own_model_excludes_other_models_and_other_frameworks(tmp_path: Path) -> None:
    source = file(tmp_path)
    without_axes = {"measurements": {"peak_flops": {"model": "resnet18"}}}
    for suite, config, words in (
        (SUITE, {"models": "resnet18"}, "models: found ['resnet18']; allowed: all beside model"),
        (SUITE, {"frameworks": "jax"}, "frameworks: found ['jax']; allowed: all, or pytorch"),
        (without_axes, {}, "axes: found none; allowed with model="),
    ):
        with pytest.raises(ConfigError, match=re.escape(words)):
            settings(tmp_path, source, suite, **config)


def test_the_axes_of_a_suite_are_its_axes(tmp_path: Path) -> None:
    plan = planned(tmp_path, file(tmp_path))
    (name,) = {case.model for case in plan.cases}
    assert re.fullmatch("my_model@[0-9a-f]{8}", name)
    assert {case.framework for case in plan.cases} == {"pytorch"}
    actual = {(c.mode, c.devices_per_node, c.batch_per_device, c.compiler) for c in plan.cases}
    alone = {(mode, 1, n, "none") for mode in ("train", "inference") for n in (2, 4, 8)}
    assert actual == {*alone, ("train", 2, 8, "none"), ("independent", 2, 8, "none")}


def test_each_combination_is_tried_before_any_is_repeated(tmp_path: Path) -> None:
    suite = {
        **SUITE,
        "time_budget": 3600,
        "then": [{"precision": ["bf16"]}, {"compiler": ["native"]}],
    }
    suite = {key: value for key, value in suite.items() if key not in ("repeats", "measurements")}
    plan = planned(tmp_path, file(tmp_path), suite)
    alone = [case for case in plan.cases if case.devices == 1 and case.mode == "train"]
    assert {(case.precision, case.compiler) for case in alone} >= {
        ("bf16", "none"), ("fp32", "inductor")
    }  # fmt: skip
    assert {*plan.stages.values()} == {0}, (
        "combinations of ``then`` wait for repeats of earlier ones"
    )


def test_another_content_is_another_model(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    before = planned(tmp_path, file(tmp_path))
    moved = planned(tmp_path, file(elsewhere))
    after = planned(tmp_path, file(tmp_path, GOOD + "# another\n"))
    folders = [
        {folder for case, folder in plan.folders.items() if case.model}
        for plan in (before, moved, after)
    ]
    assert folders[0] == folders[1]
    assert not folders[0] & folders[2]


#: Imports of a model in ``nets``, and the file that they import.
IMPORTED = {
    "in a try": ("try:\n    import layers\nexcept ImportError:\n    pass", "nets/layers.py"),
    "relative": ("from .layers import x", "nets/layers.py"),
    "by another": ("import nets", "nets/further.py"),
}


@pytest.mark.parametrize("way", IMPORTED)
def test_a_module_that_a_model_imports_is_part_of_it(tmp_path: Path, way: str) -> None:
    statement, name = IMPORTED[way]
    nets = tmp_path / "nets"
    nets.mkdir()
    (nets / "__init__.py").write_text("from . import further\n")
    (nets / "further.py").touch()
    source = file(nets, f"{statement}\n{GOOD}")
    imported = tmp_path / name
    names = []
    for content in ("x = 1\n", "x = 2\n", "x = 1\n"):
        imported.write_text(content)
        names.append(own_model.model_config(source)["name"])
    (nets / "unused.py").touch()
    assert names[0] == names[2] == own_model.model_config(source)["name"]
    assert names[0] != names[1]


def test_variants_with_models_are_cases_next_to_each_other(tmp_path: Path) -> None:
    sources = {"old": file(tmp_path), "new": file(tmp_path, GOOD + "# new\n", "other.py")}
    variants = {name: {"model": source} for name, source in sources.items()}
    suite = {**SUITE, "repeats": 2, "variants": variants}
    checked = settings_of_suite(tmp_path, suite, results=str(tmp_path))
    catalog = CATALOG
    for model in checked.own_models:
        catalog = model.among(catalog)
    plan = make_plan(checked, catalog, Machine(2, 0), None)
    names = {case.variant: case.model.partition("@")[0] for case in plan.cases}
    assert names == {"old": "my_model", "new": "other"}
    for planned_run, two in zip(plan.pending[::2], plan.pending[1::2], strict=True):
        assert {planned_run.case.variant, two.case.variant} == {"old", "new"}
        cases = {run.case._replace(variant="", model="") for run in (planned_run, two)}
        assert len(cases) == 1
        for run in (planned_run, two):
            arguments = commands.arguments(plan, run)
            assert arguments[arguments.index("--model") + 1] == sources[run.case.variant]
    with pytest.raises(ConfigError, match="model: found"):
        settings_of_suite(tmp_path, suite, model=sources["old"])
    variants["third"] = {}
    with pytest.raises(ConfigError, match=r"variants: found .* third: None; allowed: a model"):
        settings_of_suite(tmp_path, suite)


def test_every_command_names_the_file_as_it_was_given(tmp_path: Path) -> None:
    source = file(tmp_path)
    plan = planned(tmp_path, source)
    assert plan.settings.model
    catalog = plan.settings.model.among(CATALOG)
    full = checks.verification_names(plan, catalog, checks.full_size(plan, catalog))
    behind = checks.small(plan, catalog, full)
    assert behind == full, "they are made whenever something is measured"
    verified = {(each.case.mode, each.case.devices, each.scale) for each in full.values()}
    assert verified == {("train", 1, SCALE), ("train", 2, SCALE), ("inference", 1, SCALE)}
    lines = [commands.arguments(plan, run) for run in plan.pending if run.case.model]
    lines += [checks.verification_arguments(plan, each, "") for each in full.values()]
    lines += [checks.peak_arguments(plan, each) for each in checks.peak_benchmarks(plan).values()]
    for words in lines:
        assert words[words.index("--model") + 1] == source
        assert not any(word.startswith("reference=") for word in words)


def test_it_is_verified_in_its_own_precision_alone(tmp_path: Path) -> None:
    seconds = []
    for precision in ("fp32", "bf16"):
        axes = {**SUITE["axes"], "precision": [precision]}
        made = planned(tmp_path, file(tmp_path), {"time_budget": 600, "axes": axes})
        assert made.settings.model
        catalog = made.settings.model.among(CATALOG)
        verified = {verification.case.precision for verification in checks.full_size(made, catalog)}
        assert verified == {precision}
        seconds.append(sum(case.checks for case in costs.measured_cases(made, {}, 0.0)))
    assert seconds[0] == pytest.approx(seconds[1])


def test_a_name_in_a_library_that_the_environment_lacks_is_refused(tmp_path: Path) -> None:
    lacking = planned(tmp_path, "timm:resnet18")
    assert {case.model for case in lacking.cases if case.is_step} == {"timm:resnet18"}
    with pytest.raises(
        ConfigError, match=r"pytorch.yaml has no timm; allowed: timm among the packages"
    ):
        targets.check_own_model(lacking)
    python = tmp_path / "python"
    python.touch()
    options = {"interpreters": {"pytorch": str(python)}}
    targets.check_own_model(planned(tmp_path, "timm:resnet18", **options))
    targets.check_own_model(planned(tmp_path, "torchvision:resnet18"))
    targets.check_own_model(planned(tmp_path, file(tmp_path)))


def test_figures_of_an_own_model_are_flagged_and_verified_separately(tmp_path: Path) -> None:
    case = {**CASE, "model": "my_model@01234567", "sequence_length": None}
    own = {"framework": "pytorch", "source": "/my_model.py", "sha256": "0" * 64}
    record = {**record_of(random.Random(1), case, 1), "own_model": own}
    assert [flag.name for flag in flags.flags_of(record)].count("own") == 1
    run = run_in(tmp_path, case, own_model=own)
    assert "own" in {flag.name for flag in run.flags}
    assert flag_of(tmp_path, run) == ("unverified", "")
    verification_in(tmp_path, case, scale=SCALE)
    assert flag_of(tmp_path, run) is None
    verification_in(tmp_path, case, error=0.1, scale=SCALE, started="2031-01-01T00:00:00.000Z")
    off = "outputs differ from the reference by 0.1 (allowed 0.0001)"
    assert flag_of(tmp_path, run) == ("incorrect", off)
    half = run_in(tmp_path, {**case, "precision": "bf16"}, own_model=own)
    verification_in(tmp_path, {**case, "precision": "bf16"}, scale=SCALE)
    assert flag_of(tmp_path, half) is None, "an own model is verified in its own precision only"
