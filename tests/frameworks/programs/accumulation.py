"""Gradients added up over micro-steps."""

from harness.kinds.verification import ReferenceFolder, compare

from .prelude import RANK, batch_of, load_model_config, started
from .small import small_bert


def compare_mean(folder, compilers):
    """Compare the mean over two micro-steps with the reference's, by compiler."""
    reference, errors = ReferenceFolder(folder), {}
    for compiler in compilers:
        adapter = started(load_model_config(folder), compiler=compiler, steps=2)
        adapter.build(reference.prepare(adapter))
        errors[compiler] = ["fp32", compare(adapter, reference, print)]
    return {"errors": errors}


def train_together(compiler):
    """Train a step of three micro-steps on several ranks."""
    adapter = started(small_bert(layers=0), compiler=compiler, steps=3)
    adapter.build(batch_of(small_bert(layers=0), 6, rank=RANK))
    adapter.step()
    return {"checksum": adapter.weights_checksum(), "sent": sent_by(adapter)}


def sent_by(adapter):
    """Return how many messages PyTorch's step sends for each bucket; 1 for other frameworks."""
    if type(adapter).MODULE != "torch":
        return 1
    import torch

    with torch.autograd.profiler.profile() as profiled:
        adapter.step()
    sent = sum(event.name == "c10d::allreduce_" for event in profiled.function_events)
    return sent / len(adapter.gradient_messages())
