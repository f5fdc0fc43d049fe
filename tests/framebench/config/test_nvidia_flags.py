"""The page of NVIDIA's flags lists all of them, and names only existing things here."""

from __future__ import annotations

import re

import pytest
from core import inputs
from core.precisions import known as precisions
from framebench.config.settings import Configuration
from framebench.config.suite import SuiteFile
from framebench.config.suite_axes import AxesKeys
from framebench.tables import registry
from harness import kinds
from harness.learning.rates import schedule_of

from ...conftest import ROOT
from ..settings import CATALOG

PAGE = (ROOT / "docs/nvidia.md").read_text()
#: Flags of each program with their values, by words of its heading.
FLAGS = {
    "MXNet ResNet-50": (
        "-n -b -i --benchmark-iters -e --epochs -w --warmup -o --timeout "
        "--mode=train,val,train_val --executable --num-examples --num-epochs -l --lr-schedule "
        "--seed --data-root --dtype=float16,float32 --kv-store=horovod,device "
        "--launcher=horovod,slurm --data-backend=dali-gpu,dali-cpu,mxnet,synthetic --mixup "
        "--label-smoothing --wd --mom"
    ),
    "run_pretraining.py": (
        "--model_name --model_size=base,large --pretrain_tfrecords --phase2 --fp16_compression "
        "--amp --xla --seed --num_train_steps --num_warmup_steps --learning_rate "
        "--train_batch_size --max_seq_length --mask_prob --disc_weight --generator_hidden_size "
        "--log_freq --save_checkpoints_steps --steps_this_run --keep_checkpoint_max "
        "--restore_checkpoint --load_weights --weights_dir --optimizer=adam,lamb --skip_adaptive "
        "--gradient_accumulation_steps --lr_decay_power --opt_beta_1 --opt_beta_2 --end_lr "
        "--log_dir --results_dir --skip_checkpoint --json-summary"
    ),
    "benchmark_pretraining.sh": (
        "<train_batch_size_p1> amp tf32 fp32 xla no_xla <num_gpus> <accumulate_gradients> "
        "<gradient_accumulation_steps_p1> <train_batch_size_p2> <gradient_accumulation_steps_p2> "
        "<base>"
    ),
    "run_tf_squad.py": (
        "--data_dir --version_2_with_negative --init_checkpoint --train_batch_size "
        "--max_seq_length --doc_stride --max_query_length --max_answer_length --num_train_epochs "
        "--learning_rate --warmup_proportion --weight_decay_rate --layerwise_lr_decay "
        "--joint_head --beam_size --n_best_size --predict_batch_size --seed "
        # of benchmark_squad.sh, by their places
        "train eval <num_gpus> <infer_batch_size> amp tf32 fp32 <checkpoint_to_load> <cache_Dir>"
    ),
}
#: Names in the documentation of input that a row may use.
OF_INPUT = (ROOT / "docs/input.md").read_text()
#: NVIDIA's own terms, and files that a run leaves.
THEIRS = {"-i", "-w", "-i 500 -e 3 -w 1", "results/tables", "results/report.html"}


def rows(section: str) -> list[tuple[str, str]]:
    """Return NVIDIA's cell and ours of each row below the heading that contains ``section``."""
    parts = re.split(r"^##+ ", PAGE, flags=re.M)[1:]
    (actual,) = (part for part in parts if section in part.partition("\n")[0])
    lines = [line for line in actual.splitlines() if line.startswith("| ") and "`" in line]
    split = [line.strip("| ").split(" | ") for line in lines]
    assert all(len(cells) == 2 for cells in split), split
    return [(theirs, ours) for theirs, ours in split if ours != "here"]


def words(cell: str) -> list[str]:
    return [word for code in re.findall(r"`([^`]+)`", cell) for word in code.split()]


@pytest.mark.parametrize("section", FLAGS)
def test_every_flag_has_a_row(section: str) -> None:
    cells = [words(theirs) for theirs, _ in rows(section)]
    lacking = []
    for flag in FLAGS[section].split():
        name, _, values = flag.partition("=")
        having = [cell for cell in cells if name in cell]
        there = {word.rstrip(",") for cell in having for word in cell}
        lacking += [flag] * (not having or not {*filter(None, values.split(","))} <= there)
    assert not lacking


def unknown(code: str, names: set[str]) -> bool:
    """Return whether a text between two backticks names nothing of ours."""
    if code in THEIRS or f"`{code}`" in OF_INPUT or (ROOT / code).exists():
        return False
    if code.startswith("--workflow-profile "):
        return not (ROOT / code.split()[1]).is_dir()
    if code.startswith("polynomial:"):
        return schedule_of(code) != code
    match = re.fullmatch(r'"?(\w+)"?(?:(?:=|: ?)(.+))?|(\[\w+\])', code)
    if not match or (match[1] or "synthetic") not in names:
        return True
    listed = re.findall(r"\[([\w, ]+)\]", match[2] or match[3] or "")
    values = [value for entry in listed for value in entry.split(", ")]
    return any(value not in names and not value.isdigit() for value in values)


def names_here() -> set[str]:
    """Return the relevant keys of configuration, suites and benchmarks, and their values."""
    model_configs = CATALOG.models.values()
    return {
        *AxesKeys.key_names(), *Configuration.key_names(), *SuiteFile.key_names(),
        *(one.name for kind in ("converge", "input") for one in kinds.load(kind).parameters),
        *(name for fact in model_configs for name in fact.get("hyperparameters", {})),
        *precisions(), *CATALOG.models, *CATALOG.compilers, *registry.known(),
        *("converge", "input", "train", "inference"), *inputs.NAMES,
        *(path.stem for path in ROOT.glob("config/suites/*.yaml")),
    }  # fmt: skip


@pytest.mark.parametrize("section", FLAGS)
def test_what_a_row_names_is_there(section: str) -> None:
    names = names_here()
    actual = {
        code: theirs
        for theirs, ours in rows(section)
        for code in re.findall(r"`([^`]+)`", ours)
        if unknown(code, names)
    }
    assert not actual


@pytest.mark.parametrize(
    "code",
    ["precison: [amp]", "precision: [fp17]", "batch", "--profile nowhere", "[int8]",
     "model: [electra_huge]", "scripts/none.json", "learning_rates"],
)  # fmt: skip
def test_what_is_not_there_is_found(code: str) -> None:
    """Fail if a planted unknown name is not found."""
    assert unknown(code, names_here())
