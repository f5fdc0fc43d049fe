"""Variables of the caller's environment are dropped, refused or recorded, by one list."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from harness import command_line, variables
from harness.processes.launch import common_environment
from harness.variables import is_recorded

from ..bench import Bench

#: Variables of each kind that ranks must not get, with harmful values.
LEFT_OUT = {
    "affinity": ("GOMP_CPU_AFFINITY=0", "KMP_AFFINITY=compact", "OMP_PLACES=cores"),
    "threads": ("OMP_NUM_THREADS=64", "MKL_DYNAMIC=TRUE", "TF_NUM_INTRAOP_THREADS=9"),
    "waiting": ("KMP_BLOCKTIME=0", "OMP_WAIT_POLICY=ACTIVE", "OMP_THREAD_LIMIT=1"),
    "python": ("PYTHONPATH=/x", "PYTHONHOME=/x", "PYTHONOPTIMIZE=2", "PYTHONIOENCODING=ascii"),
    "loader": ("LD_PRELOAD=/x.so", "LD_AUDIT=/x.so", "LD_DEBUG=all", "GLIBC_TUNABLES=x"),
    "locale": ("LC_ALL=de_DE", "LANG=C", "LC_NUMERIC=de_DE"),
    "proxies": ("http_proxy=http://u:p@x", "HTTPS_PROXY=x", "no_proxy=y"),
    "ranks": ("TF_CONFIG={}", "RANK=7", "DMLC_ROLE=server", "PADDLE_TRAINER_ID=3"),
    "profilers": ("CUDA_LAUNCH_BLOCKING=1", "CUDA_INJECTION64_PATH=/x.so"),
}
PASSED_ON = {
    "devices": ("CUDA_VISIBLE_DEVICES=1", "NCCL_SOCKET_IFNAME=eth1", "UCX_TLS=tcp"),
    "libraries": ("MKL_DEBUG_CPU_TYPE=5", "OPENBLAS_CORETYPE=Zen", "ONEDNN_MAX_CPU_ISA=AVX2"),
    "compilers": ("XLA_FLAGS=--xla_dump_to=x", "TORCH_LOGS=x", "TORCHDYNAMO_DISABLE=1"),
    "precision": ("NVIDIA_TF32_OVERRIDE=0", "DNNL_DEFAULT_FPMATH_MODE=BF16"),
    "paths": ("LD_LIBRARY_PATH=/x",),
}


def split(*pairs: str) -> dict[str, str]:
    return {name: value for name, _, value in (pair.partition("=") for pair in pairs)}


@pytest.mark.parametrize("kind", LEFT_OUT)
def test_what_is_dropped_reaches_no_rank(kind: str) -> None:
    environment = split(*LEFT_OUT[kind])
    actual = common_environment(environment, ["venv"], "cuda", None)
    assert not environment.items() & actual.items()


@pytest.mark.parametrize("kind", PASSED_ON)
def test_what_matters_is_passed_on_and_recorded(kind: str) -> None:
    variables = split(*PASSED_ON[kind])
    actual = common_environment(variables, ["venv"], "cuda", None)
    assert variables.items() <= actual.items()
    assert all(map(is_recorded, variables))


@pytest.mark.parametrize("own", [{}, {"NCCL_DEBUG": "INFO"}])
def test_nccl_prints_its_warnings_on_gpus(own: dict[str, str]) -> None:
    """Fail if a hang of NCCL leaves no reason in the log, or the user's level is replaced."""
    assert "NCCL_DEBUG" not in common_environment({}, ["venv"], "cpu", None)
    actual = common_environment(own, ["venv"], "cuda", None)["NCCL_DEBUG"]
    assert actual == own.get("NCCL_DEBUG", "WARN")


def test_software_and_models_of_the_users_keep_what_they_are_made_of() -> None:
    brought = split("PYTHONPATH=/x", "LD_PRELOAD=/x.so")
    assert variables.passed_on(brought, ["container"]) == brought
    proxies = split("https_proxy=http://x", "NO_PROXY=y")
    assert variables.passed_on(proxies, ["venv", variables.OWN_MODEL]) == proxies
    assert variables.passed_on(split("PYTHONOPTIMIZE=2"), ["container"]) == {}


def test_the_command_that_repeats_a_run_has_its_variables(toy: Bench) -> None:
    asked = command_line.parse([*toy.command(variable="OMP_STACKSIZE=16M")[2:]])
    repeated = command_line.repeating(asked)
    assert repeated[-2:] == ["--variable", "OMP_STACKSIZE=16M"]


def test_what_is_given_reaches_the_record_without_credentials(toy: Bench) -> None:
    dropped = {"KMP_AFFINITY": "compact", "GOMP_CPU_AFFINITY": "1", "LC_ALL": "C"}
    secret = {"NCCL_AUTH": "hush1", "NVIDIA_API_KEY": "hush2", "TF_GH_PAT": "hush3"}
    odd = {"MY_DB": "jdbc:x?user=u&password=hush4", "MY_PROXY": "https://hush5@host"}
    given = {"KMP_BLOCKTIME": "3", **odd}
    words = [word for item in given.items() for word in ("--variable", "=".join(item))]
    own = {**dropped, **secret}
    record = toy.run("", *words, install_method="venv", variables=own).record
    assert record["status"] == "ok", record["reason"]
    actual = record["environment"]["variables"]
    assert actual["KMP_BLOCKTIME"] == "3"
    assert not {*dropped} & {*actual}
    recorded = record["settings"]["variables"]
    assert {*recorded} == {*given}
    assert all(recorded[name].startswith("sha256:") for name in odd)
    assert "hush" not in json.dumps(record)


def test_a_library_that_is_preloaded_is_in_each_rank(toy: Bench, tmp_path: Path) -> None:
    """Fail if a run counts without the library: the linker only warns in the log."""
    mapped = re.search(r"(/\S+)/libc\.so\.6$", Path("/proc/self/maps").read_text(), re.MULTILINE)
    assert mapped
    link = tmp_path / "allocator.so"
    link.symlink_to(Path(mapped[1], "libBrokenLocale.so.1"))  # which nobody loads
    record = toy.run("", "--variable", f"LD_PRELOAD={link}", devices_per_node=2).record
    assert record["status"] == "ok", record["reason"]
    assert record["environment"]["variables"]["LD_PRELOAD"] == str(link)
    toy.output.unlink()
    link.unlink()
    link.write_text("no library")
    record = toy.run("", "--variable", f"LD_PRELOAD={link}").record
    assert record["status"] == "failed"
    assert record["reason"].endswith(f"LD_PRELOAD: {link} was not loaded")
