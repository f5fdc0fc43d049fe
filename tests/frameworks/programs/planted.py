"""Mistakes in PyTorch's adapter that patch what it does, and the comparison that must show them."""

import torch
from harness.kinds.verification import ReferenceFolder, compare
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

from .comparing import started
from .prelude import load_model_config


def average_twice(adapter):
    make = adapter._differentiation

    def differentiation(model):
        differentiate = make(model)

        def halved():
            loss = differentiate()
            for parameter in adapter._model.parameters():
                parameter.grad /= 2
            return loss

        return halved

    several = adapter.rank_context.world_size > 1 and adapter.case.accumulation > 1
    adapter._differentiation = differentiation if several else make


def repeat_masks(adapter):
    loss, states = adapter._loss, {}

    def of_micro_step(model, number):
        if number:
            torch.set_rng_state(states[0])
        states[0] = torch.get_rng_state()
        return loss(model, number)

    adapter._loss = of_micro_step


def lose_momentum(adapter):
    make = adapter._steps.updating

    def updating(optimizer, **options):
        update, steps = make(optimizer=optimizer, **options), iter(range(100))

        def forgetful():
            if next(steps) % 4 == 3 and adapter.rank_context.world_size > 1:
                optimizer.state.clear()
            update()

        return forgetful

    adapter._steps.updating = updating


def spoil_third_sample(adapter):
    moved = adapter._moved

    def spoiled(batch):
        images = batch["images"].copy()
        images[2:] *= 0.9
        return moved({**batch, "images": images})

    adapter._moved = spoiled


def ignore_second_rate(adapter):
    change, left = adapter.set_learning_rate, [1]

    def once(rate):
        if left:
            left.pop()
            change(rate)

    adapter.set_learning_rate = once


def harden_labels(adapter):
    loss = adapter._definition.loss

    def hardened(outputs, batch, model_config):
        labels = batch["labels"]
        labels = labels.argmax(1) if labels.ndim > 1 else labels
        return loss(outputs, {**batch, "labels": labels}, model_config)

    adapter._definition.loss = hardened


def round_for_all_reduce(adapter):
    wrap = adapter._data_parallel.wrap

    def hook(state, bucket):
        bucket.buffer().copy_(bucket.buffer().bfloat16())
        return default_hooks.allreduce_hook(None, bucket)

    def wrapped(*arguments, **options):
        model = wrap(*arguments, **options)
        model.register_comm_hook(None, hook)
        return model

    adapter._data_parallel.wrap = wrapped


def compare_patched(reference, patch, config_name="model_config", **options):
    """Compare the adapter with what the function named ``patch`` changes; "" for no mistake."""
    actual = ReferenceFolder(reference)
    adapter = started(load_model_config(reference, config_name), **options)
    if patch:
        globals()[patch](adapter)
    adapter.build(actual.prepare(adapter))
    return {"errors": compare(adapter, actual, print)}
