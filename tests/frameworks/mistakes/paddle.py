"""Mistakes in PaddlePaddle's adapter."""

from __future__ import annotations

from ..comparing import DROPOUT
from .planted import Change, PlantedMistake

BLOCK = "basic residual, halving"

MISTAKES = [
    PlantedMistake(
        "queries masked in place of keys",
        "bert_base",
        Change("models/bert.py", "unsqueeze([1, 2])", "unsqueeze([1, 3])"),
    ),
    PlantedMistake(
        "GELU of the masked positions approximated",
        "bert_base",
        Change(
            "models/bert.py",
            "F.gelu(self.transform(at(positions, x)))",
            "F.gelu(self.transform(at(positions, x)), approximate=True)",
        ),
    ),
    PlantedMistake(
        "a residual around the normalisation",
        "bert_base",
        Change(
            "models/bert.py",
            "return self.output_norm(x + self.dropout(self.output(F.gelu(self.intermediate(x)))))",
            "return x + self.output_norm(self.dropout(self.output(F.gelu(self.intermediate(x)))))",
        ),
    ),
    PlantedMistake(
        "Paddle's own epsilon of the normalisation",
        "bert_base",
        Change("models/bert.py", ', epsilon=hyper["layer_norm_epsilon"]', ""),
    ),
    PlantedMistake(
        "the optimizer's epsilon in the normalisation",
        "llama_8b",
        Change(
            "models/decoder.py",
            'RMSNorm(hyper["hidden"], hyper["norm_epsilon"])',
            'RMSNorm(hyper["hidden"], hyper["epsilon"])',
        ),
    ),
    PlantedMistake(
        "a head that does not teach the embedding",
        "bert_base",
        Change(
            "models/bert.py",
            "tied_logits(masked, self.embeddings.token.weight,",
            "tied_logits(masked, self.embeddings.token.weight.detach(),",
        ),
    ),
    PlantedMistake(
        "the sum of the next sentences' losses",
        "bert_base",
        Change(
            "models/bert.py",
            'F.cross_entropy(next_sentence, batch["next_sentence_labels"])',
            'F.cross_entropy(next_sentence, batch["next_sentence_labels"], reduction="sum")',
        ),
    ),
    PlantedMistake(
        "beginnings and ends of answers side by side",
        "bert_base_squad",
        Change("models/bert.py", ".transpose([0, 2, 1])\n", ".reshape([0, 2, -1])\n"),
    ),
    PlantedMistake(
        "the deviation of initial values as their mean",
        "bert_base",
        Change(
            "models/bert.py",
            'nn.initializer.Normal(std=hyper["initializer_range"])',
            'nn.initializer.Normal(hyper["initializer_range"])',
        ),
    ),
    PlantedMistake(
        "a bias that starts as a matrix",
        "bert_base",
        Change(
            "models/bert.py",
            'self.create_parameter([hyper["vocabulary"]], is_bias=True)',
            'self.create_parameter([hyper["vocabulary"]], '
            "default_initializer=nn.initializer.Normal(0.0, 0.02))",
        ),
    ),
    PlantedMistake(
        "uniform initial values of the same deviation",
        "bert_base",
        Change(
            "models/bert.py",
            'nn.initializer.Normal(std=hyper["initializer_range"])',
            'nn.initializer.Uniform(-(3**0.5) * hyper["initializer_range"], 3**0.5 * '
            'hyper["initializer_range"])',
        ),
    ),
    PlantedMistake(
        "heads and positions exchanged for attention",
        "gpt2_small",
        Change(
            "models/decoder.py",
            "            query,\n            key,\n            value,\n",
            "            *(part.transpose([0, 2, 1, 3]) for part in (query, key, value)),\n",
        ),
        Change(
            "models/decoder.py", "context.flatten(2)", "context.transpose([0, 2, 1, 3]).flatten(2)"
        ),
    ),
    PlantedMistake(
        "GELU by erf",
        "gpt2_small",
        Change("models/decoder.py", "F.gelu(up, approximate=True)", "F.gelu(up)"),
    ),
    PlantedMistake(
        "a last layer that is not normalised",
        "gpt2_small",
        Change(
            "models/decoder.py",
            "x = self.norm(x)\n        if self.head",
            "x = x + 0.0 * self.norm(x)\n        if self.head",
        ),
    ),
    PlantedMistake(
        "keys repeated in the order of the queries",
        "llama_8b",
        Change(
            "models/decoder.py",
            "paddle.repeat_interleave(tensor, self.sharing, 2)",
            "paddle.tile(tensor, [1, 1, self.sharing, 1])",
        ),
    ),
    PlantedMistake(
        "the rotary base of the paper",
        "llama_8b",
        Change("models/decoder.py", "frequencies = base **", "frequencies = 10000.0 **"),
    ),
    PlantedMistake(
        "neighbouring numbers turned, and left where they were",
        "llama_8b",
        Change(
            "models/decoder.py",
            'first, second = paddle.chunk(x.astype("float32"), 2, axis=-1)',
            'first, second = x.astype("float32")[..., ::2], x.astype("float32")[..., 1::2]',
        ),
        Change(
            "models/decoder.py",
            "paddle.concat(turned, axis=-1)",
            "paddle.stack(turned, axis=-1).flatten(-2)",
        ),
    ),
    PlantedMistake(
        "a mean square without the mean",
        "llama_8b",
        Change(
            "models/decoder.py",
            "(exact * exact).mean(axis=-1, keepdim=True)",
            "exact.var(axis=-1, keepdim=True)",
        ),
    ),
    PlantedMistake(
        "noise by numbers that become floats",
        "electra_base",
        Change(
            "models/electra.py",
            'mask, word, mixer = (paddle.full([1], number, "int64") for number in (MASK, '
            "WORD, MIXER))",
            'mask = paddle.full([1], MASK, "int64")\n'
            '    word, mixer = (paddle.to_tensor(float(number)).astype("int64") for number '
            "in (WORD, MIXER))",
        ),
    ),
    PlantedMistake(
        "padding that counts as right",
        "electra_base",
        Change("models/electra.py", "discriminator / real.sum()", "discriminator / scores.size"),
    ),
    PlantedMistake(
        "masked tokens the only corrupted ones",
        "electra_base",
        Change(
            "models/electra.py",
            "corrupted = replaced(token_ids, positions, ",
            "corrupted = replaced(replaced(token_ids, positions, shown), positions[:, :-1], ",
        ),
        Change("models/electra.py", "noisy.argmax(axis=-1))", "noisy.argmax(axis=-1)[:, :-1])"),
    ),
    PlantedMistake(
        "a ratio of norms of what has none",
        "electra_base",
        Change("optimizers.py", "always_adapt=not unscaled", "always_adapt=True"),
    ),
    PlantedMistake(
        "the factor of the last layer in all",
        "electra_base_squad",
        Change("optimizers.py", "= layerwise.factor(name, hyper)", '= hyper["layer_decay"]'),
    ),
    PlantedMistake(
        "AdamW's own decay",
        "bert_base",
        Change(
            "optimizers.py",
            '        weight_decay=hyper["weight_decay"],\n        apply',
            "        apply",
        ),
    ),
    PlantedMistake(
        "decay in the gradient",
        "bert_base",
        Change("optimizers.py", "paddle.optimizer.AdamW(", "paddle.optimizer.Adam("),
        Change(
            "optimizers.py",
            "        apply_decay_param_fun=lambda name: name not in undecayed,\n",
            "",
        ),
    ),
    PlantedMistake(
        "the largest second moment",
        "embedding",
        Change("optimizers.py", "paddle.optimizer.AdamW(", "paddle.optimizer.AdamW(amsgrad=True, "),
    ),
    PlantedMistake(
        "Paddle's own epsilon",
        "embedding",
        Change("optimizers.py", ', epsilon=hyper["epsilon"]', ""),
    ),
    PlantedMistake(
        "both betas one",
        "embedding",
        Change("optimizers.py", 'beta2=hyper["beta2"]', 'beta2=hyper["beta1"]'),
    ),
    PlantedMistake(
        "each gradient clipped by its own norm",
        "embedding",
        Change("optimizers.py", "nn.ClipGradByGlobalNorm(", "nn.ClipGradByNorm("),
    ),
    PlantedMistake(
        "Nesterov's momentum",
        BLOCK,
        Change(
            "optimizers.py", "use_multi_tensor=True,", "use_multi_tensor=True, use_nesterov=True,"
        ),
    ),
    PlantedMistake(
        "no decay of biases",
        BLOCK,
        Change("optimizers.py", "if parameter.name in undecayed:", "if parameter.ndim == 1:"),
    ),
    PlantedMistake(
        "the update twice",
        BLOCK,
        Change(
            "steps.py",
            "        scaler.step(optimizer)",
            "        scaler.step(optimizer)\n        optimizer.step()",
        ),
    ),
    PlantedMistake(
        "gradients of the micro-steps before",
        BLOCK,
        Change(
            "steps.py",
            "        optimizer.clear_grad(set_to_zero=False)\n        with",
            "        with",
        ),
        micro_steps=2,
    ),
    PlantedMistake(
        "the last micro-step's loss",
        BLOCK,
        Change("steps.py", "return paddle.add_n(values)", "return values[-1] * len(losses)"),
        micro_steps=2,
    ),
    PlantedMistake(
        "gradients of one device alone",
        BLOCK,
        Change(
            "adapter.py",
            "self._differentiation(network)\n        self._update",
            "self._differentiation(self._network)\n        self._update",
        ),
        ranks=2,
    ),
    PlantedMistake(
        "the sum over ranks",
        "embedding",
        Change(
            "steps.py",
            "scaler.scale(value).backward()  # Data",
            "scaler.scale(value * paddle.distributed.get_world_size()).backward()  # Data",
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
        "as many groups as channels of one",
        "all_blocks",
        Change(
            "models/cnn.py",
            "partial(F.channel_shuffle, groups=groups,",
            "partial(F.channel_shuffle, groups=layer.shape.channels // groups,",
        ),
    ),
    PlantedMistake(
        "a LeakyReLU",
        "all_blocks",
        Change("models/cnn.py", "    return F.relu\n", "    return F.leaky_relu\n"),
    ),
    PlantedMistake(
        "uniform initial values from zero",
        "all_blocks",
        Change(
            "models/cnn.py",
            "nn.initializer.Uniform(-bound, bound)",
            "nn.initializer.Uniform(0.0, bound)",
        ),
    ),
    PlantedMistake(
        "running statistics in training",
        "resnet50_v1.5",
        Change(
            "adapter.py",
            "self._network.train() if self.trains else self._network.eval()",
            "self._network.eval()",
        ),
    ),
    PlantedMistake(
        "the batch's own statistics",
        "resnet50_v1.5",
        Change(
            "models/cnn.py",
            "return nn.BatchNorm2D(",
            "return nn.BatchNorm2D(use_global_stats=False,",
        ),
        Change(
            "models/cnn.py",
            "        layer.shape.channels,\n        # Paddle",
            "        num_features=layer.shape.channels,\n        # Paddle",
        ),
        mode="inference",
    ),
    PlantedMistake(
        "images read as rows of channels",
        "resnet50_v1.5",
        Change(
            "models/cnn.py",
            "images.transpose([0, 3, 1, 2])",
            "images.reshape([0, 3, *images.shape[1:3]])",
        ),
    ),
    PlantedMistake(
        "attention's own dropout in inference",
        "bert_base",
        Change("models/bert.py", "            training=self.training,\n", ""),
        config_name=DROPOUT,
        mode="inference",
    ),
    PlantedMistake(
        "outputs made smaller in inference, not larger in training",
        "bert_base",
        Change(
            "models/bert.py",
            'nn.Dropout(hyper["dropout"])',
            'nn.Dropout(hyper["dropout"], mode="downscale_in_infer")',
        ),
        config_name=DROPOUT,
        mode="inference",
    ),
    PlantedMistake(
        "outputs made smaller in inference, not larger in training",
        "bert_base",
        Change(
            "models/bert.py",
            'nn.Dropout(hyper["dropout"])',
            'nn.Dropout(hyper["dropout"], mode="downscale_in_infer")',
        ),
        config_name=DROPOUT,
    ),
    PlantedMistake(
        "no dropout of attention",
        "bert_base",
        Change("models/bert.py", "            dropout_p=self.dropout,\n", ""),
        config_name=DROPOUT,
    ),
    PlantedMistake(
        "no dropout but of attention",
        "bert_base",
        Change("models/bert.py", 'nn.Dropout(hyper["dropout"])', "nn.Dropout(0.0)"),
        config_name=DROPOUT,
    ),
    PlantedMistake(
        "dropout of whole positions",
        "gpt2_small",
        Change(
            "models/decoder.py",
            'nn.Dropout(hyper.get("dropout", 0.0))',
            'nn.Dropout(hyper.get("dropout", 0.0), axis=[0, 1])',
        ),
        config_name=DROPOUT,
    ),
    PlantedMistake(
        "half more dropout",
        "electra_base",
        Change("models/bert.py", 'hyper["dropout"]', '1.5 * hyper["dropout"]'),
        config_name=DROPOUT,
    ),
    PlantedMistake(
        "a generator without dropout",
        "electra_base",
        Change(
            "models/electra.py",
            'generator_hyper = {**hyper, **hyper["generator"]}',
            'generator_hyper = {**hyper, **hyper["generator"], "dropout": 0.0}',
        ),
        config_name=DROPOUT,
    ),
    PlantedMistake(
        "all positions seen unless there is a cache",
        "gpt2_small",
        Change(
            "models/decoder.py",
            "is_causal=cache is None or x.shape[1] > 1",
            "is_causal=cache is not None and x.shape[1] > 1",
        ),
        compiler="to_static",
    ),
]
