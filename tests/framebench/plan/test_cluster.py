"""Requests of runs to a cluster."""

from __future__ import annotations

import itertools
import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from framebench.config.cluster import Cluster
from framebench.config.validation import ConfigError
from framebench.machine.local import Machine
from framebench.plan import plan_text, targets
from framebench.plan.plan import Plan
from framebench.runs import checks, commands, slurm
from framebench.runs.job_table import JobTable
from snakemake_executor_plugin_slurm import utils as plugin_utils
from snakemake_executor_plugin_slurm import validation as plugin

from ..settings import CATALOG, ROOT, changed, plan_of_suite, settings
from ..settings import plan as plan_of

GIVEN: dict[str, Any] = {"nodes": 4, "gpus_per_node": 8, "cores_per_node": 64, "memory_gib": 500}


def asked(nodes: int = 1, devices: int = 8, cuda: bool = True, **other: Any) -> dict[str, Any]:
    actual = Cluster(**{**GIVEN, **other}).resources(nodes, devices, 11, cuda)
    return {name: value for name, value in actual.items() if value is not None}


def test_nodes_are_asked_for_with_their_gpus() -> None:
    assert asked() == {
        "nodes": 1,
        "tasks": 1,
        "gres": "gpu:8",
        "tasks_per_gpu": 0,
        "mem_mb": 512000,
        "runtime": 11,
    }
    several = asked(nodes=4, devices=2)
    assert (several["nodes"], several["tasks"], several["mpi"]) == (4, 4, "srun")
    assert several["gres"] == "gpu:2", "is per node"


def job(**resources: Any) -> Any:
    return SimpleNamespace(resources=SimpleNamespace(**resources, get=resources.get))


@pytest.mark.parametrize(
    ("gres", "asked_for"),
    [
        ("gpu:h100", "gpu:h100:2"),
        ("gpu:a100.80", "gpu:a100.80:2"),
        ("gpu", "gpu:2"),
    ],
)
def test_a_run_asks_for_as_many_gpus_of_a_type_as_it_has_devices(gres: str, asked_for: str) -> None:
    actual = asked(devices=2, gres=gres)["gres"]
    assert actual == asked_for
    assert plugin_utils.set_gres_string(job(gres=actual)) == f" --gres={asked_for}"
    assert "gres" not in asked(devices=2, gres=gres, cuda=False)


@pytest.mark.parametrize("kind", ["nvidia_a100-sxm4-80gb", "a100_1g.10gb+me"])
def test_types_of_gpus_are_asked_for_as_nvml_names_them(kind: str) -> None:
    actual = asked(devices=2, gres=f"gpu:{kind}")
    assert "gres" not in actual
    plugin.validate_slurm_extra(job(slurm_extra=actual["slurm_extra"]))
    assert actual["slurm_extra"] == f"--gpus-per-node={kind}:2"
    described = Cluster(**{**GIVEN, "gres": f"gpu:{kind}"})
    beside = described.resources(1, 2, 11, True, "n7", "--exclusive --nice=3")["slurm_extra"]
    assert shlex.split(beside) == [
        *("--exclusive", "--nice=3", "--nodelist=n7", f"--gpus-per-node={kind}:2")
    ], "what the profile says is lost"
    assert "slurm_extra" not in asked(gres=f"gpu:{kind}", cuda=False)


@pytest.mark.parametrize(
    ("key", "value", "allowed"),
    [
        ("gres", "gpu:h100:4", "gpu or gpu:TYPE"),
        ("partition", "", "at least 1 character"),
    ],
)
def test_a_key_of_the_cluster_says_what_is_allowed(
    key: str, value: Any, allowed: str, tmp_path: Path
) -> None:
    with pytest.raises(
        ConfigError, match=rf"cluster.yaml .*: .*cluster.{key}.*; allowed: .*{allowed}"
    ):
        settings(tmp_path, cluster={**GIVEN, key: value})
    with pytest.raises(ConfigError, match=r"cluster.gres: .*gpus_per_node: 0"):
        settings(tmp_path, cluster={**GIVEN, "gpus_per_node": 0, "gres": "gpu:h100"})


def test_what_nobody_asks_for_is_left_to_default_resources() -> None:
    bare = Cluster(**GIVEN)
    usual = {"nodes", "tasks", "mpi", "mem_mb", "runtime"}
    assert {*bare.asked(cuda=False)} == usual
    assert {*bare.asked(cuda=True)} == usual | {"gres", "tasks_per_gpu"}
    assert {*bare.asked(cuda=False, each_node=True)} == usual | {"slurm_extra"}
    assert {*Cluster(**GIVEN, partition="gpu").asked(cuda=False)} == usual | {"slurm_partition"}


def test_every_command_that_measures_has_the_memory_limit(tmp_path: Path) -> None:
    suite = changed(batch_per_device=[2, "max"])
    options = {"cluster": {**GIVEN, "gpus_per_node": 0}, "memory_limit": "80%"}
    plan = plan_of(tmp_path, suite, machine=Machine(64, 0), **options)
    (compared, *_) = checks.full_size(plan, CATALOG)
    (peak, *_) = checks.peak_benchmarks(plan).values()
    for words in (
        commands.arguments(plan, plan.pending[0]),
        commands.search_arguments(plan, plan.unsearched[0].case),
        checks.verification_arguments(plan, compared, "reference"),
        checks.peak_arguments(plan, peak),
    ):
        actual = dict(itertools.pairwise(words))
        assert actual["--memory-limit"] == "419430400KiB", words


def planned(folder: Path, **given: Any) -> Plan:
    """Return the plan of nodes without GPUs; ``given``: keys of the cluster, ``run_seconds``."""
    limit = given.pop("run_seconds", 1800)
    described = {**GIVEN, "gpus_per_node": 0, **given}
    options = {"cluster": described, "time_limit": limit, "results": str(folder)}
    return plan_of(folder, machine=Machine(64, 0), **options)


@pytest.mark.parametrize(
    ("given", "minutes", "seconds"),
    [
        ({}, 35, 1800),
        ({"run_seconds": 60}, 6, 60),
        ({"time_limit": 6}, 6, 210),
        ({"time_limit": 1}, 1, 30),
    ],
)
def test_without_records_a_job_lasts_as_long_as_the_limit_of_its_run(
    given: dict[str, Any], minutes: int, seconds: float, tmp_path: Path
) -> None:
    plan = planned(tmp_path, **given)
    assert plan.node_hours(plan.pending[:1]) == pytest.approx(minutes / 60)
    (peak, *_) = checks.peak_benchmarks(plan).values()
    for arguments in (commands.arguments(plan, plan.pending[0]), checks.peak_arguments(plan, peak)):
        assert float(dict(itertools.pairwise(arguments))["--time-limit"]) == seconds < 60 * minutes


def test_a_plan_names_its_requests_and_a_ceiling_refuses_them(tmp_path: Path) -> None:
    plan = planned(tmp_path, most_node_hours=2)
    jobs = JobTable(plan, CATALOG).to_do
    asked = [job for job in jobs if job.nodes]
    assert {job.kind for job in asked} == {"run", "peak_flops", "verification", "reference"}
    hours = len(asked) * 35 / 60
    text = "\n".join(plan_text.total_lines(plan, jobs))
    assert f"at most {hours:.2f} node hours in all (most_node_hours: 2)" in text
    targets.check_node_hours(plan, asked[:3])
    with pytest.raises(ConfigError, match=r"found .* 2.33 node hours .* at most 2"):
        targets.check_node_hours(plan, asked[:4])
    unbounded = planned(tmp_path)
    targets.check_node_hours(
        unbounded, [asked[0]._replace(case=asked[0].case._replace(nodes=10**6))]
    )


def test_a_time_budget_is_counted_in_place_of_the_repeats_that_it_may_pay_for(
    tmp_path: Path,
) -> None:
    described = {**GIVEN, "gpus_per_node": 0, "most_node_hours": 5}
    options = {"cluster": described, "frameworks": "pytorch"}
    plan = plan_of_suite("quick", tmp_path, Machine(64, 0), **options)
    jobs = JobTable(plan, CATALOG).to_do
    asked = [job for job in jobs if job.nodes]
    assert sum(job.kind == "run" for job in asked) == len(plan.pending) < len(plan.reserve)
    minutes = plan.settings.cluster.minutes(plan.settings.seconds_per_run)
    hours = len(asked) * minutes / 60 + 600 / 3600
    assert f"at most {hours:.2f} node hours in all" in "\n".join(plan_text.total_lines(plan, jobs))


def test_slurm_that_does_not_answer_is_an_error_where_a_call_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    slurm.settle(tmp_path, print)  # SLURM is not even asked
    slurm.note("SLURM run ID: 57-cd\n", tmp_path)
    with pytest.raises(slurm.SlurmError, match="squeue"):
        slurm.settle(tmp_path, print)


def test_the_profile_has_the_settings_that_jobs_depend_on() -> None:
    """Without these settings a plan took 40 s, logs of waiting jobs vanished, or a cancelled job
    hung."""
    profile = yaml.safe_load((ROOT / "profiles" / "slurm" / "config.yaml").read_text())
    assert profile["slurm-init-seconds-before-status-checks"] <= 5
    assert profile["slurm-delete-logfiles-older-than"] == 0
    assert profile["slurm-status-command"] == "squeue"


def test_the_description_that_ships_has_every_key(tmp_path: Path) -> None:
    text = (ROOT / "profiles" / "slurm" / "cluster.yaml").read_text()
    shipped = yaml.safe_load(text)["cluster"]
    assert [*shipped] == [*Cluster.model_fields], "what a user edits names every key, in this order"
    settings(tmp_path, cluster=shipped)
