"""Programs that generate text."""

import os

from harness.adapter import Unsupported
from harness.kinds.verification import ReferenceFolder, compare_generation

from .comparing import started as started_quickly
from .prelude import batch_of, load_model_config, raised, started
from .small import small_bert


def compare_caches(folders, half):
    def compared(folder, precision="fp32", mistaken=False):
        reference = ReferenceFolder(folder)
        adapter = started_quickly(load_model_config(folder), "inference", precision)
        batch = dict(reference.arrays("batch-0"))
        adapter.build(batch)
        if mistaken:  # the cache has the last token of the prompt twice
            make_cache, prefill = adapter.make_cache, adapter.prefill
            adapter.make_cache = lambda count: make_cache(count + 1)
            adapter.prefill = lambda: (prefill(), adapter.decode(batch["token_ids"][:, -1]))[1]
        return [precision, compare_generation(adapter, reference, print)]

    actual = {folder: compared(folder) for folder in folders}
    if half:
        actual["amp"] = compared(folders[-1], "amp")
    bert = started_quickly(small_bert(), mode="inference", precision="fp32")
    refused = raised(Unsupported, lambda: bert.make_cache(2))
    return {
        "found": actual,
        "refused": refused,
        "mistaken": compared(folders[0], mistaken=True),
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
