"""Programs that generate text."""

import os
import sys

from harness.adapter import Unsupported
from harness.kinds.verification import ReferenceFolder, compare_generation

from .comparing import started as started_quickly
from .prelude import batch_of, load_model_config, raised, started
from .small import small_bert


def compare_caches(folders, half, mistaken):
    def compared(folder, precision="fp32", copy=None):
        reference = ReferenceFolder(folder)
        adapter = started_quickly(load_model_config(folder), "inference", precision, folder=copy)
        adapter.build(dict(reference.arrays("batch-0")))
        return [precision, compare_generation(adapter, reference, print)]

    actual = {folder: compared(folder) for folder in folders}
    if half:
        actual["amp"] = compared(folders[-1], "amp")
    bert = started_quickly(small_bert(), mode="inference", precision="fp32")
    refused = raised(Unsupported, lambda: bert.make_cache(2))
    for name in [name for name in sys.modules if name.startswith("framework_under_test")]:
        del sys.modules[name]
    return {
        "found": actual,
        "refused": refused,
        "mistaken": compared(folders[0], copy=mistaken),
    }


def count_compilations(folder, dumped, compiler):
    """Count the programs that XLA has compiled after each token of two requests."""
    os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_dump_to=" + dumped
    os.mkdir(dumped)
    model_config = load_model_config(folder)
    adapter = started(model_config, mode="inference", compiler=compiler)
    adapter.build(batch_of(model_config))
    adapter.make_cache(6)
    programs = []
    for _ in range(2):
        for token in range(6):
            adapter.to_numpy(adapter.decode() if token else adapter.prefill())
            programs.append(len(os.listdir(dumped)))
    return {"programs": programs}
