"""The test cluster is a real one: nodes, allocations, GPUs, network, failures."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..processes import wait_for
from . import configuration, isolation
from .cluster import NODES, Cluster, ClusterError
from .place import PLACES, Place

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parent / "programs"
SOON = 300.0  # seconds; generous, because others may use the machine


class Jobs:
    """Jobs whose output is kept, and which may wait for a release."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster = cluster
        self.folder = folder
        self.go = folder / "go"

    @property
    def waiting(self) -> str:
        """Shell code that holds a job until :meth:`let_go`."""
        return f"while [ ! -e {self.go} ]; do sleep 0.2; done"

    @property
    def mark(self) -> str:
        """Variable that marks what a killed node must take along."""
        return f"FRAMEBENCH_TEST={self.folder}"

    def marked(self) -> list[str]:
        """Return the marked processes of `sleep`."""
        actual = []
        for path in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                variables = (path / "environ").read_bytes().split(b"\0")
                if (path / "comm").read_text() == "sleep\n" and self.mark.encode() in variables:
                    actual.append(path.name)
        return actual

    def let_go(self) -> None:
        self.go.touch()

    def submit(self, script: str, *options: str) -> int:
        return self.cluster.submit(script, f"--output={self.folder}/%j.out", *options)

    def python(self, program: str, *arguments: str) -> str:
        """Return the command that runs a program."""
        return " ".join([sys.executable, "-I", str(PROGRAMS / program), *arguments])

    def output(self, number: int) -> str:
        file = self.folder / f"{number}.out"
        return file.read_text() if file.exists() else ""

    def state(self, number: int) -> str:
        return self.cluster.job(number).state

    def wait(self, number: int, *states: str) -> None:
        wait_for(lambda: self.state(number) in states, f"{self.cluster.job(number)} to be {states}")

    def completed(self, number: int) -> str:
        """Return the output of a job that ends well."""
        ended = ("COMPLETED", "FAILED", "CANCELLED", "NODE_FAIL", "TIMEOUT")
        self.wait(number, *ended)
        assert self.state(number) == "COMPLETED", self.output(number)
        return self.output(number)


@pytest.fixture
def jobs(cluster: Cluster, tmp_path: Path) -> Iterator[Jobs]:
    made = Jobs(cluster, tmp_path)
    yield made
    made.let_go()


def needs_own_network(cluster: Cluster) -> None:
    if cluster.shared:
        pytest.skip(f"nodes are no machines of their own here: {cluster.shared}")


def traces(place: Place) -> list[str]:
    """Return all traces of a cluster, found independently of its own search."""
    actual = [str(path) for path in (place.folder,) if path.exists()]
    actual += isolation.links(place.bridge)
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    actual += [line for line in mounts if str(place.folder) in line]
    mine = str(place.folder).encode() + b"/"
    for process in Path("/proc").glob("[0-9]*"):
        try:
            content = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
        except OSError:
            continue
        if mine in content:
            actual.append(content.replace(b"\0", b" ").decode("utf-8", "replace")[:200])
    return actual


def test_all_nodes_are_idle(cluster: Cluster) -> None:
    assert cluster.nodes() == dict.fromkeys(NODES, "idle")


def test_each_node_has_its_own_name_and_address(jobs: Jobs) -> None:
    needs_own_network(jobs.cluster)
    script = "hostname; hostname --all-ip-addresses; cat /proc/sys/kernel/hostname"
    numbers = {name: jobs.submit(script, f"--nodelist={name}") for name in NODES}
    for name, number in numbers.items():
        host, address, again = jobs.completed(number).split()
        assert (host, again) == (name, name)
        assert address == jobs.cluster.place.address(name)
    assert len({jobs.cluster.place.address(name) for name in NODES}) == len(NODES)


def test_a_node_sees_its_own_interfaces_and_processes_and_knows_the_others(jobs: Jobs) -> None:
    needs_own_network(jobs.cluster)
    script = "ls /sys/class/net; ls /sys/fs/cgroup | wc -l; cat /proc/1/comm; getent hosts n1 n4"
    output = jobs.completed(jobs.submit(script, "--nodelist=n2")).split()
    place = jobs.cluster.place
    assert output[:2] == ["eth0", "lo"]
    assert int(output[2]) == len(os.listdir("/sys/fs/cgroup"))
    assert output[3:] == ["sh", place.address("n1"), "n1", place.address("n4"), "n4"]


def test_srun_of_a_job_reaches_all_its_nodes(jobs: Jobs) -> None:
    script = "srun sh -c 'echo $SLURM_NODEID $SLURM_PROCID $SLURMD_NODENAME'"
    job = jobs.submit(script, "--nodes=2", "--ntasks-per-node=1", "--nodelist=n2,n3")
    assert sorted(jobs.completed(job).splitlines()) == ["0 0 n2", "1 1 n3"]


def test_srun_of_the_host_reaches_all_nodes(cluster: Cluster) -> None:
    ran = cluster.command("srun", "--nodes=4", "--ntasks=4", "printenv", "SLURMD_NODENAME")
    assert sorted(ran.stdout.split()) == list(NODES), ran.stderr


def test_jobs_never_share_a_gpu(jobs: Jobs) -> None:
    options = ("--nodelist=n1", "--gres=gpu:1", "--cpus-per-task=1")
    script = f'echo "<$CUDA_VISIBLE_DEVICES>"; {jobs.waiting}'
    first, second, third = (jobs.submit(script, *options) for _ in range(3))
    wait_for(lambda: jobs.output(first) and jobs.output(second), "two jobs to run")
    assert sorted([jobs.output(first), jobs.output(second)]) == ["<0>\n", "<1>\n"]
    assert jobs.state(third) == "PENDING"
    jobs.let_go()
    assert jobs.completed(third) in ("<0>\n", "<1>\n")


def test_a_job_waits_for_a_gpu_although_cores_are_free(jobs: Jobs) -> None:
    options = ("--nodelist=n1", "--cpus-per-task=1")
    script = 'echo "<$CUDA_VISIBLE_DEVICES>"'
    both = jobs.submit(f"{script}; {jobs.waiting}", "--gres=gpu:2", *options)
    wait_for(lambda: jobs.output(both) == "<0,1>\n", "a job to have both GPUs")
    assert jobs.completed(jobs.submit(script, *options)) == "<>\n"
    another = jobs.submit(script, "--gres=gpu:1", *options)
    wait_for(lambda: jobs.cluster.job(another).reason == "Resources", "SLURM to look at it")
    jobs.let_go()
    assert jobs.completed(another) == "<0>\n"


def test_a_job_has_only_the_cores_it_asked_for(jobs: Jobs) -> None:
    cores = os.cpu_count() or 1
    one, all_of_them = (jobs.submit("nproc", f"-c{n}") for n in (1, cores))
    assert jobs.completed(one) == "1\n"
    assert jobs.completed(all_of_them) == f"{cores}\n"


def test_tcp_between_nodes_and_with_the_host(jobs: Jobs) -> None:
    place, port = jobs.cluster.place, jobs.folder / "port"
    server = jobs.submit(jobs.python("serve_two.py", str(port)), "--nodelist=n2")
    wait_for(port.exists, "the server to listen")
    client = jobs.submit(
        jobs.python("call.py", place.address("n2"), port.read_text()), "--nodelist=n1"
    )
    assert jobs.completed(client).strip() == place.address("n1")
    with socket.create_connection((place.address("n2"), int(port.read_text())), 60) as connection:
        assert connection.recv(100).decode() == place.address()
    jobs.completed(server)


def test_tcp_from_a_node_to_the_host(jobs: Jobs) -> None:
    place = jobs.cluster.place
    with socket.create_server(("", 0)) as server:
        server.settimeout(SOON)
        port = server.getsockname()[1]
        job = jobs.submit(jobs.python("call.py", place.address(), str(port)), "--nodelist=n4")
        connection, (host, _) = server.accept()
        with connection:
            connection.sendall(b"welcome")
    assert host == place.address("n4")
    assert jobs.completed(job) == "welcome\n"


def test_a_killed_node_is_noticed_and_its_job_ends(jobs: Jobs) -> None:
    cluster = jobs.cluster
    script = f"srun env {jobs.mark} sleep 9999"
    job = jobs.submit(script, "--nodelist=n2,n3", "--ntasks-per-node=1")
    other = jobs.submit(jobs.waiting, "--nodelist=n4")
    wait_for(lambda: len(jobs.marked()) == 2, "both nodes to run their part")
    jobs.wait(other, "RUNNING")
    cluster.kill_node("n3")
    killed = time.monotonic()
    assert len(jobs.marked()) <= 1
    wait_for(lambda: cluster.nodes()["n3"].startswith("down"), "the node's death to be noticed")
    assert time.monotonic() - killed < SOON
    jobs.wait(job, "NODE_FAIL")
    wait_for(lambda: not jobs.marked(), "the rest of the job to end")
    assert jobs.state(other) == "RUNNING"
    cluster.start_node("n3")
    assert cluster.nodes()["n3"] == "idle"
    assert jobs.completed(jobs.submit("echo back", "--nodelist=n3")) == "back\n"


def test_a_job_that_may_be_requeued_outlives_its_node(jobs: Jobs) -> None:
    cluster = jobs.cluster
    job = jobs.submit(jobs.waiting, "--requeue", "--nodelist=n1")
    jobs.wait(job, "RUNNING")
    cluster.kill_node("n1")
    jobs.wait(job, "PENDING")


def test_the_controller_comes_back_with_its_jobs(jobs: Jobs) -> None:
    cluster = jobs.cluster
    job = jobs.submit(f"{jobs.waiting}; echo done")
    jobs.wait(job, "RUNNING")
    others = jobs.submit("echo after it", f"--dependency=afterok:{job}")
    cluster.restart_controller()
    assert (jobs.state(job), jobs.state(others)) == ("RUNNING", "PENDING")
    jobs.let_go()
    assert jobs.completed(job) == "done\n"
    assert jobs.completed(others) == "after it\n"


def test_a_node_taken_down_loses_its_job_and_comes_back(jobs: Jobs) -> None:
    cluster = jobs.cluster
    job = jobs.submit(jobs.waiting, "--nodelist=n1")
    jobs.wait(job, "RUNNING")
    cluster.down("n1")
    assert cluster.nodes()["n1"].startswith("down")
    jobs.wait(job, "NODE_FAIL")
    cluster.restart_controller()  # it hears from the node anew
    assert cluster.nodes()["n1"].startswith("down")
    cluster.up("n1")
    wait_for(lambda: cluster.nodes()["n1"] == "idle", "n1 to be idle")


def test_cancel_all(jobs: Jobs) -> None:
    options = ("--nodes=4", "--exclusive")
    running, pending = jobs.submit("sleep 9999", *options), jobs.submit("sleep 9999", *options)
    jobs.wait(running, "RUNNING")
    jobs.cluster.cancel_all()
    assert {jobs.state(running), jobs.state(pending)} == {"CANCELLED"}
    wait_for(lambda: set(jobs.cluster.nodes().values()) == {"idle"}, "nodes to be idle")


@pytest.mark.parametrize("isolated", [True, False], ids=["isolated", "by port"])
def test_a_second_cluster_runs_next_to_it_and_leaves_nothing(
    cluster: Cluster, tmp_path: Path, isolated: bool
) -> None:
    began = time.monotonic()
    with Cluster(isolated) as second:
        assert time.monotonic() - began < SOON
        assert second.place.number != cluster.place.number
        assert second.place.isolated == (isolated and not cluster.shared)
        assert second.nodes() == dict.fromkeys(NODES, "idle")
        jobs = Jobs(second, tmp_path)
        # Like Snakemake's jobs: without most of SLURM's variables.
        without = f"env --unset=SLURM_CONF --unset=SLURMD_NODENAME {jobs.mark}"
        script = f"{without} srun printenv SLURMD_NODENAME; {without} sleep 9999"
        job = jobs.submit(script, "--nodes=4", "--ntasks=4", "--nodelist=n1,n2,n3,n4")
        wait_for(lambda: sorted(jobs.output(job).split()) == list(NODES), "all nodes to run it")
        wait_for(lambda: jobs.marked(), "the job to go on")
        second.kill_node("n1")
        assert not jobs.marked()
        assert not second.place.processes("n1")
        assert second.place.processes("n2")
    assert traces(second.place) == []
    assert cluster.nodes() == dict.fromkeys(NODES, "idle")


def test_what_a_killed_session_left_is_removed_by_the_next(
    cluster: Cluster, tmp_path: Path
) -> None:
    session = subprocess.Popen(
        [sys.executable, PROGRAMS / "hold_cluster.py"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'scripts'}"},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert session.stdout
    with session.stdout:
        place = Place(int(session.stdout.readline()))
    session.send_signal(signal.SIGKILL)
    session.wait()
    assert place.processes()
    with Cluster() as after:
        pass
    assert traces(place) == []
    assert traces(after.place) == []


def test_a_daemon_that_does_not_start_is_an_error_that_says_why(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(configuration, "SLURM", configuration.SLURM + "NoSuchKey=1\n")
    before = {place.number for place in map(Place, range(PLACES)) if place.folder.exists()}
    with pytest.raises(ClusterError, match=r"(?s)slurmctld ended with status 1.*NoSuchKey"):
        Cluster().start()
    assert {p.number for p in map(Place, range(PLACES)) if p.folder.exists()} == before
