"""Mistakes in MXNet's adapter."""

from __future__ import annotations

from ..comparing import DROPOUT
from .planted import Change, PlantedMistake

BLOCK = "basic residual, halving"

MISTAKES = [
    PlantedMistake(
        "the sum over ranks",
        BLOCK,
        Change("steps.py", "trainer.update(ranks)", "trainer.update(1)"),
        ranks=2,
    ),
    PlantedMistake(
        "the masks of the heads in the order of the batch",
        "bert_base",
        Change(
            "models/bert.py",
            "F.repeat(ignored, repeats=self.heads, axis=0)",
            "F.tile(ignored, reps=(self.heads, 1, 1))",
        ),
    ),
    PlantedMistake(
        "scaled by the width of all heads",
        "bert_base",
        Change("models/bert.py", "(hidden // self.heads) ** -0.5", "hidden**-0.5"),
    ),
    PlantedMistake(
        "GELU approximated",
        "bert_base",
        Change(
            "models/bert.py",
            'F.LeakyReLU(x, act_type="gelu")',
            "0.5 * x * (1 + F.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x * x * x)))",
        ),
    ),
    PlantedMistake(
        "positions from one",
        "bert_base",
        Change("models/bert.py", "np.arange(sequence, dtype", "np.arange(1, sequence + 1, dtype"),
    ),
    PlantedMistake(
        "the residual after the normalisation",
        "bert_base",
        Change(
            "models/bert.py",
            "self.attention_norm(F.elemwise_add(x, self.dropout(self.attention(x, mask))))",
            "F.elemwise_add(x, self.attention_norm(self.dropout(self.attention(x, mask))))",
        ),
    ),
    PlantedMistake(
        "Gluon's own epsilon of the normalisation",
        "bert_base",
        Change("models/bert.py", ', epsilon=hyper["layer_norm_epsilon"]', ""),
    ),
    PlantedMistake(
        "masked positions of the first sequence in all",
        "bert_base",
        Change(
            "models/bert.py",
            '(first_rows + batch["masked_positions"])',
            'batch["masked_positions"]',
        ),
    ),
    PlantedMistake(
        "a single segment",
        "bert_base",
        Change(
            "models/bert.py",
            'batch["segment_ids"].astype(np.int32)',
            'np.zeros_like(batch["segment_ids"], np.int32)',
        ),
    ),
    PlantedMistake(
        "losses of both tasks in one mean",
        "bert_base",
        Change(
            "models/bert.py",
            "    masked = entropy(tokens.reshape((-3, 0)), labels[0]).mean()\n"
            "    return masked + entropy(next_sentence, labels[1]).mean()",
            "    masked = entropy(tokens.reshape((-3, 0)), labels[0])\n"
            "    return mx.nd.concat(masked, entropy(next_sentence, labels[1]), dim=0).mean()",
        ),
    ),
    PlantedMistake(
        "beginnings and ends of answers side by side",
        "bert_base_squad",
        Change(
            "models/bert.py",
            ".transpose((0, 2, 1))\n        return entropy(scores.reshape((-3, 0)), labels[0])",
            "\n        return entropy(scores.reshape((0, 2, -1)).reshape((-3, 0)), labels[0])",
        ),
    ),
    PlantedMistake(
        "biases drawn as matrices are",
        "bert_base",
        Change("models/bert.py", 'collect_params(".*weight")', 'collect_params(".*")'),
    ),
    PlantedMistake(
        "embeddings with Gluon's own initial values",
        "bert_base",
        Change("models/bert.py", 'collect_params(".*weight")', 'collect_params(".*dense.*weight")'),
    ),
    PlantedMistake(
        "GELU by erf",
        "gpt2_small",
        Change(
            "models/decoder.py",
            "0.5 * up * (1 + F.tanh(cubic))",
            '0.0 * cubic + F.LeakyReLU(up, act_type="gelu")',
        ),
    ),
    PlantedMistake(
        "a head that does not teach the embedding",
        "gpt2_small",
        Change(
            "models/decoder.py",
            "            x, tied_head,",
            "            x, F.BlockGrad(tied_head),",
        ),
    ),
    PlantedMistake(
        "residuals of what is normalised",
        "gpt2_small",
        Change(
            "models/decoder.py",
            "        y = self.attention(self.attention_norm(x), *positions)",
            "        x = self.attention_norm(x)\n        y = self.attention(x, *positions)",
        ),
    ),
    PlantedMistake(
        "initial values smaller by the layers alone",
        "gpt2_small",
        Change("models/decoder.py", '(2 * hyper["layers"]) ** -0.5', 'hyper["layers"] ** -0.5'),
    ),
    PlantedMistake(
        "the rotary base of the paper",
        "llama_8b",
        Change("models/decoder.py", "-np.log(self.base)", "-np.log(10000.0)"),
    ),
    PlantedMistake(
        "keys that are not turned",
        "llama_8b",
        Change(
            "models/decoder.py",
            "rotate(F, query, *angles), rotate(F, key, *angles)",
            "rotate(F, query, *angles), key",
        ),
    ),
    PlantedMistake(
        "epsilon outside the root",
        "llama_8b",
        Change(
            "models/decoder.py",
            "F.rsqrt(square + self.epsilon)",
            "1 / (F.sqrt(square) + self.epsilon)",
        ),
    ),
    PlantedMistake(
        "pooling that ends with the last whole window",
        "all_blocks",
        Change("models/cnn.py", '"full" if any(layer.attributes["extra"]) else "valid"', '"valid"'),
    ),
    PlantedMistake(
        "means without the padding",
        "all_blocks",
        Change("models/cnn.py", "count_include_pad=True", "count_include_pad=False"),
    ),
    PlantedMistake(
        "the mean of all heads' losses",
        "all_blocks",
        Change(
            "models/cnn.py", "value = value + weight *", "value = value + weight / len(heads) *"
        ),
    ),
    PlantedMistake(
        "the share of the new statistics as of the old",
        "resnet50_v1.5",
        Change(
            "models/cnn.py", '1.0 - layer.attributes["momentum"]', 'layer.attributes["momentum"]'
        ),
    ),
    PlantedMistake(
        "running statistics in training",
        "resnet50_v1.5",
        Change(
            "models/cnn.py", "return nn.BatchNorm(", "return nn.BatchNorm(use_global_stats=True,"
        ),
    ),
    PlantedMistake(
        "height for width",
        "resnet50_v1.5",
        Change("models/cnn.py", "images.transpose((0, 3, 1, 2))", "images.transpose((0, 3, 2, 1))"),
    ),
    PlantedMistake(
        "the batch's own statistics",
        "resnet50_v1.5",
        Change(
            "steps.py",
            "        outputs = model(*inputs)",
            "        with autograd.train_mode():\n            outputs = model(*inputs)",
        ),
        mode="inference",
    ),
    PlantedMistake(
        "Nesterov's momentum",
        BLOCK,
        Change("optimizers.py", "mx.optimizer.SGD(momentum", "mx.optimizer.NAG(momentum"),
    ),
    PlantedMistake(
        "no decay of biases",
        BLOCK,
        Change(
            "adapter.py",
            "            named[name].wd_mult = 0.0",
            "            named[name].wd_mult = 0.0\n"
            "        for name in named:\n"
            '            named[name].wd_mult = 0.0 if name.endswith("bias") else 1.0',
        ),
    ),
    PlantedMistake(
        "gradients as they were before",
        BLOCK,
        Change(
            "adapter.py",
            "        if len(parts) > 1:\n            for",
            "        if True:\n            for",
        ),
    ),
    PlantedMistake(
        "moments that are not corrected",
        "embedding",
        Change(
            "optimizers.py",
            "correction = math.sqrt(1 - self.beta2**step)",
            "correction, step = 1.0, 10**9",
        ),
    ),
    PlantedMistake(
        "epsilon before the correction",
        "embedding",
        Change("optimizers.py", "epsilon=self.epsilon * correction", "epsilon=self.epsilon"),
    ),
    PlantedMistake(
        "both betas one",
        "embedding",
        Change("optimizers.py", "beta2=self.beta2,", "beta2=self.beta1,"),
    ),
    PlantedMistake(
        "decay that knows no learning rate",
        "embedding",
        Change(
            "optimizers.py",
            "[r * d for r, d in zip(self._get_lrs(index), self._get_wds(index))]",
            "self._get_wds(index)",
        ),
    ),
    PlantedMistake(
        "decay in the gradient",
        "embedding",
        Change(
            "optimizers.py",
            "            grad,\n",
            "            [g + d * w for g, d, w in zip(grad, self._get_wds(index), weight)],\n",
        ),
        Change("optimizers.py", "wds=[r * d for", "wds=[0.0 * r * d for"),
    ),
    PlantedMistake(
        "every gradient scaled to the bound",
        "embedding",
        Change(
            "optimizers.py",
            "mx.nd.minimum(self.clip_global_norm / (norm + 1e-6), 1.0)",
            "self.clip_global_norm / (norm + 1e-6)",
        ),
    ),
    PlantedMistake(
        "the factor of the first step in all",
        "embedding",
        Change(
            "optimizers.py",
            "        if self.clip_global_norm is None:",
            '        if hasattr(self, "factor"):\n            return\n'
            "        if self.clip_global_norm is None:",
        ),
    ),
    PlantedMistake(
        "clipped by the norm of the sum over ranks",
        "embedding",
        Change("optimizers.py", "for x in chunks])) * scale", "for x in chunks]))"),
        ranks=2,
    ),
    PlantedMistake(
        "clipped by the norm of one rank",
        "embedding",
        Change(
            "adapter.py",
            "sum_over_ranks = self._group.sum_gradients if self._group else None",
            "sum_over_ranks = lambda own: (  # noqa: E731\n"
            "            self._trainer.optimizer.clip(own, 1.0), self._group.sum_gradients(own)\n"
            "        )",
        ),
        Change(
            "steps.py",
            "trainer.optimizer.clip(gradients, gradient_scale(trainer, ranks))",
            "pass",
        ),
        ranks=2,
    ),
    PlantedMistake(
        "one parameter that is not averaged",
        BLOCK,
        Change(
            "parallel/data_parallel.py", "zip(keys, gradients):", "zip(keys[1:], gradients[1:]):"
        ),
        ranks=2,
    ),
    PlantedMistake(
        "other initial values in each rank",
        BLOCK,
        Change(
            "adapter.py",
            "mx.random.seed(self.rank_context.seed)",
            "mx.random.seed(self.rank_context.seed + self.rank_context.rank)",
        ),
        ranks=2,
    ),
    PlantedMistake(
        "the same dropout in all ranks",
        "embedding",
        Change(
            "adapter.py",
            "self.rank_context.dropout_seed",
            "self.rank_context.seed + 1",
        ),
        ranks=2,
        config_name=DROPOUT,
    ),
    PlantedMistake(
        "the last micro-step's gradient alone",
        BLOCK,
        Change("adapter.py", 'parameter.grad_req = "add"', 'parameter.grad_req = "write"'),
        micro_steps=2,
    ),
    PlantedMistake(
        "gradients of the steps before",
        BLOCK,
        Change("steps.py", "            parameter.zero_grad()", "            pass"),
        micro_steps=2,
    ),
    PlantedMistake(
        "the first micro-batch in all micro-steps",
        BLOCK,
        Change(
            "adapter.py",
            "others = [steps.inference(self._model, inputs) for inputs, _ in parts[1:]]",
            "others = [self._forward for _ in parts[1:]]",
        ),
        micro_steps=2,
    ),
    PlantedMistake(
        "no dropout of attention",
        "bert_base",
        Change(
            "models/bert.py",
            "self.dropout(F.softmax(scores, axis=-1))",
            "F.softmax(scores, axis=-1)",
        ),
        config_name=DROPOUT,
    ),
    PlantedMistake(
        "one mask for all positions",
        "bert_base",
        Change(
            "models/bert.py",
            'nn.Dropout(hyper["dropout"])',
            'nn.Dropout(hyper["dropout"], axes=(1,))',
        ),
        config_name=DROPOUT,
    ),
    PlantedMistake(
        "dropout of the sum with the residual",
        "gpt2_small",
        Change(
            "models/decoder.py",
            "F.elemwise_add(x, self.dropout(y))",
            "self.dropout(F.elemwise_add(x, y))",
        ),
        config_name=DROPOUT,
    ),
    PlantedMistake(
        "dropout of half of the features",
        "all_blocks",
        Change("models/cnn.py", "F.Dropout(x, p=rate)", "F.Dropout(x, p=0.5)"),
        config_name=DROPOUT,
    ),
    PlantedMistake(
        "no dropout of auxiliary heads",
        "all_blocks",
        Change(
            "models/cnn.py",
            'rate = layer.attributes["rate"]',
            'rate = 0.0 if "head" in layer.name else layer.attributes["rate"]',
        ),
        config_name=DROPOUT,
    ),
    PlantedMistake(
        "dropout in inference",
        "gpt2_small",
        Change(
            "models/decoder.py",
            'nn.Dropout(hyper.get("dropout", 0.0))',
            'nn.HybridLambda(lambda F, x: F.Dropout(x, p=hyper.get("dropout", 0.0), '
            'mode="always"))',
        ),
        config_name=DROPOUT,
        mode="inference",
    ),
    PlantedMistake(
        "attention not scaled",
        "bert_base",
        Change("models/bert.py", "self.query(x) * self.scale", "self.query(x)"),
        precision="amp",
    ),
    PlantedMistake(
        "GELU approximated, in mixed precision",
        "bert_base",
        Change(
            "models/bert.py",
            'F.LeakyReLU(x, act_type="gelu")',
            "0.5 * x * (1 + F.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x * x * x)))",
        ),
        precision="amp",
        missed="moves the loss by 1e-4, bfloat16 by 2e-4; found in fp32, which runs the same code",
    ),
    PlantedMistake(
        "no dropout in training steps",
        "embedding",
        Change("steps.py", "with autograd.record():", "with autograd.record(train_mode=False):"),
        config_name=DROPOUT,
    ),
]
