"""Updates of each framework, refusals, and the mean of gradients, against the reference."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from harness.declaration import read_framework

from ..conftest import ROOT
from .comparing import beyond, compared
from .fork_server import ForkServer, ForkServers, served
from .models import EMBEDDING, small
from .optimizers import BRANCHES

ADAPTERS = ROOT / "scripts" / "frameworks"
#: ELECTRA without layers, which LAMB pre-trains, with a limit that clips, an epsilon of the
#: gradients' size and a large decay.
ELECTRA: dict[str, Any] = small(
    "electra_base", layers=0, dropout=0.0, clip_global_norm=0.1, epsilon=0.01, weight_decay=0.2
)
#: Hyper-parameters that make the update of each optimizer's reference wrong.
WRONG: dict[str, dict[str, Any]] = {
    "sgd": {"no_weight_decay": ["norm"]},
    "adamw": {"no_weight_decay": ["norm"]},
    "lamb": {"clip_global_norm": None},
    "layerwise_adamw": {"layer_decay": 1.0},
}

run = served(*sorted(path.parent.name for path in ADAPTERS.glob("*/framework.json")))
pytorch, paddle, oneflow = served("pytorch"), served("paddle"), served("oneflow")


def with_wrong_hyperparameters(folder: Path, into: Path, optimizer: str) -> Path:
    shutil.copytree(folder, into / optimizer)
    path = into / optimizer / "model_config.json"
    model_config = json.loads(path.read_text())
    model_config["hyperparameters"].update(WRONG[optimizer])
    path.write_text(json.dumps({**model_config, "name": f"wrong {optimizer}"}))
    return into / optimizer


def test_every_branch_is_the_references_and_a_wrong_one_is_found(
    run: ForkServer, branch_references: Path, tmp_path: Path
) -> None:
    declared = read_framework(str(ADAPTERS / run.framework))["optimizers"]
    right = {optimizer: branch_references / BRANCHES[optimizer] for optimizer in declared}
    wrong = [
        with_wrong_hyperparameters(folder, tmp_path, optimizer)
        for optimizer, folder in right.items()
    ]
    found = beyond(compared(run, [*right.values(), *wrong], modes=("train",)))
    assert {computation.partition(",")[0] for computation, *_ in found} == {
        f"wrong {optimizer}" for optimizer in declared
    }


def test_the_whole_gradient_is_clipped_over_ranks_and_micro_steps(pytorch: ForkServer) -> None:
    answers = pytorch("updates.clip_over_ranks", ranks=2, model_config=ELECTRA)
    wrong = {"of ranks", "of micro-steps", "of none"}
    for answer in answers:
        assert {computation for computation, *_ in beyond(answer["errors"])} == wrong
    assert len({answer["checksum"] for answer in answers}) == 1


def test_what_paddles_kernel_cannot_leave_out_is_unsupported(paddle: ForkServer) -> None:
    lists = {"no_weight_decay": ["norm"], "no_trust_ratio": ["bias"]}
    (actual,) = paddle("updates.refuse", model_config=ELECTRA, **lists)
    assert actual["reason"] == (
        "PaddlePaddle's Lamb applies trust ratios either to parameters with weight decay or to all"
    )


def test_lamb_with_shared_parameters_is_unsupported(pytorch: ForkServer) -> None:
    for answer in pytorch("updates.refuse", ranks=2, model_config=ELECTRA, parallelism="fsdp"):
        assert answer["reason"] == "LAMB's ratio of norms needs whole parameters, not parts"


def test_a_graph_that_clips_each_part_by_itself_is_unsupported(oneflow: ForkServer) -> None:
    hyper = {"no_weight_decay": ["norm"], "clip_global_norm": 1.0}
    encoder = small("span_encoder", layers=1, dropout=0.0)
    (actual,) = oneflow("updates.refuse", model_config=encoder, compiler="graph", **hyper)
    assert actual["reason"] == "nn.Graph clips parameters with and without weight decay separately"


COMPILERS = {
    "pytorch": ["none"],
    "jax": ["jit"],
    "tensorflow": ["none"],
    "mindspore": ["none", "jit"],
    "paddle": ["none", "to_static"],
    "mxnet": ["none", "hybridize"],
}


accumulating = served(*COMPILERS)


def test_the_mean_over_micro_steps_is_that_of_the_reference(
    accumulating: ForkServer, references: dict[str, Path]
) -> None:
    folder, compilers = str(references[EMBEDDING]), COMPILERS[accumulating.framework]
    (actual,) = accumulating("updates.compare_mean", folder=folder, compilers=compilers)
    assert not beyond(actual["errors"])
    for compiler in compilers:
        quantities = {error["quantity"] for error in actual["errors"][compiler][1]}
        assert {"gradients", "outputs", "loss", "two updates"} <= quantities


@pytest.mark.parametrize("framework", COMPILERS)
def test_gradients_go_to_the_other_rank_once(framework: str, fork_servers: ForkServers) -> None:
    """PyTorch adds up the same without `no_sync`, and sends gradients more than once."""
    run, compiler = fork_servers(framework), COMPILERS[framework][0]
    first, second = run("updates.train_together", ranks=2, compiler=compiler)
    assert first == {**second, "sent": 1}
