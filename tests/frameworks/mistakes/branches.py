"""Mistakes in branches of the optimizers' formulas, by framework."""

from __future__ import annotations

from collections.abc import Sequence

from ..optimizers import BRANCHES
from .planted import Change, PlantedMistake

OPTIMIZERS, LAMB, ADAPTER, STEPS = "optimizers.py", "lamb.py", "adapter.py", "steps.py"
#: Mistakes that all frameworks can have.
UNDECAYED, DECAYED = "decay of what has none", "no decay of what has some"
UNCLIPPED, ALWAYS = "no clipping", "clipping that lengthens short gradients, too"
NESTEROV, DAMPENED = "momentum ahead by a step", "momentum dampened"
NO_WEIGHT, NO_CHANGE = "a ratio of 0 for zero weights", "an infinite ratio for no change"
NO_RATIO = "no ratio of norms"
SAME_RATE = "one learning rate for all steps"


def _mistake(
    about: str, optimizer: str, right: str, wrong: str, file: str = OPTIMIZERS
) -> PlantedMistake:
    return PlantedMistake(about, BRANCHES[optimizer], Change(file, right, wrong))


def _in_each(
    about: str, optimizers: Sequence[str], right: str, wrong: str, file: str = OPTIMIZERS
) -> Sequence[PlantedMistake]:
    """Return a mistake that several optimizers have in common, once for each."""
    return [_mistake(about, optimizer, right, wrong, file) for optimizer in optimizers]


MISTAKES: dict[str, Sequence[PlantedMistake]] = {
    "pytorch": [
        *_in_each(UNDECAYED, ("sgd", "adamw", "lamb"), "0.0 if without_decay else ", ""),
        *_in_each(
            DECAYED,
            ("sgd", "adamw", "lamb"),
            '0.0 if without_decay else hyper["weight_decay"]',
            "0.0",
        ),
        _mistake(NESTEROV, "sgd", "fused=True)", "fused=True, nesterov=True)"),
        _mistake(DAMPENED, "sgd", "fused=True)", "fused=True, dampening=0.5)"),
        *_in_each(UNCLIPPED, ("adamw", "lamb"), "if largest is None:", "if True:"),
        *_in_each(
            ALWAYS,
            ("adamw", "lamb"),
            "functools.partial(nn.utils.clip_grad_norm_, list(model.parameters()), largest)",
            "lambda: [p.grad.mul_(largest / total) for total in [nn.utils.get_total_norm([p.grad "
            "for p in model.parameters()])] for p in model.parameters()]",
        ),
        _mistake(NO_WEIGHT, "lamb", "(of_weights > 0) & (of_changes > 0)", "of_changes > 0", LAMB),
        _mistake(NO_CHANGE, "lamb", "(of_weights > 0) & (of_changes > 0)", "of_weights > 0", LAMB),
        _mistake(NO_RATIO, "lamb", 'if group["trust_ratio"]:', "if False:", LAMB),
        _mistake(
            "the first moment not corrected", "lamb", '1 - beta1 ** group["steps"]', "1.0", LAMB
        ),
        _mistake(
            "the second moment corrected as in the first step",
            "lamb",
            '1 - beta2 ** group["steps"]',
            "1 - beta2",
            LAMB,
        ),
        _mistake(SAME_RATE, "adamw", 'group["lr"] = rate *', 'group["lr"] *='),
        *(
            _mistake(about, "lamb", "of_weights / of_changes, 1.0)", wrong, LAMB)
            for about, wrong in (
                ("a ratio of 10 at most", "of_weights / of_changes, 1.0).clamp(max=10)"),
                ("a ratio of 0.01 at least", "of_weights / of_changes, 1.0).clamp(min=0.01)"),
                ("a norm of 10 at most", "of_weights.clamp(max=10) / of_changes, 1.0)"),
            )
        ),
        _mistake("the largest second moment", "adamw", "fused=True, **", "amsgrad=True, **"),
    ],
    "jax": [
        *_in_each(
            UNDECAYED,
            ("sgd", "adamw", "lamb"),
            "_others(hyper, NO_DECAY) if NO_DECAY in hyper else None",
            "None",
        ),
        *_in_each(
            DECAYED,
            ("sgd", "adamw", "lamb"),
            'add_decayed_weights(hyper["weight_decay"], mask)',
            "add_decayed_weights(0.0, mask)",
        ),
        _mistake(NESTEROV, "sgd", 'trace(hyper["momentum"])', 'trace(hyper["momentum"], True)'),
        _mistake(
            DAMPENED,
            "sgd",
            'optax.trace(hyper["momentum"])',
            'optax.ema(hyper["momentum"], debias=False)',
        ),
        *_in_each(
            UNCLIPPED, ("adamw", "lamb"), 'if hyper.get("clip_global_norm") is not None:', "if 0:"
        ),
        *_in_each(
            ALWAYS,
            ("adamw", "lamb"),
            "optax.clip_by_global_norm(",
            "optax.normalize_by_update_norm(",
        ),
        _mistake(
            NO_WEIGHT,
            "lamb",
            "optax.scale_by_trust_ratio()",
            "optax.stateless(lambda changes, weights: jax.tree.map(lambda change, weight: change * "
            "(jnp.linalg.norm(weight) / (jnp.linalg.norm(change) + 1e-30)), changes, weights))",
        ),
        _mistake(
            NO_CHANGE,
            "lamb",
            "optax.scale_by_trust_ratio()",
            "optax.stateless(lambda changes, weights: jax.tree.map(lambda change, weight: change * "
            "jnp.where(weight.any(), jnp.linalg.norm(weight) / jnp.linalg.norm(change), 1.0), "
            "changes, weights))",
        ),
        _mistake(NO_RATIO, "lamb", "optax.scale_by_trust_ratio()", "optax.identity()"),
        _mistake(SAME_RATE, "adamw", "_replace(moments=moments)", "_replace()", ADAPTER),
    ],
    "tensorflow": [
        _mistake(
            UNDECAYED,
            "sgd",
            "if self._use_weight_decay(self._trainable_variables[index]):",
            "if True:",
        ),
        _mistake(
            DECAYED,
            "sgd",
            "if self._use_weight_decay(self._trainable_variables[index]):",
            "if False:",
        ),
        _mistake(
            UNDECAYED,
            "adamw",
            "var_list=[named[name] for name in undecayed]",
            'var_names=["of none"]',
        ),
        _mistake(
            DECAYED,
            "adamw",
            "var_list=[named[name] for name in undecayed]",
            'var_names=[""]',
        ),
        _mistake(UNDECAYED, "lamb", "0.0 if n in undecayed else ", ""),
        _mistake(DECAYED, "lamb", "0.0 if n in undecayed else", "0.0 *"),
        _mistake(
            NESTEROV, "sgd", "momentum=self.momentum,", "momentum=self.momentum, use_nesterov=True,"
        ),
        _mistake(
            DAMPENED,
            "sgd",
            "            grad=gradient,\n            momentum",
            "            grad=gradient * (1 - self.momentum),\n            momentum",
        ),
        _mistake(
            UNCLIPPED, "adamw", 'global_clipnorm=hyperparameters.get("clip_global_norm"),\n', "\n"
        ),
        _mistake(UNCLIPPED, "lamb", 'global_clipnorm=hyper.get("clip_global_norm"),\n', "\n"),
        *_in_each(
            ALWAYS,
            ("adamw", "lamb"),
            "NameOf = Callable",
            "keras.optimizers.Optimizer._clip_gradients = lambda self, gradients: [\n"
            "    gradient * self.global_clipnorm / tf.linalg.global_norm(gradients)\n"
            "    for gradient in gradients\n"
            "]\n"
            "NameOf = Callable",
        ),
        _mistake(
            NO_WEIGHT, "lamb", "tf.logical_and(of_weight > 0, of_change > 0)", "of_change > 0"
        ),
        _mistake(
            NO_CHANGE, "lamb", "tf.logical_and(of_weight > 0, of_change > 0)", "of_weight > 0"
        ),
        _mistake(NO_RATIO, "lamb", "if self._scaled[index]:", "if False:"),
        _mistake(
            "the first moment corrected as in the second step",
            "lamb",
            "tf.pow(tf.cast(self.beta_1, variable.dtype), step)",
            "tf.pow(tf.cast(self.beta_1, variable.dtype), step + 1)",
        ),
        _mistake(
            "the second moment not corrected",
            "lamb",
            "tf.sqrt(square / (1 - tf.pow(tf.cast(self.beta_2, variable.dtype), step)))",
            "tf.sqrt(square)",
        ),
        _mistake(SAME_RATE, "adamw", "_optimizer.learning_rate = rate", "_rate = rate", ADAPTER),
    ],
    "paddle": [
        _mistake(
            UNDECAYED,
            "sgd",
            "parameter.regularizer = paddle.regularizer.L2Decay(0.0)",
            "pass",
        ),
        _mistake(DECAYED, "sgd", 'L2Decay(hyper["weight_decay"])', "L2Decay(0.0)"),
        _mistake(UNDECAYED, "adamw", "lambda name: name not in undecayed", "lambda name: True"),
        _mistake(DECAYED, "adamw", "lambda name: name not in undecayed", "lambda name: False"),
        _mistake(
            UNDECAYED, "lamb", "lambda parameter: parameter.name in without", "lambda _: False"
        ),
        _mistake(DECAYED, "lamb", "lambda parameter: parameter.name in without", "lambda _: True"),
        _mistake(NESTEROV, "sgd", "use_multi_tensor=True,", "use_nesterov=True,"),
        *_in_each(UNCLIPPED, ("adamw", "lamb"), "None if limit is None else", "None and"),
        *_in_each(
            ALWAYS,
            ("adamw", "lamb"),
            "nn.ClipGradByGlobalNorm(limit)",
            'type("Always", (nn.ClipGradByGlobalNorm,), {"_dygraph_clip": lambda _, pairs: [(p, g '
            "* (limit / sum((x * x).sum() for _, x in pairs) ** 0.5)) for p, g in pairs]})(limit)",
        ),
        _mistake(
            "no ratio of norms of what does not decay",
            "lamb",
            "always_adapt=not unscaled",
            "always_adapt=False",
        ),
        _mistake(SAME_RATE, "adamw", "self._optimizer.set_lr(rate)", "pass", ADAPTER),
    ],
    "mxnet": [
        *_in_each(UNDECAYED, ("sgd", "adamw"), "].wd_mult = 0.0", "].wd_mult = 1.0", ADAPTER),
        *_in_each(DECAYED, ("sgd", "adamw"), '"wd": hyper["weight_decay"]', '"wd": 0.0'),
        _mistake(NESTEROV, "sgd", "mx.optimizer.SGD(", "mx.optimizer.NAG("),
        _mistake(UNCLIPPED, "adamw", "if self.clip_global_norm is None:", "if True:"),
        _mistake(
            ALWAYS,
            "adamw",
            "self.clip_global_norm / (norm + 1e-6), 1.0)",
            "1e9, self.clip_global_norm / norm)",
        ),
        _mistake("the first moment not corrected", "adamw", "/ (1 - self.beta1**step)", ""),
        _mistake(
            "the second moment corrected as in the first step",
            "adamw",
            "math.sqrt(1 - self.beta2**step)",
            "math.sqrt(1 - self.beta2)",
        ),
        _mistake(SAME_RATE, "adamw", "set_rate(self._trainer, rate)", "set_rate", ADAPTER),
        _mistake("momentum of the rate before", "sgd", "momentum *= rate / before", "pass"),
    ],
    "oneflow": [
        *_in_each(UNDECAYED, ("sgd", "adamw"), ', "weight_decay": 0.0}', "}"),
        *_in_each(
            DECAYED,
            ("sgd", "adamw"),
            '"weight_decay": hyper["weight_decay"]',
            '"weight_decay": 0.0',
        ),
        _mistake(NESTEROV, "sgd", "momentum=hyper", "nesterov=True, momentum=hyper"),
        _mistake(DAMPENED, "sgd", "momentum=hyper", "dampening=0.5, momentum=hyper"),
        _mistake(UNCLIPPED, "adamw", "if limit is not None:", "if False:", STEPS),
        _mistake(ALWAYS, "adamw", ".clamp(max=1.0)", "", STEPS),
        _mistake(SAME_RATE, "adamw", 'group["lr"] = rate', "pass", ADAPTER),
    ],
    "tensorflow1": [
        _mistake(UNDECAYED, "sgd", "if var.name in self._undecayed:", "if False:"),
        _mistake(DECAYED, "sgd", "if var.name in self._undecayed:", "if True:"),
        _mistake(UNDECAYED, "adamw", "if var.name not in self._undecayed:", "if True:"),
        _mistake(DECAYED, "adamw", "if var.name not in self._undecayed:", "if False:"),
        _mistake(NESTEROV, "sgd", 'hyper["momentum"])', 'hyper["momentum"], use_nesterov=True)'),
        _mistake(UNCLIPPED, "adamw", "if limit is None else", "if True else", STEPS),
        _mistake(
            ALWAYS,
            "adamw",
            "tf.clip_by_global_norm(gradients, limit)[0]",
            "[g * limit / tf.global_norm(gradients) for g in gradients]",
            STEPS,
        ),
        _mistake(
            "the second moment corrected as in the first step",
            "adamw",
            "tf.sqrt(1.0 - beta2_power)",
            "tf.sqrt(1.0 - self._beta2_t)",
        ),
        _mistake(SAME_RATE, "adamw", "self._rate.load(rate, self._run)", "pass", ADAPTER),
    ],
    "megengine": [
        *_in_each(UNDECAYED, ("sgd", "adamw"), "0.0 if without else ", ""),
        *_in_each(DECAYED, ("sgd", "adamw"), '0.0 if without else hyper["weight_decay"]', "0.0"),
        _mistake(
            NESTEROV,
            "sgd",
            'momentum=hyper["momentum"]',
            'momentum=hyper["momentum"], nesterov=True',
        ),
        _mistake(UNCLIPPED, "adamw", "if limit is not None:", "if False:", ADAPTER),
        _mistake(
            ALWAYS,
            "adamw",
            "self._megengine.optimizer.clip_grad_norm(self._parameters.values(), limit)",
            "norm = sum((p.grad**2).sum() for p in self._parameters.values()) ** 0.5\n"
            "            for parameter in self._parameters.values():\n"
            "                parameter.grad *= limit / norm",
            ADAPTER,
        ),
        _mistake(
            "epsilon outside the roots of larger moments",
            "adamw",
            'eps=hyper["epsilon"]',
            'eps=10 * hyper["epsilon"]',
        ),
    ],
    "mindspore": [
        *_in_each(UNDECAYED, ("sgd", "adamw", "lamb"), "0.0 if name in undecayed else ", ""),
        *_in_each(
            DECAYED,
            ("sgd", "adamw", "lamb"),
            '0.0 if name in undecayed else hyper["weight_decay"]',
            "0.0",
        ),
        _mistake(
            NESTEROV,  # nn.Momentum takes it, and its kernel for CPUs ignores it
            "sgd",
            'nn.Momentum(groups, hyper["learning_rate"], hyper["momentum"])',
            'nn.SGD(groups, hyper["learning_rate"], hyper["momentum"], nesterov=True)',
        ),
        _mistake(
            DAMPENED,
            "sgd",
            'nn.Momentum(groups, hyper["learning_rate"], hyper["momentum"])',
            'nn.SGD(groups, hyper["learning_rate"], hyper["momentum"], 0.5)',
        ),
        *_in_each(UNCLIPPED, ("adamw", "lamb"), "if self._limit is not None:", "if False:"),
        *_in_each(
            ALWAYS,
            ("adamw", "lamb"),
            "ops.clip_by_global_norm(given, self._limit)",
            "tuple(g * (self._limit / sum((x * x).sum() for x in given) ** 0.5) for g in given)",
        ),
        _mistake(
            "the second moment corrected as in the first step",
            "adamw",
            "second**0.5 / first",
            "(1 - self._betas[1]) ** 0.5 / first",
        ),
        _mistake(NO_WEIGHT, "lamb", "if all(norms)", "if norms[1]"),
        _mistake(
            NO_CHANGE,
            "lamb",
            "norms[0] / norms[1] if all(norms)",
            '(norms[0] / norms[1] if norms[1] else float("inf")) if norms[0]',
        ),
        _mistake(NO_RATIO, "lamb", "else _ratio(parameter, change)", "else 1.0"),
        _mistake(
            "a ratio of 10 at most", "lamb", "norms[0] / norms[1]", "min(norms[0] / norms[1], 10.0)"
        ),
        _mistake(SAME_RATE, "adamw", "self._made.learning_rate = rate", "pass"),
    ],
}
