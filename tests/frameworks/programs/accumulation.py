"""Gradients added up over micro-steps."""

import contextlib
import functools
import inspect

from harness.adapter import Mismatch
from harness.kinds.verification import ReferenceFolder, compare
from harness.measuring.verification.errors import compare_arrays
from harness.measuring.verification.shared_steps import check_micro_steps

from .prelude import RANK, batch_of, load_model_config, raised, started
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


def compare_mean(folder, compilers):
    """Compare the mean over two micro-steps with the reference's, by compiler."""
    reference, errors, counted = ReferenceFolder(folder), {}, {}
    for compiler in compilers:
        adapter = started(load_model_config(folder), compiler=compiler, steps=2)
        adapter.build(reference.prepare(adapter))
        errors[compiler] = ["fp32", compare(adapter, reference, print)]
        counted[compiler] = [len(adapter.step_matmuls()), len(adapter.micro_step_matmuls())]
    return {"errors": errors, "counted": counted}


def find_mistakes(folder, compiler, mistakes):
    """Compare gradients with each mistake planted, and count the micro-steps."""
    reference, errors, counted = ReferenceFolder(folder), {}, {}
    for about, mistake in mistakes.items():
        adapter = started(load_model_config(folder), compiler=compiler, steps=2)
        steps = adapter._steps
        name = "_accumulated" if hasattr(steps, "_accumulated") else "accumulated"
        with planted_in(steps, name, *mistake):
            adapter.build(reference.prepare(adapter))
        adapter.load_weights(dict(reference.arrays("weights")))
        wanted = reference.arrays("gradients-2")
        errors[about] = ["fp32", compare_arrays("gradients", adapter.gradients(), wanted, 0.05)]
        actual = 2, adapter.step_matmuls(), adapter.micro_step_matmuls()
        counted[about] = raised(Mismatch, functools.partial(check_micro_steps, *actual))
    return {"errors": errors, "counted": counted}


def count_messages(compiler, mistake):
    """Count the messages of gradients in a step of three micro-steps."""
    adapter = started(small_bert(layers=0), compiler=compiler, steps=3)
    with planted_in(adapter._steps, *mistake) if mistake else contextlib.nullcontext():
        adapter.build(batch_of(small_bert(layers=0), 6, rank=RANK))
        adapter.step()
        return {
            "messages": len(adapter.gradient_messages()),
            "sent": adapter.step_all_reduces(),
            "checksum": adapter.weights_checksum(),
        }
