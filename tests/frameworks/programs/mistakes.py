"""Mistakes that are patched into adapters, and the comparisons that must show them."""

from harness.kinds.verification import ReferenceFolder, compare

from .comparing import started
from .prelude import load_model_config, module_of


def decay_half_more(adapter):
    adapter.model_config["hyperparameters"]["weight_decay"] *= 1.5


def mix_statistics_faster(adapter):
    adapter.model_config["hyperparameters"]["batch_norm_momentum"] *= 1.5


def drop_twice_as_much(adapter):
    adapter.model_config["hyperparameters"]["dropout"] *= 2


def average_twice(adapter):
    differentiate = adapter.differentiate

    def halved():
        handle = differentiate()
        for parameter in adapter._model.parameters():
            parameter.grad /= 2
        return handle

    if adapter.rank_context.world_size > 1 and adapter.case.accumulation > 1:
        adapter.differentiate = halved


def repeat_masks(adapter):
    import torch

    loss, states = adapter.loss, {}

    def of_micro_step(number):
        if number:
            torch.set_rng_state(states[0])
        states[0] = torch.get_rng_state()
        return loss(number)

    adapter.loss = of_micro_step


def share_masks(adapter):
    """Let each rank draw as the first."""
    import torch

    build = adapter.build

    def seeded(batch):
        build(batch)
        torch.manual_seed(1)

    adapter.build = seeded


def lose_momentum(adapter):
    update, steps = adapter.update, iter(range(100))

    def forgetful():
        if next(steps) % 4 == 3 and adapter.rank_context.world_size > 1:
            adapter._optimizer.state.clear()
        update()

    adapter.update = forgetful


def spoil_third_sample(adapter):
    feed = adapter.feed

    def spoiled(batch):
        images = batch["images"].copy()
        images[2:] *= 0.9
        feed({**batch, "images": images})

    adapter.feed = spoiled


def ignore_second_rate(adapter):
    change, left = adapter.set_learning_rate, [1]

    def once(rate):
        if left:
            left.pop()
            change(rate)

    adapter.set_learning_rate = once


def harden_labels(adapter):
    loss = adapter._definition.loss

    def hardened(outputs, batch):
        labels = batch["labels"]
        labels = labels.argmax(1) if labels.ndim > 1 else labels
        return loss(outputs, {**batch, "labels": labels})

    adapter._definition.loss = hardened


def round_for_all_reduce(adapter):
    wrap = module_of("devices").wrap

    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

    def hook(state, bucket):
        bucket.buffer().copy_(bucket.buffer().bfloat16())
        return default_hooks.allreduce_hook(None, bucket)

    def wrapped(*arguments, **options):
        model = wrap(*arguments, **options)
        model.register_comm_hook(None, hook)
        return model

    module_of("devices").wrap = wrapped


def accumulate_unasked(adapter):
    """Let MegEngine add the gradients of a step to those of the step before."""
    adapter.clear_gradients = lambda: None


def drop_views_of_buckets(adapter):
    """Let OneFlow's backward passes write gradients of their own, not into the buckets."""
    adapter.clear_gradients = lambda: adapter._optimizer.zero_grad(set_to_none=True)


def differentiate_alone(adapter):
    """Run Paddle's model without the wrapper that averages gradients."""
    build = adapter.build

    def unwrapped(batch):
        build(batch)
        # keep the wrapper, because gradients still call its hooks
        adapter.kept, adapter._wrapped = adapter._wrapped, adapter._network

    adapter.build = unwrapped


def clip_by_the_sum(adapter):
    """Let MXNet clip by the norm of the sum over ranks."""
    optimizer = module_of("steps").AdamW
    clip = optimizer.clip
    optimizer.clip = lambda self, gradients, scale: clip(self, gradients, 1.0)


def sum_in_mindspore(adapter):
    group = adapter._group
    adapter._group.average = lambda gradients: tuple(map(group.sum, gradients))


def sum_in_jax(adapter):
    """Let JAX sum gradients over the ranks by itself, before they are averaged."""
    module_of("sharded").Together.vary = lambda self, tree: tree


def sum_in_tensorflow(adapter):
    """Leave out that a rank's loss is a share of the mean over ranks."""
    steps = module_of("steps")
    training = steps.training

    def summed(definition, model, optimizer, *others):
        optimizer.scale_loss = lambda loss: loss * adapter.rank_context.world_size
        return training(definition, model, optimizer, *others)

    steps.training = summed


def sum_in_tensorflow1(adapter):
    devices = module_of("devices")
    all_reduce = devices.all_reduce
    devices.all_reduce = lambda tensor, context, key, mean: all_reduce(tensor, context, key, False)


def compare_patched(cases):
    """Compare the adapter as each case changes it: the name of a function here ("" for none), the
    folder of the reference, the name of the model config, and options."""
    errors = {}
    for patch, folder, config_name, options in cases:
        reference = ReferenceFolder(folder)
        adapter = started(load_model_config(folder, config_name), **options)
        if patch:
            globals()[patch](adapter)
        adapter.build(reference.prepare(adapter))
        errors[patch] = [options.get("precision", "fp32"), compare(adapter, reference, print)]
        adapter.stop()
    return {"errors": errors}
