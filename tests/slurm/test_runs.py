"""Suites on a real SLURM cluster: several nodes, shared allocations, devices, a scaling table."""

from __future__ import annotations

import json
import re
from itertools import combinations
from typing import Any

import yaml

from ..conftest import build_environment
from ..frameworks.models import BERT, small
from ..processes import PATIENCE, wait_for
from ..workflow.conftest import ONE_RUN, ROOT
from .conftest import OnCluster, hosts, overlap


def waiting(project: OnCluster) -> int:
    return sum(job.state == "PENDING" for job in project.cluster.queue())


def test_weak_scaling_over_one_to_four_nodes(slurm_project: OnCluster) -> None:
    slurm_project.suite(1, nodes=[1, 4])
    somebody = slurm_project.cluster.submit(
        "sleep 9999", "--nodes=4", "--exclusive", "--output=/dev/null"
    )
    workflow = slurm_project.start("weak_scaling", toy="sleep=0.3")
    wait_for(lambda: waiting(slurm_project) == 3, "two runs and a peak benchmark to wait")
    plan = slurm_project.run("plan", "--config", "results=elsewhere")
    assert "4n1g" in plan.stdout, plan.stdout
    assert "Left out" not in plan.stdout
    assert waiting(slurm_project) == 3
    reasons = {job.reason for job in slurm_project.cluster.queue() if job.state == "PENDING"}
    assert reasons <= {"Resources", "Priority"}, "the page says what these jobs wait for"
    slurm_project.cluster.command("scancel", str(somebody))
    output, _ = workflow.communicate(timeout=PATIENCE)
    assert workflow.returncode == 0, f"another call took jobs that waited with it: {output}"
    records = slurm_project.records()
    assert [record["status"] for record in records] == ["ok"] * 2, records
    for record in records:
        nodes = record["case"]["nodes"]
        assert [rank["rank"] for rank in record["ranks"]] == list(range(nodes))
        assert len(hosts(record)) == nodes
        assert hosts(record) <= {"n1", "n2", "n3", "n4"}
    for entry, other in combinations(records, 2):
        if hosts(entry) & hosts(other):
            assert not overlap(entry, other), "two runs at once on a node"
    weak = slurm_project.table("weak_scaling").set_index("nodes")
    assert float(weak.loc[1, "speedup"]) == 1
    assert 2 < float(weak.loc[4, "speedup"]) <= 4.25
    again = slurm_project.run("weak_scaling")
    assert "Nothing to be done" in again.stdout, again.stdout
    slurm_project.describe(memory_gib=9999)
    refused = slurm_project.run("weak_scaling", "--config", "results=elsewhere")
    assert refused.returncode != 0
    assert "Requested node configuration is not available" in refused.stdout, "as the page says"


def test_a_gpu_is_never_shared(slurm_project: OnCluster) -> None:
    slurm_project.cluster.reserve("June")
    # On the command line, because Snakemake passes the options on to a call's jobs.
    options = (
        "--reservation=June --licenses=toy-L:2 --exclude=n4 --hint=nomultithread "
        "--switches=1 --mail-user='a b' --mail-type=FAIL --nice=7 --network='c d'"
    )
    slurm_project.describe(nodes=2, gpus_per_node=2, gres="gpu:h100")
    slurm_project.suite(2, devices_per_node=[1, 2])
    arguments = "--config", "accelerator=cuda"
    refused = slurm_project.run("all", "--slurm-array-jobs=all", *arguments)
    assert refused.returncode != 0
    assert "--slurm-array-jobs: found 'all'; allowed: nothing" in refused.stdout, refused.stdout
    assert not slurm_project.project.records()
    defaults = (
        *("--default-resources", "constraint=rack1", "runtime=1"),
        f"slurm_extra={options!r}",
    )
    ran = slurm_project.run("--until", "benchmark", *defaults, *arguments, toy="sleep=0.3")
    assert ran.returncode == 0, ran.stdout
    records = slurm_project.records()
    assert [record["status"] for record in records] == ["ok"] * 4
    jobs = {int(record["environment"]["scheduler"]["job"]): record for record in records}
    shown = slurm_project.cluster.command("scontrol", "show", "job", str(min(jobs))).stdout
    (named,) = (
        re.sub(r"/r(\d+)\.json$", r"/\1", name).replace("/", "_")  # the wildcards of the rule
        for name, text in slurm_project.project.records().items()
        if json.loads(text) == jobs[min(jobs)]
    )
    assert re.search(rf"^ *Comment=.*{re.escape(named)} *$", shown, re.MULTILINE), shown
    for words in (
        *("Nice=7", "MailUser=a b MailType=FAIL", "Features=rack1", "Network=c d"),
        *("Reservation=June", "ExcNodeList=n4", "Licenses=toy-L:2", "Switches=1"),
        *("TresPerNode=gres:gpu:h100:", "ReqB:S:C:T=0:0:*:1"),  # one thread per core
    ):
        assert words in shown, shown
    for record in records:
        assert len(hosts(record)) == 1
        assert hosts(record) <= {"n1", "n2", "n3"}
    repeats = [jobs[number]["repeat"] for number in sorted(jobs)]
    assert repeats == [1] * 2 + [2] * 2, "repeats were not submitted round by round"
    ids = {
        id(record): {
            (host, gpu)
            for host in hosts(record)
            for gpu in record["environment"]["variables"]["CUDA_VISIBLE_DEVICES"].split(",")
        }
        for record in records
    }
    for record in records:
        assert len(ids[id(record)]) == record["case"]["devices_per_node"]
    at_once = [pair for pair in combinations(records, 2) if overlap(*pair)]
    assert at_once, "nothing ran at the same time"
    for entry, other in at_once:
        assert not ids[id(entry)] & ids[id(other)], "two runs had the same GPU"


def check_between_two_nodes(network: dict[str, Any], exchange: dict[str, Any]) -> None:
    assert len(network["ranks"][0]["network"]["connect_seconds"]) == 3
    assert network["metrics"]["connect_time"]["value"] > 0
    assert {block["at"]["bytes"] for block in exchange["ranks"][1]["blocks"]} == {8, 16, 32, 64}
    assert exchange["metrics"]["average_bus_bandwidth"]["value"] > 0
    for record in (network, exchange):
        assert len({node["node"] for node in record["nodes"]}) == 2


def test_real_frameworks_on_two_nodes(slurm_project: OnCluster) -> None:
    """Fail if a real framework does not train over two nodes, or mistakes the local rank for the
    global one, which differ with one device per node.
    They train a BERT without layers. Includes frameworks with other transports between nodes, and
    the network between two nodes, with and without a framework."""
    frameworks = ["pytorch", "mxnet", "jax"]
    for framework in frameworks:
        build_environment(framework)
    (slurm_project.folder / ".venvs").symlink_to(ROOT / ".venvs")
    (slurm_project.folder / "scripts" / "models" / f"{BERT}.json").write_text(
        json.dumps(small(BERT, layers=0))
    )
    between = {"nodes": [2], "devices_per_node": [1]}
    axes = {"framework": frameworks, "model": [BERT], "batch_per_device": [2], **between}
    square = [{"framework": ["pytorch"], "nodes": [2], "devices_per_node": [2]}]
    network = {"connections": 3}
    exchange = {"framework": "pytorch", "operation": "all_reduce", "largest_bytes": 64}
    short = {"blocks": 2, "block_seconds": 0.002}
    measurements = {
        "network": {**between, **network},
        "collective": {**between, **exchange, **short},
    }
    slurm_project.project.write_suite(
        {
            "steps": {"warmup": 1, "timed": 2},
            "repeats": 1,
            "axes": axes,
            "include": square,
            "exclude": [{"framework": ["pytorch"], "model": [BERT], **between}],
            "measurements": measurements,
        }
    )
    ran = slurm_project.run("--until", "benchmark", "reference")
    assert ran.returncode == 0, ran.stdout
    logs = (slurm_project.folder / ".snakemake" / "log").glob("*.log")
    submitted = "".join(path.read_text() for path in logs)
    assert "/slurm_logs/rule_reference/" in submitted, "the login node computed the reference"
    records = {}
    for record in slurm_project.records():
        case = record["case"]
        topology = f"{case['nodes']}n{case['devices_per_node']}g"
        name = record["kind"], case["framework"], topology
        records[name] = record
        assert record["status"] == "ok", f"{name}: {record['reason']}"
        devices = case["nodes"] * case["devices_per_node"]
        assert [rank["rank"] for rank in record["ranks"]] == list(range(devices)), name
        assert len(hosts(record)) == case["nodes"], name
        assert hosts(record) <= {"n1", "n2", "n3", "n4"}, name
        if devices > 1 and case["model"]:
            assert all(len(rank["preflight"]) == 2 for rank in record["ranks"]), name
    check_between_two_nodes(
        records.pop(("network", None, "2n1g")), records.pop(("collective", "pytorch", "2n1g"))
    )
    assert {name[1:] for name in records} == {
        ("pytorch", "2n2g"), ("mxnet", "2n1g"), ("jax", "2n1g"),
    }  # fmt: skip


def test_rounds_of_a_time_budget_are_batches_of_jobs(slurm_project: OnCluster) -> None:
    slurm_project.suite(1, nodes=[1])
    suite = slurm_project.project.folder / "config" / "suites" / "toy.yaml"
    budgeted = yaml.safe_load(suite.read_text()) | {"time_budget": 600, "repeats": 3}
    budgeted["then"] = [{"nodes": [2]}]
    slurm_project.project.write_suite(budgeted)
    ran = slurm_project.run("medians", toy="sleep=0.1")
    assert ran.returncode == 0, ran.stdout
    records = sorted(slurm_project.records(), key=lambda record: record["started"])
    nodes = [(record["case"]["nodes"], record["repeat"]) for record in records]
    assert nodes[:2] == [(1, 1), (2, 1)], "one stage after the other, each once"
    assert sorted(nodes[2:]) == [(1, 2), (1, 3), (2, 2), (2, 3)], "then repeats for intervals"
    jobs = {record["environment"]["scheduler"]["job"] for record in records}
    assert len(jobs) == 6


def test_each_node_has_a_run_of_its_own_and_one_that_is_down_none(slurm_project: OnCluster) -> None:
    slurm_project.project.write_suite({**ONE_RUN, "nodes_named": "all"})
    for name in ("n1", "n3"):
        slurm_project.cluster.down(name)
    ran = slurm_project.run("--until", "benchmark")
    assert ran.returncode == 0, ran.stdout
    records = slurm_project.records()
    assert [record["status"] for record in records] == ["ok"] * 2, records
    assert {record["settings"]["node"] for record in records} == {"n2", "n4"}
    for record in records:
        assert hosts(record) == {record["settings"]["node"]}
        job = record["environment"]["scheduler"]["job"]
        shown = slurm_project.cluster.command("scontrol", "show", "job", job).stdout
        assert "OverSubscribe=NO" in shown, "the profile's slurm_extra is lost beside the node"
    plan = slurm_project.run("plan")
    assert "node n3 cannot be measured: SLURM says down, test" in plan.stdout, plan.stdout
    assert "To do: 0 runs" in plan.stdout or "2 ok" in plan.stdout, plan.stdout
