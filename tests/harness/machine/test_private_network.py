"""Private network of one node's ranks: their ports are reachable only within it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from harness import launcher
from harness.machine import interfaces
from harness.processes import private_network as module
from harness.processes.private_network import PrivateNetwork, private_network
from harness.request.declaration import read_framework

from ...bench import ROOT, Bench
from ...processes import PATIENCE
from ..starting import start_program


@pytest.fixture(scope="module")
def network() -> Iterator[PrivateNetwork]:
    own = interfaces.addresses()
    with private_network(sorted({own[name] for name in own if name != "lo"})) as created:
        if created.enter is None:
            pytest.skip(created.refused)
        yield created


def addresses() -> list[str]:
    return [*interfaces.addresses().values()]


def served(address: str, call: str, enter: Callable[[], None] | None) -> subprocess.Popen[str]:
    return start_program("accept_one", address, call, preexec_fn=enter)


def reached(address: str, enter: Callable[[], None] | None) -> bool:
    """Return whether this process reaches a listener at ``address``."""
    with served(address, "wait", enter) as server:
        assert server.stdout is not None
        try:
            socket.create_connection((address, int(server.stdout.readline())), timeout=60).close()
        except OSError:
            return False
        finally:
            server.kill()
    return True


@pytest.mark.parametrize("everywhere", [False, True])
def test_nobody_outside_reaches_what_listens_in_it(
    network: PrivateNetwork, everywhere: bool
) -> None:
    listening = "0.0.0.0" if everywhere else "127.0.0.1"
    assert reached(listening, None), "nobody would reach it anyway"
    assert not reached(listening, network.enter)


def test_those_in_it_reach_each_other_at_every_address_of_the_machine(
    network: PrivateNetwork,
) -> None:
    assert "127.0.0.1" in addresses()
    for address in addresses():
        with served(address, "call", network.enter) as server:
            printed, _ = server.communicate(timeout=PATIENCE)
        assert printed.split()[1:] == ["called"], address


def test_who_enters_is_who_he_was(network: PrivateNetwork) -> None:
    code = "import os; print(os.geteuid(), os.getegid())"
    done = subprocess.run(
        [sys.executable, "-c", code], preexec_fn=network.enter, capture_output=True, text=True
    )
    assert done.stdout.split() == [str(os.geteuid()), str(os.getegid())]


def test_a_kernel_that_gives_none_is_no_reason_not_to_measure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "maker.py"
    program.write_text("print('the kernel gives this user none')")
    monkeypatch.setattr(module, "HERE", str(program))
    with private_network([]) as created:
        assert created.enter is None
        assert created.fields() == {"private": False, "reason": "the kernel gives this user none"}


def network_of(process: int | str) -> str:
    return os.readlink(f"/proc/{process}/ns/net")


def test_ranks_of_several_devices_of_one_node_have_one(toy: Bench, network: PrivateNetwork) -> None:
    launcher = toy.start("hang", devices_per_node=2)
    toy.wait_for_phase("warm-up", 2)
    ranks = [*toy.processes("RANK=0"), *toy.processes("RANK=1")]
    assert len(ranks) == 2
    actual = {network_of(rank) for rank in ranks}
    assert len(actual) == 1, "they cannot reach each other"
    assert actual != {network_of("self")}
    assert network_of(launcher.pid) == network_of("self"), "the launcher has work outside"
    launcher.send_signal(signal.SIGTERM)
    toy.finish(launcher)
    toy.assert_nothing_left()


@pytest.mark.parametrize("devices", [1, 2])
def test_the_record_says_whether_they_had_it(
    toy: Bench, network: PrivateNetwork, devices: int
) -> None:
    record = toy.run("", devices_per_node=devices).record
    assert (record["status"], record["reason"]) == ("ok", "")
    expected = {"private": True, "reason": ""} if devices == 2 else None
    assert record.get("network") == expected


def framework_with_open_ports(toy: Bench) -> Path:
    """Copy the toy with a declaration of what its ports give to any client."""
    folder = toy.folder / "toy"
    shutil.copytree(ROOT / "tests/frameworks/toy", folder)
    declared = json.loads((folder / "framework.json").read_text())
    declared["open_ports"] = "gives its toys to whoever connects"
    (folder / "framework.json").write_text(json.dumps(declared))
    return folder


@pytest.mark.parametrize("given", [{}, {"open_ports": "allow"}])
def test_open_ports_that_give_files_are_refused_unless_allowed(
    toy: Bench, given: dict[str, str]
) -> None:
    """Fail if open ports that give files are accepted without being allowed.
    Ranks on several nodes have no private network; no node is needed here."""
    folder = framework_with_open_ports(toy)
    options = {"framework": folder, "nodes": 2, "start_nodes": "false {nodes}", **given}
    record = toy.run("", **options).record
    assert not record["ranks"]
    if given:
        assert "0 of 2 nodes answered" in record["reason"]
        return
    assert record["status"] == "unsupported"
    assert "open to others (it has several nodes), and it gives its toys" in record["reason"]
    assert "allowed: with open_ports=true" in record["reason"]


def test_a_rank_says_where_it_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert f"127.0.0.1:{server.getsockname()[1]}" in interfaces.listening()
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as server:
        assert f"[::1]:{server.getsockname()[1]}" in interfaces.listening()


@pytest.mark.parametrize("framework", ["tensorflow", "tensorflow1", "mxnet"])
def test_without_namespaces_no_stranger_gets_at_files(framework: str) -> None:
    """Fail if strangers reach files without namespaces.
    Such frameworks are refused before a rank starts; the others only note the missing private
    network."""
    declared = read_framework(str(ROOT / "scripts/frameworks" / framework))
    others = read_framework(str(ROOT / "scripts/frameworks/pytorch"))
    for actual, is_refused in ((declared, True), (others, False)):
        request = SimpleNamespace(accelerator="cpu", open_ports="refuse")
        kind = SimpleNamespace(independent_ranks=False)
        task = SimpleNamespace(framework=actual, request=request, kind=kind)
        reason = launcher.exposed_by(task, "no namespaces here")  # type: ignore[arg-type]
        assert bool(reason) == is_refused
        request.open_ports = "allow"
        assert not launcher.exposed_by(task, "")  # type: ignore[arg-type]


def test_a_run_without_a_network_of_its_own_is_refused_before_a_rank_starts(toy: Bench) -> None:
    folder = framework_with_open_ports(toy)
    arguments = toy.command(framework=folder, devices_per_node=2)[2:]
    variables = toy.environment("")
    assert not start_program("run_without_namespaces", *arguments, env=variables).wait()
    record = toy.read_record()
    assert (record["status"], record["ranks"]) == ("unsupported", [])
    assert "open to others (the kernel gives none), and it gives its toys" in record["reason"]
    assert record["network"] == {"private": False, "reason": "the kernel gives none"}
    assert not toy.log.read_text(), "a rank was started"
