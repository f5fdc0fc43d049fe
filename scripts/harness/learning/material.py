"""Data and initial weights of a training."""

from __future__ import annotations

import os
from typing import Any, Dict

from tasks import Data, DataOptions, LearningTask, TaskError

from harness.adapter import Unsupported
from harness.kind import Context
from harness.learning import batches, safetensors, starting
from harness.samples import masking
from harness.samples.folder import SKIP

#: Value of a parameter without a folder or number.
NONE = "none"


def data_of(context: Context, task: LearningTask) -> Data:
    """Return the data of the model's task, from a folder if the model config says so.

    Raises :class:`Unsupported` where the folder is missing, :class:`harness.adapter.Mismatch` where
    the model does not take the data, and what the task raises."""
    model_config, length = context.workload.model_config, context.workload.case.sequence_length
    parameters = context.workload.parameters
    folder, skips = parameters["data"], parameters["bad_answers"] == SKIP
    reads = model_config.get("reads_files", False)
    if reads and folder == NONE:
        raise Unsupported(
            f"{task.name} is read from files, and no folder is named: say data=DIR, or --parameter "
            "data=DIR"
        )
    options = DataOptions(length, folder if reads else None, skips)
    data: Data = context.phase("task", lambda: task.data(options))
    # the model's random numbers are drawn later
    declared = [
        declaration
        for declaration in model_config["inputs"]
        if declaration["name"] not in masking.DRAWN
    ]
    for arrays in (data.train, data.held_out):
        batches.check_inputs(arrays, declared, length or 0)
    return data


def start_from(adapter: Any, path: str, alike: str) -> Dict[str, Any]:
    """Overwrite the built model's weights with those in a file; return notes for the record.

    ``path``: the file, or a folder with one whose name begins with ``alike``. Weights that the file
    lacks stay. Raises :class:`tasks.TaskError`."""
    drawn = {**adapter.weights(), **adapter.statistics()}
    start = starting.read(
        starting.file_of(path, alike), {name: array.shape for name, array in drawn.items()}
    )
    adapter.load_weights({**drawn, **start.weights})
    return start.notes


def leave(adapter: Any, folder: str, name: str) -> Dict[str, Any]:
    """Write weights and running statistics in a form that any framework can start from; return
    notes for the record. Raises :class:`tasks.TaskError` where they cannot be written."""
    path = os.path.join(folder, name + safetensors.SUFFIX)
    try:
        os.makedirs(folder, exist_ok=True)
        safetensors.write(path, {**adapter.weights(), **adapter.statistics()})
        return {"file": path, "sha256": safetensors.open_safetensors(path).sha256()}
    except OSError as error:
        raise TaskError(f"{error.filename or path}: {error.strerror}") from None
