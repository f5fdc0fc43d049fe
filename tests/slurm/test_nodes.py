"""Each node of a real SLURM cluster is measured by its own runs."""

from __future__ import annotations

from ..workflow.conftest import ONE_RUN
from .project import OnCluster, hosts


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
