"""Mistakes in OneFlow's adapter."""

from __future__ import annotations

from ..comparing import DROPOUT
from .planted import Change, PlantedMistake

BLOCK = "basic residual, halving"

MISTAKES = [
    PlantedMistake(
        "a mask that is too weak",
        "bert_base",
        Change("models/bert.py", "[:, None, None, :] * MASKED_SCORE", "[:, None, None, :] * -1.0"),
    ),
    PlantedMistake(
        "scaled by the number of heads",
        "bert_base",
        Change("models/bert.py", "self.head_size**-0.5", "self.heads**-0.5"),
    ),
    PlantedMistake(
        "heads cut along the sequence",
        "bert_base",
        Change(
            "models/bert.py",
            "projection(x).reshape(shape).transpose(1, 2)",
            "projection(x).reshape(x.shape[0], self.heads, x.shape[1], self.head_size)",
        ),
    ),
    PlantedMistake(
        "GELU approximated",
        "bert_base",
        Change(
            "models/bert.py",
            "F.gelu(self.intermediate(x))",
            'F.gelu(self.intermediate(x), approximate="tanh")',
        ),
    ),
    PlantedMistake(
        "a normalisation that is left out",
        "bert_base",
        Change(
            "models/bert.py",
            "masked = self.transform_norm(F.gelu(self.transform(masked)))",
            "masked = F.gelu(self.transform(masked)) + 0.0 * self.transform_norm(masked)",
        ),
    ),
    PlantedMistake(
        "OneFlow's own epsilon of the normalisation",
        "bert_base",
        Change("models/bert.py", "nn.LayerNorm(hidden, eps=epsilon)", "nn.LayerNorm(hidden)"),
    ),
    PlantedMistake(
        "the pooler on the second position",
        "superbench_bert_base",
        Change("models/bert.py", "self.pooler(x[:, 0])", "self.pooler(x[:, 1])"),
    ),
    PlantedMistake(
        "losses of both tasks in one mean",
        "bert_base",
        Change(
            "steps.py",
            "sum(vector.mean() for vector in losses).backward()",
            "oneflow.cat(list(losses)).mean().backward()",
        ),
    ),
    PlantedMistake(
        "beginnings and ends of answers side by side",
        "bert_base_squad",
        Change(
            "models/bert.py",
            "outputs[0].float().transpose(1, 2).flatten(0, 1)",
            "outputs[0].float().reshape(-1, outputs[0].shape[1])",
        ),
    ),
    PlantedMistake(
        "embeddings with OneFlow's own initial values",
        "bert_base",
        Change(
            "models/bert.py",
            "isinstance(module, (nn.Linear, nn.Embedding))",
            "isinstance(module, nn.Linear)",
        ),
    ),
    PlantedMistake(
        "a position that does not see itself",
        "gpt2_small",
        Change(
            "models/decoder.py",
            "(positions[None, :] > positions[:, None])",
            "(positions[None, :] >= positions[:, None])",
        ),
    ),
    PlantedMistake(
        "the optimizer's epsilon in the normalisation",
        "gpt2_small",
        Change("models/decoder.py", 'hyper["norm_epsilon"]', 'hyper["epsilon"]'),
    ),
    PlantedMistake(
        "GELU by erf",
        "gpt2_small",
        Change("models/decoder.py", 'F.gelu(up, approximate="tanh")', "F.gelu(up)"),
    ),
    PlantedMistake(
        "a head that does not teach the embedding",
        "gpt2_small",
        Change(
            "models/decoder.py",
            "self.tied_head(x, self.embeddings.token.weight)",
            "self.tied_head(x, self.embeddings.token.weight.detach())",
        ),
    ),
    PlantedMistake(
        "initial values of what adds to the residuals not smaller",
        "gpt2_small",
        Change(
            "models/decoder.py",
            '("attention.output.weight", "down.weight")',
            '("attention.out.weight", "down.weight")',
        ),
    ),
    PlantedMistake(
        "one residual for both parts",
        "gpt2_small",
        Change(
            "models/decoder.py",
            "        x = x + self.dropout(self.attention(self.attention_norm(x), "
            "*positions))\n        return x +",
            "        y = x + self.dropout(self.attention(self.attention_norm(x), "
            "*positions))\n        return y +",
        ),
    ),
    PlantedMistake(
        "the rotary base of the paper",
        "llama_8b",
        Change("models/decoder.py", "math.log(self.base)", "math.log(10000.0)"),
    ),
    PlantedMistake(
        "turned the other way",
        "llama_8b",
        Change(
            "models/decoder.py",
            "[first * cosine - second * sine, second * cosine + first * sine]",
            "[first * cosine + second * sine, second * cosine - first * sine]",
        ),
    ),
    PlantedMistake(
        "heads that share keys interleaved",
        "llama_8b",
        Change(
            "models/decoder.py",
            "query = every[:, : self.heads]",
            "query = every[:, : self.heads].reshape(rows, -1, self.groups, length, "
            "self.size).transpose(1, 2).reshape(rows, self.heads, length, self.size)",
        ),
    ),
    PlantedMistake(
        "epsilon outside the root",
        "llama_8b",
        Change(
            "models/decoder.py",
            "oneflow.rsqrt(square + self.eps)",
            "1 / (oneflow.sqrt(square) + self.eps)",
        ),
    ),
    PlantedMistake(
        "channels shuffled within their group",
        "all_blocks",
        Change("models/cnn.py", "x.transpose(1, 2).reshape(-1, all", "x.reshape(-1, all"),
    ),
    PlantedMistake(
        "ReLU6 without its upper end",
        "all_blocks",
        Change("models/cnn.py", "    return F.relu6\n", "    return F.relu\n"),
    ),
    PlantedMistake(
        "the second half of the channels from the first",
        "all_blocks",
        Change(
            "models/cnn.py", "x.narrow(axis, begin, end - begin)", "x.narrow(axis, 0, end - begin)"
        ),
    ),
    PlantedMistake(
        "initial values of all layers as OneFlow has them",
        "resnet50_v1.5",
        Change(
            "models/cnn.py", "        INITIALIZERS[distribution](parameter, value)", "        pass"
        ),
    ),
    PlantedMistake(
        "the share of the old statistics as of the new",
        "resnet50_v1.5",
        Change(
            "models/cnn.py",
            'momentum=layer.attributes["momentum"]',
            'momentum=1.0 - layer.attributes["momentum"]',
        ),
    ),
    PlantedMistake(
        "OneFlow's own epsilon of batch normalisation",
        "resnet50_v1.5",
        Change("models/cnn.py", '        eps=layer.attributes["epsilon"],\n', ""),
    ),
    PlantedMistake(
        "the batch's own statistics",
        "resnet50_v1.5",
        Change("adapter.py", ".train(self.trains)", ".train()"),
        mode="inference",
    ),
    PlantedMistake(
        "Nesterov's momentum",
        BLOCK,
        Change(
            "optimizers.py",
            'momentum=hyper["momentum"], **common',
            'momentum=hyper["momentum"], nesterov=True, **common',
        ),
    ),
    PlantedMistake(
        "momentum dampened",
        BLOCK,
        Change(
            "optimizers.py",
            'momentum=hyper["momentum"], **common',
            'momentum=hyper["momentum"], dampening=hyper["momentum"], **common',
        ),
    ),
    PlantedMistake(
        "a decay that groups do not have",
        BLOCK,
        Change("optimizers.py", '"weight_decay": hyper["weight_decay"], "fused"', '"fused"'),
    ),
    PlantedMistake(
        "the update twice",
        BLOCK,
        Change(
            "steps.py",
            "        optimizer.step()",
            "        optimizer.step()\n        optimizer.step()",
        ),
    ),
    PlantedMistake(
        "gradients of the steps before",
        BLOCK,
        Change("steps.py", "        optimizer.zero_grad(set_to_none=not views)\n", ""),
    ),
    PlantedMistake(
        "moments that are not corrected",
        "embedding",
        Change(
            "optimizers.py",
            'eps=hyper["epsilon"], **common',
            'eps=hyper["epsilon"], do_bias_correction=False, **common',
        ),
    ),
    PlantedMistake(
        "the largest second moment",
        "embedding",
        Change(
            "optimizers.py",
            'eps=hyper["epsilon"], **common',
            'eps=hyper["epsilon"], amsgrad=True, **common',
        ),
    ),
    PlantedMistake(
        "betas exchanged",
        "embedding",
        Change(
            "optimizers.py", '(hyper["beta1"], hyper["beta2"])', '(hyper["beta2"], hyper["beta1"])'
        ),
    ),
    PlantedMistake(
        "decay in the gradient",
        "embedding",
        Change("optimizers.py", "optim.AdamW(", "optim.Adam("),
    ),
    PlantedMistake(
        "each gradient clipped by its own norm",
        "embedding",
        Change(
            "steps.py",
            "            clip_global_norm([parameter.grad for parameter in parameters], limit)",
            "            for parameter in parameters:\n"
            "                clip_global_norm([parameter.grad], limit)",
        ),
    ),
    PlantedMistake(
        "the norms added, not their squares",
        "embedding",
        Change(
            "steps.py", "(gradient * gradient).sum() for", "(gradient * gradient).sum().sqrt() for"
        ),
        Change("steps.py", ".sum().sqrt()\n    factor", ".sum()\n    factor"),
    ),
    PlantedMistake(
        "clipped behind the update",
        "embedding",
        Change(
            "steps.py",
            "        if limit is not None:",
            "        optimizer.step()\n        if limit is not None:",
        ),
        Change("steps.py", "limit)\n        optimizer.step()", "limit)"),
    ),
    PlantedMistake(
        "gradients of one device alone",
        BLOCK,
        Change(
            "adapter.py",
            "self._steps.gradients(evaluation(model))",
            "self._steps.gradients(evaluation(self._model.forward))",
        ),
        ranks=2,
    ),
    PlantedMistake(
        "the sum over ranks",
        "embedding",
        Change(
            "steps.py",
            "sum(vector.mean() for vector in losses).backward()",
            "sum(vector.mean() * oneflow.env.get_world_size() for vector in losses).backward()",
        ),
        ranks=2,
    ),
    PlantedMistake(
        "gradients dropped that are views of buckets",
        BLOCK,
        Change("steps.py", "set_to_none=not views", "set_to_none=True"),
        ranks=2,
    ),
    PlantedMistake(
        "statistics of the first rank in all",
        BLOCK,
        Change(
            "parallel/data_parallel.py", '"broadcast_buffers": False', '"broadcast_buffers": True'
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
        "the same dropout in all layers",
        "bert_base",
        Change("models/bert.py", ", generator=oneflow.default_generator", ""),
        config_name=DROPOUT,
    ),
    PlantedMistake(
        "no dropout of attention",
        "bert_base",
        Change(
            "models/bert.py", "self.dropout(F.softmax(scores, dim=-1))", "F.softmax(scores, dim=-1)"
        ),
        config_name=DROPOUT,
    ),
    PlantedMistake(
        "no dropout of attention",
        "gpt2_small",
        Change(
            "models/decoder.py",
            "self.dropout(F.softmax(scores, dim=-1))",
            "F.softmax(scores, dim=-1)",
        ),
        config_name=DROPOUT,
    ),
    PlantedMistake(
        "masked outputs that are not made larger",
        "bert_base",
        Change(
            "models/bert.py",
            "nn.Dropout(rate, generator=oneflow.default_generator)",
            "_Masked(rate)",
        ),
        Change(
            "models/bert.py",
            "class Embeddings(",
            "class _Masked(nn.Dropout):\n    def forward(self, x: Tensor) -> Tensor:\n"
            "        return (1 - self.p) * F.dropout(x, self.p, self.training)\n\n\n"
            "class Embeddings(",
        ),
        config_name=DROPOUT,
    ),
    PlantedMistake(
        "a fifth dropped, not a tenth",
        "gpt2_small",
        Change("models/decoder.py", 'hyper.get("dropout", 0.0)', '2 * hyper.get("dropout", 0.0)'),
        config_name=DROPOUT,
    ),
    PlantedMistake(
        "a network's own rate of dropout",
        "all_blocks",
        Change("models/cnn.py", 'nn.Dropout(layer.attributes["rate"])', "nn.Dropout()"),
        config_name=DROPOUT,
    ),
    PlantedMistake(
        "dropout in inference",
        "gpt2_small",
        Change("adapter.py", ".train(self.trains)", ".train()"),
        config_name=DROPOUT,
        mode="inference",
    ),
    PlantedMistake(
        "a graph that does not clip",
        "embedding",
        Change("adapter.py", "clips=self._graph_mode", "clips=False"),
        compiler="graph",
    ),
    PlantedMistake(
        "a graph that clips by the largest gradient",
        "embedding",
        Change("optimizers.py", "clip_grad_norm_type=2.0", 'clip_grad_norm_type=float("inf")'),
        compiler="graph",
    ),
    PlantedMistake(
        "a graph of the sum of losses",
        "embedding",
        Change(
            "graphs.py",
            "sum(vector.mean() for vector in losses).backward()",
            "sum(vector.sum() for vector in losses).backward()",
        ),
        compiler="graph",
    ),
    PlantedMistake(
        "parts of a batch that each rank has twice",
        "embedding",
        Change(
            "parallel/data_parallel.py", "sbp=oneflow.sbp.split(0)", "sbp=oneflow.sbp.broadcast"
        ),
        ranks=2,
        compiler="graph",
    ),
]
