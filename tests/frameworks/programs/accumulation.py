"""Gradients added up over micro-steps."""

import contextlib
import inspect

from harness.adapter import EagerTraining
from harness.kinds.verification import ReferenceFolder, compare
from harness.measuring.verification.errors import compare_arrays

from .prelude import FRAMEWORK, RANK, batch_of, load_model_config, module_of, started
from .small import small_bert


@contextlib.contextmanager
def planted_in(steps, name, right, wrong):
    """Plant a mistake in a function of the adapter's module of steps within the context."""
    source = inspect.getsource(getattr(steps, name))
    assert right in source, right
    kept = dict(steps.__dict__)
    exec(source.replace(right, wrong), steps.__dict__)
    yield
    steps.__dict__.update(kept)


def spoil(adapter, about):
    """Plant a mistake in the micro-steps of a framework that runs operation by operation."""
    loss, backward, passes = adapter.loss, adapter.backward, []

    def every_other(loss):
        passes.append(loss)
        if len(passes) % 2:
            backward(loss)

    if about == "gradients added up":
        adapter.share = lambda value: value
    elif about == "one batch twice":
        adapter.loss = lambda number, alone=False: loss(0, alone)
    else:
        adapter.backward = every_other


def spoil_gradients(programs, about):
    """Plant a mistake in the micro-steps of MindSpore's ``programs``."""
    right = programs.differentiate

    def wrong(batches):
        if about == "gradients added up":
            loss, gradients = right(batches)
            return loss, [gradient * len(batches) for gradient in gradients]
        return right(batches[:1] * (2 if about == "one batch twice" else 1))

    programs.differentiate = wrong


def compare_mean(folder, compilers):
    """Compare the mean over two micro-steps with the reference's, by compiler."""
    reference, errors = ReferenceFolder(folder), {}
    for compiler in compilers:
        adapter = started(load_model_config(folder), compiler=compiler, steps=2)
        adapter.build(reference.prepare(adapter))
        errors[compiler] = ["fp32", compare(adapter, reference, print)]
    return {"errors": errors}


def find_mistakes(folder, compiler, mistakes):
    """Compare gradients with each mistake planted."""
    reference, errors = ReferenceFolder(folder), {}
    for about, mistake in mistakes.items():
        adapter = started(load_model_config(folder), compiler=compiler, steps=2)
        if isinstance(adapter, EagerTraining):
            spoil(adapter, about)
            adapter.build(reference.prepare(adapter))
        elif FRAMEWORK == "mindspore":
            adapter.build(reference.prepare(adapter))
            spoil_gradients(adapter._programs, about)
        else:
            steps = module_of("steps")
            name = "_accumulated" if hasattr(steps, "_accumulated") else "accumulated"
            with planted_in(steps, name, *mistake):
                adapter.build(reference.prepare(adapter))
        adapter.load_weights(dict(reference.arrays("weights")))
        wanted = reference.arrays("gradients-2")
        errors[about] = ["fp32", compare_arrays("gradients", adapter.gradients(), wanted, 0.05)]
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
