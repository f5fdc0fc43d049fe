"""Settings of trainings (benchmark ``converge``) as columns, besides axes and conditions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import Any

from core.case import Case

from ..records.fields.curves import NO_TARGET
from .columns import NUMBER, TEXT, WHOLE, Column, Form, Row, Value
from .results import CaseResult

#: Value of ``start`` for randomly initialised weights.
SCRATCH = "scratch"
#: Value of file and folder parameters for "none".
NO_FILE = "none"


def _given(name: str, nothing: Any = None) -> Value:
    """Return a function of a case that gives a parameter; None for ``nothing``, and without it."""

    def value(result: CaseResult) -> Any:
        found = dict(result.case.parameters).get(name)
        return None if found == nothing else found

    return value


def _text(name: str) -> Value:
    """Return a function of a case that gives a parameter as text; "" without it."""
    return lambda result: str(dict(result.case.parameters).get(name, ""))


def _bad_answers(result: CaseResult) -> str:
    is_read = dict(result.case.parameters).get("data", NO_FILE) != NO_FILE
    return _text("bad_answers")(result) if is_read else ""


TARGET = Column(
    "target",
    NUMBER,
    "score that ends the training",
    value=_given("target", NO_TARGET),
    form=Form(spec="g"),
    why=lambda row: "no target",
)
#: Settings that cases with and without a target share.
RECIPE = (
    Column("epochs", WHOLE, "of training, at most", value=_given("epochs"), hoisted=True),
    Column(
        "epoch_steps", NUMBER, "steps of an epoch; nothing: as many as all samples make",
        title="steps of an epoch",
        value=_given("epoch_steps", 0), hoisted=True, optional=True, form=Form(spec=".0f"),
    ),
    Column("schedule", TEXT, "of the learning rate", value=_text("schedule"), hoisted=True),
    Column(
        "learning_rate", TEXT, "its peak; `model`: that of the model config",
        value=_text("learning_rate"), hoisted=True,
    ),
    Column(
        "warmup", NUMBER, "share of all steps in which the rate rises",
        value=_given("warmup"), hoisted=True,
        form=Form(spec="g"),
    ),
    Column(
        "learning_rate_batch", NUMBER, "samples of a step that the rate is for; others have it "
        "in proportion", "samples",
        value=_given("learning_rate_batch", 0), hoisted=True, optional=True, form=Form(spec=".0f"),
    ),
    Column(
        "weight_decay", TEXT, "`model`: that of the model config",
        value=_text("weight_decay"), hoisted=True,
    ),
    Column(
        "momentum", TEXT, "`model`: that of the model config",
        value=_text("momentum"), hoisted=True,
    ),
    Column(
        "label_smoothing", NUMBER, "part of each answer spread over all classes",
        value=_given("label_smoothing", 0), hoisted=True,
        form=Form(spec="g"), optional=True,
    ),
    Column(
        "mixup", NUMBER, "of Beta(mixup, mixup), by which images are mixed",
        value=_given("mixup", 0), hoisted=True,
        form=Form(spec="g"), optional=True,
    ),
    Column(
        "start", TEXT, f"the file of weights that it starts from, by the last parts of its path "
        f"that tell it from others; `{SCRATCH}`: weights that are drawn", hoisted=True,
    ),
    Column(
        "data_folder", TEXT, "the folder of a task that is read from files, by the last parts of "
        "its path", title="data", hoisted=True, optional=True,
    ),
    Column(
        "bad_answers", TEXT, "what becomes of a question whose answers are not where its file says",
        title="bad answers", value=_bad_answers, hoisted=True, optional=True,
    ),
)  # fmt: skip
COLUMNS = (TARGET, *RECIPE)
NAMES = tuple(column.name for column in COLUMNS)


def paths(cases: Sequence[Case]) -> list[Row]:
    """Return starting checkpoint and data folder of each of ``cases``, which are all cases of a
    table.

    Paths are shortened to their ends as far as they stay distinct."""
    starts, folders = (
        [dict(case.parameters).get(name, NO_FILE) for case in cases] for name in ("start", "data")
    )
    start_of, folder_of = {NO_FILE: SCRATCH} | tails(starts), {NO_FILE: ""} | tails(folders)
    return [
        {"start": start_of[start], "data_folder": folder_of[folder]}
        for start, folder in zip(starts, folders, strict=True)
    ]


def is_started(case: Case) -> bool:
    """Return whether the training starts from weights in a file."""
    return bool(dict(case.parameters).get("start", NO_FILE) != NO_FILE)


def why_not_started(row: Row) -> str:
    """Return why there is no score before training."""
    return "from scratch" if row["start"] == SCRATCH else ""


def tails(paths: Iterable[str]) -> dict[str, str]:
    """Return the last parts of each path, as many as distinguish it from the others."""
    parts = {path: PurePath(path).parts for path in paths if path != NO_FILE}

    def tail(path: str) -> str:
        own = parts[path]
        for count in range(1, len(own)):
            if sum(other[-count:] == own[-count:] for other in parts.values()) == 1:
                return "/".join(own[-count:])
        return path

    return {path: tail(path) for path in parts}
