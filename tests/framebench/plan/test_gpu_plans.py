"""Plans of fake machines with GPUs."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from core.case import Case
from core.gpus import NOT_MET, Gpu
from core.text import duration, minutes
from framebench.config.settings import load_settings
from framebench.config.validation import ConfigError
from framebench.machine import local
from framebench.plan import budget, costs, plan_text, targets
from framebench.plan.plan import Plan
from framebench.plan.planning import make_plan
from framebench.records.record_sets import RecordSet
from framebench.runs import job_table, snakemake_calls

from ... import fake_gpus
from ..made_up_runs import run
from ..settings import CATALOG, CONFIG, ROOT

#: A GPU as ``nvidia-smi`` names it, MiB, and compute capability.
GPUS = {
    "rtx_4060": ("NVIDIA GeForce RTX 4060", 8188, "8.9"),
    "rtx_4090": ("NVIDIA GeForce RTX 4090", 24564, "8.9"),
    "rtx_5090": ("NVIDIA GeForce RTX 5090", 32607, "12.0"),
    "v100": ("Tesla V100-SXM2-16GB", 16384, "7.0"),
    "l40s": ("NVIDIA L40S", 46068, "8.9"),
    "a100": ("NVIDIA A100-SXM4-80GB", 81920, "8.0"),
    "h100": ("NVIDIA H100 80GB HBM3", 81559, "9.0"),
    "h200": ("NVIDIA H200", 143771, "9.0"),
    "b200": ("NVIDIA B200", 183359, "10.0"),
}


def gpus(count: int, gpu: str, driver: str) -> list[dict[str, Any]]:
    name, memory, capability = GPUS[gpu]
    return fake_gpus.gpus(count, name, memory, driver, capability)


NEW = "580.95.05"
MACHINES: dict[str, list[dict[str, Any]]] = {
    "1_rtx_4060": gpus(1, "rtx_4060", NEW),
    "1_rtx_4090": gpus(1, "rtx_4090", NEW),
    "1_rtx_5090": gpus(1, "rtx_5090", NEW),
    "1_l40s": gpus(1, "l40s", NEW),
    "1_h200": gpus(1, "h200", NEW),
    "4_v100_r535": gpus(4, "v100", "535.183.01"),
    "8_h100_r580": gpus(8, "h100", NEW),
    "8_h100_r550": gpus(8, "h100", "550.54.15"),
    "8_b200": gpus(8, "b200", NEW),
    "1_h100_mig": fake_gpus.gpus(
        *(1, "NVIDIA H100 80GB HBM3", 81559, NEW, "9.0", "Enabled"), [("1g.10gb", "MIG-17c2")]
    ),
}
KEPT = ROOT / "tests" / "data" / "plans"


@pytest.fixture(autouse=True)
def no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def on(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    listed: list[dict[str, Any]],
    cached: RecordSet | None = None,
    **config: Any,
) -> Plan:
    """Return the plan of a machine with these GPUs, and with ``cached`` records."""
    monkeypatch.setenv("PATH", fake_gpus.install(folder / "bin", listed), prepend=":")
    given = {**CONFIG, "environments": str(folder / "venvs"), **config}
    plan = make_plan(load_settings(given, CATALOG), CATALOG, local.detect(), cached)
    targets.check_runs(plan)
    return plan


def said(plan: Plan) -> str:
    """Return the text of a plan without the time of environments, which uv's cache decides."""
    text = plan_text.describe(plan)
    return re.sub("to build first, about [^:]*:", "to build first, about TIME:", text)


def essence(plan: Plan) -> str:
    """Return cases of ``quick`` by stage, environments, and why cases are left out, as text."""
    lines = [f"suite {plan.settings.suite.name}", ""]
    for stage in sorted({*plan.stages.values()}):
        rows: dict[str, list[str]] = {}
        for case in (case for case, of in plan.stages.items() if of == stage):
            row = f"{case.model} {case.mode} {case.precision} b{case.batch_per_device}"
            row += f" x {case.devices_per_node}"
            rows.setdefault(row, []).append(f"{case.framework} {case.compiler}")
        lines += [f"stage {stage}", *(f"  {row}: {', '.join(rows[row])}" for row in rows)]
    files = sorted(str(one.file.path.stem) for one in plan.software.values() if one.file)
    lines += ["", f"environments: {', '.join(files)}"]
    reasons = sorted({f"{left.case.framework}: {left.reason}" for left in plan.left_out})
    return "\n".join([*lines, *reasons, ""])


@pytest.mark.parametrize("name", MACHINES)
def test_the_plan_of_quick_is_the_kept_one(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fail if a change of suites, environments or capabilities plans otherwise on a machine. For an
    intended change: remove the file, and run this test twice."""
    if name.endswith("mig"):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "MIG-17c2")
    found, kept = essence(on(tmp_path, monkeypatch, MACHINES[name])), KEPT / f"{name}.txt"
    if not kept.exists():
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(found)
        pytest.fail(f"{kept} is new: look at it")
    assert found == kept.read_text()


def test_ten_minutes_on_eight_gpus_have_one_and_all_compiled_and_a_decoder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = on(tmp_path, monkeypatch, MACHINES["8_h100_r580"])
    assert "tensorflow-cuda.yaml (then the driver compiles its kernels" in said(plan)
    begun = [case for case, stage in plan.stages.items() if not stage]
    first, *_ = re.findall("call 1: (.*)", said(plan))
    for part in ("ResNet-50 v1.5 training, mixed, 1 GPU", "mixed, 8 GPUs", "GPT-2 small"):
        assert part in first, first
    assert {case.devices for case in begun} == {1, 8}
    assert {case.model for case in begun} >= {"resnet50_v1.5", "bert_base", "gpt2_small"}
    assert {case.compiler for case in begun if case.framework == "pytorch"} == {"inductor"}
    table = job_table.JobTable(plan, CATALOG)
    early = max(table.rows(plan.runs), key=lambda job: job.priority)
    assert early.case.framework == "pytorch", "whose environment is built first"
    words = early.arguments()
    assert float(words[words.index("--time-limit") + 1]) == 600, "a hang costs one budget at most"


@pytest.mark.parametrize(
    ("name", "missing"),
    [("1_h200", set()), ("8_h100_r580", {"gpt2_small x 8", "bert_base x 1", "bert_base x 8"})],
)
def test_rounds_of_ten_minutes_measure_what_the_plan_promises(
    name: str, missing: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs take as long as expected. ``missing``: workloads that some framework then lacks."""
    plan = on(tmp_path, monkeypatch, MACHINES[name])
    left, around = costs.time_left(plan, 0.0)
    runs: dict[Case, list[Any]] = {case: [] for case in plan.stages}
    while True:
        cases = costs.measured_cases(plan, runs, around)
        wanted = budget.wanted(cases, left, 30)
        new = [case for case in cases if wanted[case.case] > case.repeats]
        if not new:
            break
        for case in new:
            left -= case.seconds_to(wanted[case.case])
            numbers = range(case.repeats + 1, wanted[case.case] + 1)
            runs[case.case] += [SimpleNamespace(repeat=n, figure=1.0 + n / 1000) for n in numbers]
    assert left > 0
    lacking = {case for case, stage in plan.stages.items() if not stage and not runs[case]}
    assert {f"{case.model} x {case.devices}" for case in lacking} == missing
    promised = re.findall("call 1: (.*)", said(plan))[0]
    assert ("BERT" in promised) == (not missing)


@pytest.mark.parametrize(("accelerator", "batch"), [("cpu", "8 per GiB"), ("cuda", "2 per core")])
def test_a_batch_of_the_other_device_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, accelerator: str, batch: str
) -> None:
    suite = tmp_path / "mine.yaml"
    suite.write_text(yaml.safe_dump({"axes": {"batch_per_device": [batch]}}))
    with pytest.raises(ConfigError, match=f"batch_per_device: found '{batch}' on .*; allowed: "):
        on(tmp_path, monkeypatch, MACHINES["1_l40s"], suite=str(suite), accelerator=accelerator)


def test_suites_for_any_machine_have_batches_for_gpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for suite, few, many in (
        ("careful", 2, 128), ("scaling", 2, 128), ("zoo", 2, 32), ("transformers", 1, 16),
        ("allocators", 2, 128), ("micro", 1, 16), ("input", 16, 128), ("input_tokens", 8, 16),
    ):  # fmt: skip
        asked = {"suite": suite, "data": str(tmp_path)}
        cpu = on(tmp_path, monkeypatch, [], accelerator="cpu", **asked)
        gpu = on(tmp_path, monkeypatch, MACHINES["4_v100_r535"], **asked)
        batches = {case.batch_per_device for case in gpu.folders if case.model}
        assert (batches, max(int(case.batch_per_device) for case in cpu.folders)) == ({many}, few)


def test_a_lowered_power_limit_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = {"power.limit": "350", "power.default_limit": "700"}
    listed = [{**gpu, **limits} for gpu in MACHINES["8_h100_r580"]]
    assert "8 x NVIDIA H100 80GB HBM3 at 350 of 700 W," in said(on(tmp_path, monkeypatch, listed))


@pytest.mark.parametrize(
    ("state", "warning"),
    [
        ({"persistence_mode": "Disabled"}, "nvidia-smi -pm 1"),
        ({"compute_mode": "Exclusive_Process"}, "nvidia-smi -c DEFAULT"),
        ({"pcie.link.width.current": "8", "pcie.link.width.max": "16"}, "8 of 16 lanes"),
        ({"name": "NVIDIA H200"}, "CUDA_VISIBLE_DEVICES chooses"),
    ],
)
def test_a_state_of_a_gpu_that_misleads_is_a_line(
    state: dict[str, str], warning: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, *_ = MACHINES["8_h100_r580"]
    usual = {
        "persistence_mode": "Enabled", "compute_mode": "Default", "pcie.link.width.current": "16",
        "pcie.link.width.max": "16",
    }  # fmt: skip
    for changed in ({}, state):
        listed = [{**first, **usual}, {**second, **usual, **changed}]
        assert (warning in said(on(tmp_path, monkeypatch, listed))) == bool(changed)


def test_builds_take_time_by_size_and_with_the_kernels_of_a_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = {}
    for machine in ("1_l40s", "1_h200"):  # machine code, and PTX alone
        plan = on(tmp_path, monkeypatch, MACHINES[machine], frameworks="pytorch,tensorflow")
        jobs = job_table.JobTable(plan, CATALOG).to_do
        builds = [job.seconds for job in jobs if job.kind == "environment"]
        seconds[machine] = sum(builds)
        assert min(builds) > 100
        total = duration(plan.settings.budget + sum(builds))
        assert plan_text.total_lines(plan, jobs) == [f"In all about {total}"]
        assert f"to build first, about {duration(sum(builds))}:" in plan_text.describe(plan)
        first = plan_text.opening(plan, {"environment": len(builds)}, 0.0)
        assert f"about {minutes(sum(builds))}, once" in first
    assert seconds["1_h200"] - seconds["1_l40s"] == 1800


def test_no_cuda_environment_is_planned_that_aarch64_cannot_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    plan = on(tmp_path, monkeypatch, MACHINES["1_h200"])
    assert {case.framework for case in plan.folders} == {"pytorch", "jax"}
    reasons = {left.case.framework: left.reason for left in plan.left_out}
    assert all("aarch64" in reasons[name] for name in ("tensorflow", "oneflow", "paddle"))
    old = Gpu("GPU", None, "550.54.15", "", "", "9.0")
    assert "driver 580" in CATALOG.environment_file("pytorch", "cuda", [old])[1], "CPU's build"


@pytest.mark.parametrize("suite", ["gpu_check", "gpu_check_short"])
def test_oneflow_trains_in_mixed_precision_by_its_compiler_alone(
    suite: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = {"suite": suite, "frameworks": "oneflow"}
    plan = on(tmp_path, monkeypatch, MACHINES["4_v100_r535"], **asked)
    compilers = {
        case.compiler
        for case in plan.folders
        if case.mode == "train" and case.precision.startswith("amp")
    }
    assert compilers == {"graph"}


def test_little_shared_memory_for_several_gpus_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for size, machine, is_said in (
        (64, "8_h100_r580", True), (64, "1_h200", False), (4096, "8_h100_r580", False),
    ):  # fmt: skip
        monkeypatch.setattr(local, "shared_memory", lambda size=size: size * 2**20)
        text = said(on(tmp_path, monkeypatch, MACHINES[machine]))
        assert ("/dev/shm has 64 MiB" in text) == is_said


def test_after_a_hang_no_other_case_of_several_gpus_waits_as_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = {"suite": "quick_gpu", "frameworks": "pytorch,jax"}
    before = on(tmp_path, monkeypatch, MACHINES["8_h100_r580"], **asked)
    hung = next(case for case in before.folders if case.devices == 8)
    reason = f"rank 0: {NOT_MET} 120 s, during: pre-flight check"
    one = replace(run(None, reason=reason), case=hung, machine=local.detect().identity)
    known = RecordSet((one,), (), tmp_path)
    after = on(tmp_path, monkeypatch, MACHINES["8_h100_r580"], known, **asked)
    assert {case for case in after.folders if case.devices == 8} == {hung}
    assert len(after.folders) == len([c for c in before.folders if c.devices == 1]) + 1
    (why,) = {left.reason for left in after.left_out if left.case.devices == 8}
    assert why.startswith(reason)
    assert why.endswith("--config retry=failed")
    again = on(tmp_path, monkeypatch, MACHINES["8_h100_r580"], known, retry="failed", **asked)
    assert again.folders.keys() == before.folders.keys()


def test_weights_that_no_gpu_holds_are_left_out_with_the_arithmetic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = tmp_path / "large.yaml"
    axes = {
        "framework": ["pytorch"], "model": ["gpt_6.7b"], "devices_per_node": [1, 8],
        "batch_per_device": [1], "compiler": ["none"], "parallelism": ["data", "fsdp"],
    }  # fmt: skip
    suite.write_text(yaml.safe_dump({"axes": axes}))
    plan = on(tmp_path, monkeypatch, MACHINES["8_h100_r580"], suite=str(suite))
    assert [(case.devices, case.parallelism) for case in plan.folders] == [(8, "fsdp")]
    assert {(left_out.case.devices, left_out.case.parallelism) for left_out in plan.left_out} == {
        (1, "data"), (8, "data"),
    }  # fmt: skip
    for left_out in plan.left_out:
        assert "parameters x 4 bytes x 4 (weights, moments, gradients) take" in left_out.reason
        assert left_out.reason.endswith("GiB of a GPU, NVIDIA H100 80GB HBM3 has 79.6 GiB")


@pytest.mark.parametrize(
    ("framework", "driver", "capability", "chosen"),
    [
        ("pytorch", "580.95.05", "9.0", "pytorch-cuda"),
        ("pytorch", "550.54.15", "9.0", "pytorch-cuda12"),
        ("pytorch", "470.82.01", "7.0", "driver 525 or newer"),
        ("tensorflow", "550.54.15", "9.0", "needs driver 555 or newer, found 550.54.15"),
        ("tensorflow", "535.183.01", "7.0", "tensorflow-cuda-volta"),
        (
            "tensorflow",
            "580.95.05",
            "12.0",
            "no environment has kernels for compute capability 12.0",
        ),
        ("oneflow", "580.95.05", "5.0", "an image (docs/gpus.md), or a Python of your own"),
    ],
)
def test_an_environment_is_chosen_by_driver_and_compute_capability(
    framework: str, driver: str, capability: str, chosen: str
) -> None:
    gpu = Gpu("GPU", None, driver, "", "", capability)
    file, reason = CATALOG.environment_file(framework, "cuda", [gpu])
    assert file.stem == chosen if file else chosen in reason


@pytest.mark.parametrize(
    ("framework", "newest", "newer"),
    [
        ("mxnet", "9.0", "10.0"), ("tensorflow1", "9.0", "12.0"), ("oneflow", "5.0", "9.0"),
        ("megengine", "8.9", "9.0"), ("mindspore", "8.0", "9.0"),
    ],
)  # fmt: skip
def test_no_remedy_is_offered_where_none_works(framework: str, newest: str, newer: str) -> None:
    for capability in (newest, newer):
        gpu = Gpu("GPU", None, NEW, "", "", capability)
        file, reason = CATALOG.environment_file(framework, "cuda", [gpu])
        assert file is None
        assert ("allowed" in reason) == (capability == newest)


def made_on(cluster: dict[str, Any], **config: Any) -> Plan:
    settings = load_settings({**CONFIG, "cluster": cluster, **config}, CATALOG)
    assert settings.cluster is not None
    return make_plan(settings, CATALOG, settings.cluster.machine, None)


def test_a_cluster_states_its_gpus() -> None:
    nodes = {"nodes": 2, "gpus_per_node": 4, "cores_per_node": 8, "memory_gib": 64}
    files = []
    for more in ({}, {"gpu_driver": 550.54, "gpu_capability": 9.0, "gpu_memory_gib": 79.6}):
        plan = made_on({**nodes, **more})
        files.append(plan.software["pytorch"].file.path.stem)
    assert files == ["pytorch-cuda", "pytorch-cuda12"]
    sliced = {**nodes, "gres": "gpu:a100_3g.20gb"}
    plan = made_on(sliced, suite="quick_gpu", frameworks="pytorch")
    assert {case.devices for case in plan.folders} == {1}
    assert "one instance of MIG" in said(plan)


def test_commands_that_make_suites_begin_with_that_for_gpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", fake_gpus.install(tmp_path, MACHINES["1_rtx_5090"]), prepend=":")
    for accelerator, name in (("auto", "quick_gpu"), ("cpu", "quick")):
        arguments = ["suite=quick", f"accelerator={accelerator}"]
        settings, written = snakemake_calls.settings_of(arguments, CATALOG, {})
        assert settings.suite.name == name
        assert "on_gpus" not in written
    suite = tmp_path / "mine.yaml"
    suite.write_text(yaml.safe_dump({"on_gpus": "quick_gpus", "axes": {"batch_per_device": [2]}}))
    with pytest.raises(ConfigError, match=r"mine.yaml: on_gpus: found 'quick_gpus'.* allowed: "):
        load_settings({**CONFIG, "suite": str(suite)}, CATALOG)


def test_no_cpu_takes_the_place_of_hidden_gpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = MACHINES["8_h100_r580"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "6,7")
    text = said(on(tmp_path, monkeypatch, listed))
    assert "on 2 GPUs" in text
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(ConfigError, match=r"hides all 8 GPUs; allowed: .*, or cpu"):
        on(tmp_path, monkeypatch, listed)
    assert on(tmp_path, monkeypatch, listed, accelerator="cpu").capacity.accelerator == "cpu"
