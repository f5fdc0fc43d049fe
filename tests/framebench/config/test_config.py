"""Every kind of wrong configuration gives one clear message: file, key, found, allowed."""

from __future__ import annotations

from pathlib import Path

import pytest
from framebench.cases.matrix import cases
from framebench.config.cluster import Cluster
from framebench.config.settings import load_settings
from framebench.config.suite import load_suite
from framebench.config.validation import ConfigError
from framebench.machine.local import Machine
from framebench.plan.planning import make_plan
from snakemake.cli import parse_config

from ..settings import CATALOG, CONFIG, ROOT, SUITE, assert_clear, changed, plan, settings

ON = {"nodes": 1, "cores_per_node": 2, "memory_gib": 4}
#: Keys of the configuration, and parts of the message.
BAD_CONFIG = {
    "unknown key": (
        {"suit": "quick"},
        ["found unknown key 'suit' (did you mean suite?)", "allowed: kinds"],
    ),
    "misspelt suite": ({"suite": "quik"}, ["suite: found 'quik' (did you mean quick?)", "careful"]),
    "memory without unit": ({"memory_limit": "16"}, ["memory_limit: found '16'", "16GiB", "80%"]),
    "wildcard": ({"results": "a{b}"}, ["results: found 'a{b}'", "without {"]),
    "file for a folder": ({"results": str(ROOT / "LICENSE")}, ["results: found", "a folder"]),
    "no interpreter": (
        {"interpreters": {"pytorch": "/no/python"}},
        ["interpreters.pytorch: found '/no/python'", "a Python that exists"],
    ),
    "unknown key of a cluster": (
        {"cluster": {**ON, "gpu": 8}},
        ["profiles/slurm/cluster.yaml", "cluster: found unknown key 'gpu'; ", "gpus_per_node"],
    ),
}
#: Suites, and parts of the message.
BAD_SUITE = {
    "no environment file": (
        {**SUITE, "variants": {"b": {"environments": {"pytorch": "/no/file.yaml"}}}},
        ["variants.b.environments.pytorch: found '/no/file.yaml'", "environment file"],
    ),
    "bounds exchanged": (
        {**SUITE, "steps": {"warmup": {"at_least": 20, "at_most": 10}, "timed": 5}},
        ["steps.warmup.at_most: found 10", "which is 20, or more"],
    ),
    "margin of one side": ({**SUITE, "repeats": {"margin": "5%"}}, ["variants: found none", "two"]),
    "budget without": ({**SUITE, "batch_check": 4}, ["batch_check: found", "without time_budget"]),
    "budget beside a rule": (
        {**SUITE, "time_budget": 60, "repeats": {"margin": 0.05}},
        ["repeats: found a margin", "whole number together with time_budget"],
    ),
    "broken YAML": ("axes: [1, 2", ["my.yaml", "is not valid YAML", "line"]),
    "key twice": ("axes: {batch_per_device: 1}\nrepeats: 1\nrepeats: 2", ["'repeats'", "twice"]),
    "empty file": ("", ["my.yaml", "the file: found None", "a mapping"]),
    "nothing to measure": ({"repeats": 2}, ["found neither axes nor measurements"]),
    "no batch": ({"axes": {"mode": "train"}}, ["axes: found no batch", "batch_total"]),
    "unknown axis": (
        changed(precison=["fp32"]),
        ["axes: found unknown key 'precison' (did you mean precision?)"],
    ),
    "unknown benchmark": (
        {"measurements": {"matmull": {"framework": ["pytorch"]}}},
        ["measurements.matmull: found 'matmull' (did you mean matmul?)"],
    ),
}
BAD_MATRIX = {
    "exclude of nothing": ({**SUITE, "exclude": [{"mode": ["inference"]}]}, ["matches no case"]),
    "exclude everything": ({**SUITE, "exclude": [{"mode": ["train"]}]}, ["no case left"]),
    "batch for another model": (
        changed(batch_per_device={"bert_base": [2]}),
        ["batch_per_device", "resnet50_v1.5"],
    ),
    "sequence too long": (
        changed(model=["bert_base"], sequence_length=[4096]),
        ["sequence_length: found 4096", "1 to 512"],
    ),
}


@pytest.mark.parametrize("name", BAD_CONFIG)
def test_bad_config(name: str) -> None:
    values, expected = BAD_CONFIG[name]
    with pytest.raises(ConfigError) as error:
        load_settings({**CONFIG, **values}, CATALOG)
    assert_clear(error, ["config", *expected])
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize("name", BAD_SUITE)
def test_bad_suite(name: str, tmp_path: Path) -> None:
    suite, expected = BAD_SUITE[name]
    with pytest.raises(ConfigError) as error:
        settings(tmp_path, suite)
    assert_clear(error, ["my.yaml", *expected])
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize("name", BAD_MATRIX)
def test_bad_matrix(name: str, tmp_path: Path) -> None:
    suite, expected = BAD_MATRIX[name]
    with pytest.raises(ConfigError) as error:
        plan(tmp_path, suite)
    assert_clear(error, ["my.yaml", *expected])


def test_every_fault_has_a_line_of_its_own() -> None:
    values = {"seed": -1, "time_limit": "1h", "cluster": {"nodes": 0, "cores_per_node": 2}}
    with pytest.raises(ConfigError) as error:
        load_settings({**CONFIG, **values}, CATALOG)
    lines = str(error.value).splitlines()
    for key in (
        "seed: found -1",
        "time_limit: found '1h'",
        "cluster.nodes: found 0",
        "key cluster.memory_gib is missing",
    ):
        assert sum(key in line for line in lines) == 1, lines
    assert len(lines) == 4


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"frameworks": "tensorflow"}, "leaves no case"),
        ({"accelerator": "cuda"}, "accelerator: found 'cuda'"),
        ({"cores_per_device": 3}, "cores_per_device: found 3"),
    ],
)
def test_what_this_machine_or_suite_has_not_is_refused(
    tmp_path: Path, config: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        plan(tmp_path, **config)


def test_cases_are_kept_by_the_names_of_the_plan() -> None:
    def kept(cases: str | list[str]) -> list[str]:
        settings = load_settings({**CONFIG, "suite": "quick", "cases": cases}, CATALOG)
        return [str(folder) for folder in make_plan(settings, CATALOG, Machine(2, 0), None).folders]

    every = kept([])
    assert len(every) > 10
    assert kept(every[1]) == [every[1]]
    assert kept(",".join(every[:2])) == every[:2]
    with pytest.raises(ConfigError, match=r"cases: found '.* typo' \(did you mean .*\); allowed: "):
        kept(f"{every[0]} typo")
    assert kept([every[0], every[0]]) == [every[0]]


@pytest.mark.parametrize("machine", [Machine(2, 0), Machine(16, 2)], ids=["cpu", "cuda"])
def test_the_suite_quick_plans_every_framework_everywhere(machine: Machine) -> None:
    """Fail if it leaves one out, but for cases that take too much of its time."""
    actual = make_plan(load_settings({**CONFIG, "suite": "quick"}, CATALOG), CATALOG, machine, None)
    everywhere = {
        name for name in CATALOG.frameworks if [*(ROOT / "envs").glob(f"{name}-cuda*.yaml")]
    }
    without = {*CATALOG.frameworks} - everywhere if machine.gpus else set()
    assert {case.framework for case in actual.folders} == set(CATALOG.frameworks) - without
    others = [
        left_out
        for left_out in actual.left_out
        if "too slow" not in left_out.reason and " has no " not in left_out.reason
    ]
    assert {other.case.framework for other in others} == without
    files = {name: software.file.path.name for name, software in actual.software.items()}
    assert files["pytorch"] == ("pytorch-cuda.yaml" if machine.gpus else "pytorch.yaml")
    assert {case.devices for case in actual.folders} == {1, 2} if machine.gpus else {1}


@pytest.mark.parametrize("path", sorted((ROOT / "config" / "suites").glob("*.yaml")))
def test_shipped_suites_are_valid(path: Path) -> None:
    assert cases(load_settings({**CONFIG, "suite": path.stem}, CATALOG).suite, CATALOG)


def test_variants_bring_environments_of_their_own(tmp_path: Path) -> None:
    file = tmp_path / "older.yaml"
    text = (ROOT / "envs" / "pytorch.yaml").read_text()
    file.write_text(text + "# another\n")
    sides = {"new": None, "old": {"environments": {"pytorch": str(file)}}}
    made = plan(tmp_path, {**SUITE, "variants": sides}, require_hashes=False)
    assert [case.variant for case in made.folders] == ["new", "old"]
    assert set(made.software) == {"pytorch", "pytorch@old"}
    assert made.software["pytorch@old"].file.path == file
    assert len(set(made.folders.values())) == 2
    usual = plan(tmp_path)
    assert not set(usual.folders.values()) & set(made.folders.values())


NODES = {"nodes": 2, "cores_per_node": 4, "memory_gib": 7.5, "gpus_per_node": 1}
CLUSTER = "nodes: 2, gpus_per_node: 1, cores_per_node: 4, memory_gib: 7.5, time_limit: 60"
FROM_COMMAND_LINE = {
    "side_by_side=true": ("side_by_side", True),
    "time_limit=0.5": ("time_limit", 0.5),
    "memory_limit=80%": ("memory_limit", "80%"),
    "frameworks=pytorch,jax": ("frameworks", ["pytorch", "jax"]),
    "frameworks=[pytorch, jax]": ("frameworks", ["pytorch", "jax"]),
    "retry=failed,oom": ("retry", {"failed", "oom"}),
    f"cluster={{{CLUSTER}, gres: gpu:v100, partition: null}}": (
        "cluster",
        Cluster(**NODES, time_limit=60, gres="gpu:v100"),
    ),
}


@pytest.mark.parametrize("entry", FROM_COMMAND_LINE)
def test_a_key_from_the_command_line(entry: str, tmp_path: Path) -> None:
    key, value = FROM_COMMAND_LINE[entry]
    assert getattr(settings(tmp_path, **parse_config([entry])), key) == value


def test_a_parameter_may_lie_below_the_results(tmp_path: Path) -> None:
    """A suite finds the weights that another one saved there."""
    converge = {
        "framework": ["pytorch"], "model": ["digits_resnet"], "batch_per_device": [2],
        "precision": ["fp32"], "compiler": ["none"], "weights": "{results}/weights/mine",
    }  # fmt: skip
    suite = {"measurements": {"converge": converge}}
    actual = settings(tmp_path, suite, results=str(tmp_path / "elsewhere"))
    (weights,) = actual.suite.measurements["converge"].parameters["weights"]
    assert weights == str(tmp_path / "elsewhere" / "weights" / "mine")
    shipped = load_suite("pretrain_small_phase2", CATALOG, {"results": tmp_path})
    (start,) = shipped.measurements["converge"].parameters["start"]
    left = load_suite("pretrain_small", CATALOG, {"results": tmp_path}).measurements["converge"]
    assert left.parameters["weights"] == (start,) == (str(tmp_path / "weights/pretrain_small"),)


ODD_KINDS = {
    "several lines": "raise ValueError('first\\nsecond')",
    "no declaration": "from harness.kind import Kind\nclass Odd(Kind):\n    parameters = 5",
}


@pytest.mark.parametrize("name", ODD_KINDS)
def test_a_kind_whose_module_cannot_be_imported_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "odd.py").write_text(ODD_KINDS[name])
    with pytest.raises(ConfigError) as refused:
        settings(tmp_path, {"measurements": {"odd": {}}}, kinds=str(tmp_path))
    assert "measurements.odd: found odd of " in str(refused.value)
    assert "\n" not in str(refused.value)
