"""Settings of trainings (benchmark ``converge``) as columns, besides axes and conditions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePath
from typing import Any

from core.case import Case

from ..records.fields.curves import NO_TARGET
from .columns import NUMBER, TEXT, WHOLE, Column, Form, Row

#: Value of ``start`` for randomly initialised weights.
SCRATCH = "scratch"
#: Value of file and folder parameters for "none".
NO_FILE = "none"


def _why_no_target(row: Row) -> str:
    return "no target"


TARGET = Column(
    "target", NUMBER, "score that ends the training", form=Form(spec="g"), why=_why_no_target
)
#: Settings that cases with and without a target share.
RECIPE = (
    Column("epochs", WHOLE, "of training, at most", hoisted=True),
    Column(
        "epoch_steps", NUMBER, "steps of an epoch; nothing: as many as all samples make",
        title="steps of an epoch", hoisted=True, optional=True, form=Form(spec=".0f"),
    ),
    Column("schedule", TEXT, "of the learning rate", hoisted=True),
    Column("learning_rate", TEXT, "its peak; `model`: that of the model's facts", hoisted=True),
    Column(
        "warmup", NUMBER, "share of all steps in which the rate rises", hoisted=True,
        form=Form(spec="g"),
    ),
    Column(
        "learning_rate_batch", NUMBER, "samples of a step that the rate is for; others have it "
        "in proportion", "samples", hoisted=True, optional=True, form=Form(spec=".0f"),
    ),
    Column("weight_decay", TEXT, "`model`: that of the model's facts", hoisted=True),
    Column("momentum", TEXT, "`model`: that of the model's facts", hoisted=True),
    Column(
        "label_smoothing", NUMBER, "part of each answer spread over all classes", hoisted=True,
        form=Form(spec="g"), optional=True,
    ),
    Column(
        "mixup", NUMBER, "of Beta(mixup, mixup), by which images are mixed", hoisted=True,
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
        title="bad answers", hoisted=True, optional=True,
    ),
)  # fmt: skip
COLUMNS = (TARGET, *RECIPE)
NAMES = tuple(column.name for column in COLUMNS)


def cells(cases: Sequence[Case]) -> Callable[[Case], dict[str, Any]]:
    """Return a function that gives the values of COLUMNS for one of ``cases``.

    ``cases``: all cases of the table, because paths are shortened as far as they stay distinct."""
    parameters = [dict(case.parameters) for case in cases]
    starts = tails(given.get("start", NO_FILE) for given in parameters)
    folders = tails(given.get("data", NO_FILE) for given in parameters)

    def asked(case: Case) -> dict[str, Any]:
        given = dict(case.parameters)
        target, folder = given.get("target", NO_TARGET), given.get("data", NO_FILE)
        return {
            TARGET.name: None if target == NO_TARGET else target,
            "epochs": given.get("epochs"),
            "epoch_steps": given.get("epoch_steps") or None,
            "schedule": given.get("schedule", ""),
            "learning_rate": str(given.get("learning_rate", "")),
            "warmup": given.get("warmup"),
            "learning_rate_batch": given.get("learning_rate_batch") or None,
            "weight_decay": str(given.get("weight_decay", "")),
            "momentum": str(given.get("momentum", "")),
            "label_smoothing": given.get("label_smoothing") or None,
            "mixup": given.get("mixup") or None,
            "start": starts.get(given.get("start", NO_FILE), SCRATCH),
            "data_folder": folders.get(folder, ""),
            "bad_answers": "" if folder == NO_FILE else given.get("bad_answers", ""),
        }

    return asked


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
