"""Loading of images and tokens from files."""

import multiprocessing
import os
import shutil
import signal
import time

import numpy as np
from harness.samples import folder, tokens

from .prelude import module_of, started
from .ranks import answer
from .small import small_images


def load(roots, size, batch, seed, several):
    model_config = small_images()
    adapter = started(model_config)

    def loaded(root, split, workers, name=""):
        images = folder.scan(root, split)
        places = folder.places_of(len(images.paths), split, 0, seed, 0, 1)
        loads = folder.loads(images, places, split, 0, seed, batch, size, workers)
        fed = folder.checked(adapter, loads, root)
        if name:
            whole = [np.asarray(batch["images"]) for batch in folder.batches(adapter, loads, root)]
            np.save(name, np.concatenate(whole))
        return fed

    def reason(call, *arguments):
        try:
            call(*arguments)
        except Exception as error:
            return f"{type(error).__name__}: {error}"

    actual = {
        "train": loaded(roots["folder"], "train", 0, "train.npy"),
        "again": loaded(roots["folder"], "train", several),
        "val": loaded(roots["folder"], "val", 0, "val.npy"),
    }
    for name in ("tokens", "wide", "tokens"):
        data = tokens.scan(roots[name], "train")
        loads = tokens.loads(
            data, "train", 0, seed, 0, 1, 16, batch, several if name in actual else 0
        )
        actual[name + "-again" if name in actual else name] = tokens.checked(adapter, loads)

    # bad files: each ends a run with a message that names it, with every loader
    for name, workers in (("truncated", 0), ("text", several), ("empty", 0), ("unreadable", 0)):
        actual[name] = reason(loaded, roots[name], "train", workers)

    def begun(root):
        images = folder.scan(root, "train")
        places = np.tile(folder.places_of(len(images.paths), "train", 0, seed, 0, 1), 40)
        given = folder.batches(
            adapter, folder.loads(images, places, "train", 0, seed, 1, size, 1), root
        )
        next(given)
        return given

    shutil.copytree(roots["folder"], "vanishing")
    given = begun("vanishing")
    workers = multiprocessing.active_children()
    shutil.rmtree("vanishing/train")
    start = time.monotonic()
    actual["vanished"] = reason(lambda: list(given))
    actual["seconds"] = [time.monotonic() - start]
    actual["ended"] = [worker.exitcode for worker in workers]
    if adapter.case.framework in ("mindspore", "mxnet", "oneflow"):
        # Their loaders wait two minutes for a lost worker.
        return actual
    module_of("loader").TIMEOUT = 15  # seconds; only then does PyTorch look for a lost worker
    given = begun(roots["folder"])
    # PaddlePaddle and PyTorch would raise at any point of this program, not only where it waits.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for worker in multiprocessing.active_children():
        os.kill(worker.pid, signal.SIGKILL)
    start = time.monotonic()
    try:
        actual["loaded"] = len(list(given))
    except Exception as error:
        actual["killed"] = f"{type(error).__name__}: {error}"
        actual["seconds"].append(time.monotonic() - start)
        answer(**actual)
        for worker in multiprocessing.active_children():
            worker.kill()
        os._exit(0)  # ends without cleaning up a loader that lost a worker
    return actual
