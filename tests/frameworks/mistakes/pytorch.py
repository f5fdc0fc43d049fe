"""Mistakes in PyTorch's adapter."""

from __future__ import annotations

from ..comparing import DROPOUT
from .planted import Change, PlantedMistake

MISTAKES = [
    PlantedMistake(
        "the stride of v1",
        "resnet50_v1.5",
        Change(
            "models/cnn.py",
            'attributes["stride"],\n        attributes["padding"], groups',
            '{"layer2.0.conv1": 2, "layer2.0.conv2": 1}.get(layer.name, attributes["stride"]),\n'
            '        attributes["padding"], groups',
        ),
    ),
    PlantedMistake(
        "no weight decay",
        "resnet50_v1.5",
        Change("optimizers.py", 'else hyper["weight_decay"]', "else 0.0"),
    ),
    PlantedMistake(
        "weight decay as it is timed, not as the model config says",
        "resnet50_v1.5",
        Change("optimizers.py", 'else hyper["weight_decay"]', "else 1e-4"),
    ),
    PlantedMistake(
        "another momentum",
        "resnet50_v1.5",
        Change("optimizers.py", 'momentum=hyper["momentum"]', "momentum=0.9"),
    ),
    PlantedMistake(
        "wrong epsilon",
        "resnet50_v1.5",
        Change("models/cnn.py", 'attributes["epsilon"]', "1e-5"),
    ),
    PlantedMistake(
        "loss summed",
        "resnet50_v1.5",
        Change(
            "models/cnn.py",
            '(logits.float(), batch["labels"])',
            '(logits.float(), batch["labels"], reduction="sum")',
        ),
    ),
    PlantedMistake(
        "another share of new running statistics",
        "resnet50_v1.5",
        Change("models/cnn.py", 'attributes["momentum"]', '1.0 - attributes["momentum"]'),
    ),
    PlantedMistake(
        "frozen batch normalisation",
        "resnet50_v1.5",
        Change(
            "adapter.py",
            "build(self.model_config).train(self.trains)",
            "build(self.model_config).eval()",
        ),
    ),
    PlantedMistake(
        "dropout left on",
        "bert_base",
        Change("models/bert.py", 'nn.Dropout(hyper["dropout"])', "nn.Dropout(0.1)"),
    ),
    PlantedMistake(
        "no gradient clipping",
        "bert_base",
        Change("optimizers.py", '.get("clip_global_norm")', '.get("no such fact")'),
    ),
    PlantedMistake(
        "GELU approximated",
        "bert_base",
        Change("models/bert.py", "F.gelu(", "functools.partial(F.gelu, approximate='tanh')("),
        Change("models/bert.py", "import torch\n", "import functools\nimport torch\n"),
    ),
    PlantedMistake(
        "no loss for the next sentence",
        "bert_base",
        Change(
            "models/bert.py",
            "return masked + F.cross_entropy(next_sentence, ",
            "return masked + 0.0 * F.cross_entropy(next_sentence, ",
        ),
    ),
    PlantedMistake(
        "wrong epsilon of the normalisation",
        "bert_base",
        Change("models/bert.py", 'hyper["layer_norm_epsilon"]', "1e-12"),
    ),
    PlantedMistake(
        "wrong epsilon of the optimizer",
        "bert_base",
        Change("optimizers.py", '"eps": hyper["epsilon"]', '"eps": 1e-8'),
    ),
    PlantedMistake(
        "weight decay in the gradient",
        "bert_base",
        Change("optimizers.py", "torch.optim.AdamW(", "torch.optim.Adam("),
    ),
    PlantedMistake(
        "the mask ignored, attention not scaled",
        "bert_base",
        Change(
            "models/bert.py", "query, key, value, attn_mask=mask,", "query, key, value, scale=1.0,"
        ),
    ),
    PlantedMistake(
        "one position too far",
        "bert_base",
        Change(
            "models/bert.py",
            "self.position.weight[: token_ids.shape[1]]",
            "self.position.weight[1 : token_ids.shape[1] + 1]",
        ),
    ),
    PlantedMistake(
        "ReLU6 without its upper end",
        "all_blocks",
        Change("models/cnn.py", "nn.ReLU6()", "nn.ReLU()"),
    ),
    PlantedMistake(
        "a mean without the padding",
        "all_blocks",
        Change(
            "models/cnn.py",
            'attributes["kernel"], attributes["stride"], attributes["padding"])',
            'attributes["kernel"], attributes["stride"], attributes["padding"], False, False)',
        ),
    ),
    PlantedMistake(
        "channels shuffled back",
        "all_blocks",
        Change("models/cnn.py", "(groups, -1)", "(-1, groups)"),
    ),
    PlantedMistake(
        "auxiliary heads as heavy as the logits",
        "all_blocks",
        Change("models/cnn.py", "+ weight *", "+ 1.0 *"),
    ),
    PlantedMistake(
        "the head on the last position",
        "superbench_bert_base",
        Change("models/bert.py", "self.pooler(x[:, 0])", "self.pooler(x[:, -1])"),
    ),
    PlantedMistake(
        "the loss of the first position",
        "superbench_gpt2_small",
        Change("models/decoder.py", "logits[:, -1:]", "logits[:, :1]"),
    ),
    PlantedMistake(
        "the loss of the mean over positions",
        "superbench_gpt2_small",
        Change("models/decoder.py", "logits[:, -1:]", "logits.mean(1, keepdim=True)"),
    ),
    PlantedMistake(
        "the discriminator's weight as it is timed",
        "electra_base",
        Change("models/electra.py", 'hyper["discriminator_weight"]', "50.0"),
    ),
    PlantedMistake(
        "the generator's weight as it is timed",
        "electra_base",
        Change("models/electra.py", 'hyper["generator_weight"]', "1.0"),
    ),
    PlantedMistake(
        "as many masked as is timed",
        "electra_base",
        Change("models/electra.py", "mask_draws < self.masked_percent", "mask_draws < 85"),
    ),
    PlantedMistake(
        "an activation behind the projection",
        "electra_base",
        Change("models/electra.py", "x = self.project(x)", "x = F.gelu(self.project(x))"),
    ),
    PlantedMistake(
        "the generator with the discriminator's heads",
        "electra_base",
        Change("models/electra.py", 'hyper["generator"]}', 'hyper["generator"], "heads": 4}'),
    ),
    PlantedMistake(
        "every masked token a replaced one",
        "electra_base",
        Change(
            "models/electra.py",
            "(corrupted != token_ids).to(scores.dtype)",
            "torch.zeros_like(scores).scatter(1, positions, 1.0)",
        ),
    ),
    PlantedMistake(
        "the likeliest token, not a sampled one",
        "electra_base",
        Change(
            "models/electra.py",
            "logits.detach().float() + noise(sampling_draws, logits.shape[-1])",
            "logits.detach().float()",
        ),
    ),
    PlantedMistake(
        "a token by chance alone",
        "electra_base",
        Change(
            "models/electra.py",
            "logits.detach().float() + noise(sampling_draws, logits.shape[-1])",
            "noise(sampling_draws, logits.shape[-1])",
        ),
    ),
    PlantedMistake(
        "the beginning of an answer for its end",
        "bert_base_squad",
        Change("models/bert.py", 'batch["spans"]', 'batch["spans"].flip(1)'),
    ),
    PlantedMistake(
        "padding that is attended to",
        "bert_base_squad",
        Change("models/bert.py", "attention_mask.bool()", "(attention_mask + 1).bool()"),
    ),
    PlantedMistake(
        "padding of which the discriminator is asked",
        "electra_base",
        Change("models/electra.py", "weight=real, ", ""),
    ),
    PlantedMistake(
        "one learning rate for all layers",
        "electra_base_squad",
        Change("optimizers.py", 'group[_FACTOR] = factors[group["params"][0]]', "pass"),
    ),
    PlantedMistake(
        "a discriminator that sees the true tokens",
        "electra_base",
        Change(
            "models/electra.py",
            "self.embeddings(corrupted, segment_ids)",
            "self.embeddings(token_ids, segment_ids)",
        ),
    ),
    PlantedMistake(
        "moments that are not corrected",
        "electra_base",
        Change("lamb.py", 'group["steps"] += 1', 'group["steps"] = 10**9'),
    ),
    PlantedMistake(
        "decay of what has none",
        "electra_base",
        Change("optimizers.py", "0.0 if without_decay else ", ""),
    ),
    PlantedMistake(
        "a ratio of norms of what has none",
        "electra_base",
        Change("optimizers.py", '"trust_ratio": not without_ratio', '"trust_ratio": True'),
    ),
    PlantedMistake(
        "decay outside the ratio of norms",
        "electra_base",
        Change(
            "lamb.py",
            'torch._foreach_add_(changes, weights, alpha=group["weight_decay"])',
            'torch._foreach_mul_(weights, 1 - group["lr"] * group["weight_decay"])',
        ),
    ),
    PlantedMistake(
        "dropout left off",
        "bert_base",
        Change("models/bert.py", 'nn.Dropout(hyper["dropout"])', "nn.Dropout(0.0)"),
        config_name=DROPOUT,
    ),
    PlantedMistake(
        "gradients averaged twice",
        "resnet50_v1.5",
        Change(
            "steps.py",
            "scaler.scale(value).backward()",
            "scaler.scale(value / torch.distributed.get_world_size()).backward()",
        ),
        ranks=2,
    ),
    PlantedMistake(
        "the mask ignored",
        "bert_base",
        Change("models/bert.py", "attn_mask=mask,", ""),
    ),
    PlantedMistake(
        "attention not scaled",
        "bert_base",
        Change("models/bert.py", "attn_mask=mask,", "attn_mask=mask, scale=1.0,"),
    ),
    PlantedMistake(
        "dropout in inference",
        "bert_base",
        Change(
            "adapter.py",
            "build(self.model_config).train(self.trains)",
            "build(self.model_config).train()",
        ),
        config_name=DROPOUT,
        mode="inference",
    ),
    PlantedMistake(
        "gradients never zeroed",
        "bert_base",
        Change(
            "steps.py",
            "        optimizer.zero_grad(set_to_none=True)\n        return loss()",
            "        return loss()",
        ),
    ),
    PlantedMistake(
        "beta2 as it is timed",
        "bert_base",
        Change("optimizers.py", 'hyper["beta2"])', "0.999)"),
    ),
    PlantedMistake(
        "every gradient scaled to the bound",
        "bert_base",
        Change(
            "optimizers.py",
            "functools.partial(nn.utils.clip_grad_norm_, list(model.parameters()), largest)",
            "lambda: torch._foreach_mul_(found := [p.grad for p in model.parameters()], "
            "largest / nn.utils.get_total_norm(found))",
        ),
    ),
    PlantedMistake(
        "initial values ten times as large",
        "bert_base",
        Change(
            "models/bert.py",
            'std=hyper["initializer_range"]',
            'std=10 * hyper["initializer_range"]',
        ),
    ),
    PlantedMistake(
        "feed-forward layers in float32",
        "bert_base",
        Change(
            "models/bert.py",
            "        return self.output_norm(x + self.dropout(self.output("
            "F.gelu(self.intermediate(x)))))",
            '        with torch.autocast("cpu", enabled=False):\n'
            "            inner = F.gelu(self.intermediate(x.float()))\n"
            "            return self.output_norm(x + self.dropout(self.output(inner)))",
        ),
        precision="amp",
    ),
    PlantedMistake(
        "labels of the first token ignored",
        "bert_base",
        Change(
            "models/bert.py",
            'batch["masked_labels"].flatten())',
            'batch["masked_labels"].flatten(), ignore_index=0)',
        ),
    ),
    PlantedMistake(
        "no gradient of the first token",
        "bert_base",
        Change(
            "models/bert.py",
            'nn.Embedding(hyper["vocabulary"], hyper["hidden"])',
            'nn.Embedding(hyper["vocabulary"], hyper["hidden"], padding_idx=0)',
        ),
    ),
    PlantedMistake(
        "labels smoothed by a thousandth",
        "gpt2_small",
        Change(
            "models/decoder.py",
            'batch["labels"].flatten())',
            'batch["labels"].flatten(), label_smoothing=0.001)',
        ),
    ),
    PlantedMistake(
        "a norm of gradients without the embedding's",
        "bert_base",
        Change(
            "optimizers.py", "_, list(model.parameters()), l", "_, [*model.parameters()][1:], l"
        ),
    ),
    PlantedMistake(
        "padding counted over all ranks",
        "electra_base",
        Change(
            "models/electra.py",
            "    discriminator = discriminator / real.sum()",
            "    count = real.sum()\n"
            "    torch.distributed.all_reduce(count)\n"
            "    discriminator = discriminator / (count / 2)",
        ),
        ranks=2,
    ),
    PlantedMistake(
        "biases that start near zero",
        "bert_base",
        Change(
            "models/bert.py",
            "nn.init.zeros_(module.bias)",
            "nn.init.uniform_(module.bias, -0.001, 0.001)",
        ),
    ),
    PlantedMistake(
        "no dropout in training steps",
        "embedding",
        Change(
            "adapter.py",
            "        return self._definition.loss(self._forward(model, batch), batch.tensors, ",
            "        self._model.eval()\n"
            "        outputs = self._forward(model, batch)\n"
            "        self._model.train()\n"
            "        return self._definition.loss(outputs, batch.tensors, ",
        ),
        config_name=DROPOUT,
    ),
]
