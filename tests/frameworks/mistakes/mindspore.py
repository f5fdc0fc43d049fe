"""Mistakes in MindSpore's adapter."""

from __future__ import annotations

from ..comparing import DROPOUT
from ..models import BERT, BLOCKS, EMBEDDING, RESNET
from .planted import Change, PlantedMistake

BERT_FILE, CNN_FILE, DECODER = "models/bert.py", "models/cnn.py", "models/decoder.py"
OPTIMIZERS, ADAPTER = "optimizers.py", "adapter.py"
PROGRAMS, RANKS = "programs.py", "parallel/data_parallel.py"
ELECTRA, ELECTRA_FILE = "electra_base", "models/electra.py"
BLOCK = "basic residual, halving"
GPT, LLAMA = "gpt2_small", "llama_8b"

BERTS = [
    PlantedMistake(
        "a mask that is too weak",
        BERT,
        Change(BERT_FILE, "MASKED_SCORE = -10000.0", "MASKED_SCORE = -1.0"),
    ),
    PlantedMistake(
        "the mask of tokens for that of padding",
        "bert_base_squad",
        Change(BERT_FILE, "(1 - attention_mask)", "(attention_mask)"),
        mode="inference",
    ),
    PlantedMistake(
        "scaled by the number of heads",
        BERT,
        Change(BERT_FILE, "query * self.head_size**-0.5", "query * self.heads**-0.5"),
    ),
    PlantedMistake(
        "the wrong axis of the probabilities",
        BERT,
        Change(BERT_FILE, "ops.softmax(scores, -1)", "ops.softmax(scores, -2)"),
    ),
    PlantedMistake(
        "heads side by side in the sequence",
        BERT,
        Change(
            BERT_FILE,
            "context.swapaxes(1, 2).reshape(batch, sequence, hidden)",
            "context.reshape(batch, sequence, hidden)",
        ),
    ),
    PlantedMistake(
        "GELU approximated in the layers",
        BERT,
        Change(
            BERT_FILE,
            'ops.gelu(self.intermediate(x), approximate="none")',
            'ops.gelu(self.intermediate(x), approximate="tanh")',
        ),
    ),
    PlantedMistake(
        "GELU approximated in the head",
        BERT,
        Change(
            BERT_FILE,
            'ops.gelu(self.transform(at(positions, x)), approximate="none")',
            'ops.gelu(self.transform(at(positions, x)), approximate="tanh")',
        ),
    ),
    PlantedMistake(
        "normalised before the residual",
        BERT,
        Change(
            BERT_FILE,
            "self.attention_norm(x + self.attention_dropout(self.attention(x, mask)))",
            "x + self.attention_norm(self.attention_dropout(self.attention(x, mask)))",
        ),
    ),
    PlantedMistake(
        "MindSpore's own epsilon of the normalisation",
        BERT,
        Change(BERT_FILE, ', epsilon=hyper["layer_norm_epsilon"])', ")"),
    ),
    PlantedMistake(
        "no segments",
        BERT,
        Change(BERT_FILE, " + self.segment(segment_ids)", " + 0.0 * self.segment(segment_ids)"),
    ),
    PlantedMistake(
        "one position too far",
        BERT,
        Change(
            BERT_FILE,
            "self.position.embedding_table[: token_ids.shape[1]]",
            "self.position.embedding_table[1 : token_ids.shape[1] + 1]",
        ),
    ),
    PlantedMistake(
        "the pooler on the last position",
        BERT,
        Change(BERT_FILE, "self.pooler(x[:, 0])", "self.pooler(x[:, -1])"),
    ),
    PlantedMistake(
        "a pooler without its activation",
        "superbench_bert_base",
        Change(BERT_FILE, "ops.tanh(self.pooler(x[:, 0]))", "self.pooler(x[:, 0])"),
    ),
    PlantedMistake(
        "masked positions of the first sequence in all",
        BERT,
        Change(BERT_FILE, "sequence * ops.arange(batch)", "0 * ops.arange(batch)"),
    ),
    PlantedMistake(
        "a decoder that does not teach the embedding",
        BERT,
        Change(
            BERT_FILE,
            "self.decoder(masked, self.embeddings.token.embedding_table)",
            "self.decoder(masked, ops.stop_gradient(self.embeddings.token.embedding_table))",
        ),
    ),
    PlantedMistake(
        "the second task left out of the gradient",
        BERT,
        Change(
            BERT_FILE,
            "+ ops.cross_entropy(next_sentence, ",
            "+ 0.0 * ops.cross_entropy(next_sentence, ",
        ),
    ),
    PlantedMistake(
        "the loss of the next sentence summed",
        BERT,
        Change(
            BERT_FILE,
            'batch["next_sentence_labels"])',
            'batch["next_sentence_labels"], reduction="sum")',
        ),
    ),
    PlantedMistake(
        "labels smoothed",
        BERT,
        Change(
            BERT_FILE,
            'batch["masked_labels"].reshape(-1)\n',
            'batch["masked_labels"].reshape(-1), label_smoothing=0.01\n',
        ),
    ),
    PlantedMistake(
        "labels of the first token ignored",
        BERT,
        Change(
            BERT_FILE,
            'batch["masked_labels"].reshape(-1)\n',
            'batch["masked_labels"].reshape(-1), ignore_index=0\n',
        ),
    ),
    PlantedMistake(
        "beginnings and ends of answers side by side",
        "bert_base_squad",
        Change(
            BERT_FILE,
            "outputs[0].swapaxes(1, 2)",
            "outputs[0].reshape(outputs[0].shape[0], 2, -1)",
        ),
    ),
    PlantedMistake(
        "MindSpore's own initial values of linear layers",
        BERT,
        Change(
            BERT_FILE,
            'inputs, outputs, weight_init=Normal(hyper["initializer_range"]), bias_init="zeros"',
            'inputs, outputs, bias_init="zeros"',
        ),
    ),
    PlantedMistake(
        "initial values of half the deviation",
        EMBEDDING,
        Change(
            BERT_FILE,
            'embedding_table=Normal(hyper["initializer_range"])',
            'embedding_table=Normal(0.5 * hyper["initializer_range"])',
        ),
    ),
    PlantedMistake(
        "the first row of each table starts at zero, as that of padding",
        EMBEDDING,
        Change(
            BERT_FILE,
            'embedding_table=Normal(hyper["initializer_range"])',
            'embedding_table=Normal(hyper["initializer_range"]), padding_idx=0',
        ),
    ),
    PlantedMistake(
        "the initial values of one row in all of a table",
        EMBEDDING,
        Change(
            BERT_FILE,
            "    return nn.Embedding(rows, ",
            '    row = ops.standard_normal((1, hyper["hidden"])) * hyper["initializer_range"]\n'
            "    rows_alike = ops.tile(row, (rows, 1))\n"
            '    return nn.Embedding(rows, hyper["hidden"], embedding_table=rows_alike)\n'
            "    return nn.Embedding(rows, ",
        ),
    ),
    PlantedMistake(
        "no dropout of attention",
        BERT,
        Change(BERT_FILE, "self.dropout(ops.softmax(scores, -1))", "ops.softmax(scores, -1)"),
        config_name=DROPOUT,
    ),
    PlantedMistake(
        "no dropout of attention in a graph",
        BERT,
        Change(BERT_FILE, "self.dropout(ops.softmax(scores, -1))", "ops.softmax(scores, -1)"),
        config_name=DROPOUT,
        compiler="jit",
    ),
    PlantedMistake(
        "the same dropout in two places of a graph",
        BERT,
        Change(
            BERT_FILE,
            'self.output_dropout = nn.Dropout(p=hyper["dropout"])',
            "self.output_dropout = self.attention_dropout",
        ),
        config_name=DROPOUT,
        compiler="jit",
    ),
    PlantedMistake(
        "the same dropout in two places of a graph",
        GPT,
        Change(
            DECODER,
            'self.feed_forward_dropout = nn.Dropout(p=hyper.get("dropout", 0.0))',
            "self.feed_forward_dropout = self.attention_dropout",
        ),
        config_name=DROPOUT,
        compiler="jit",
    ),
    PlantedMistake(
        "no dropout in training steps",
        EMBEDDING,
        Change(
            PROGRAMS,
            "            loss = loss_of(forward(batch), batch, shallow)",
            "            network.set_train(False)\n"
            "            outputs = forward(batch)\n"
            "            network.set_train()\n"
            "            loss = loss_of(outputs, batch, shallow)",
        ),
        config_name=DROPOUT,
        compiler="none",  # a graph takes no other mode
    ),
    PlantedMistake(
        "a fifth of the embeddings dropped, not a tenth",
        EMBEDDING,
        Change(BERT_FILE, 'nn.Dropout(p=hyper["dropout"])', 'nn.Dropout(p=2 * hyper["dropout"])'),
        config_name=DROPOUT,
    ),
    PlantedMistake(
        "a tenth kept, not dropped",
        EMBEDDING,
        Change(BERT_FILE, 'nn.Dropout(p=hyper["dropout"])', 'nn.Dropout(p=1.0 - hyper["dropout"])'),
        config_name=DROPOUT,
    ),
    PlantedMistake(
        "masked outputs that are not made larger",
        BERT,
        Change(BERT_FILE, "nn.Dropout(p=", "_Masked(p="),
        Change(
            BERT_FILE,
            "class Embeddings(",
            "class _Masked(nn.Dropout):\n    def construct(self, x: Tensor) -> Tensor:\n"
            "        return (1 - self.p * self.training) * super().construct(x)\n\n\n"
            "class Embeddings(",
        ),
        config_name=DROPOUT,
    ),
    PlantedMistake(
        "the same dropout in all layers",
        BERT,
        Change(ADAPTER, "Dropout(keep, seed, number)", "Dropout(keep, seed, 0)"),
        config_name=DROPOUT,
    ),
    PlantedMistake(
        "initial values of one seed for all linear layers",
        BERT,
        Change(
            BERT_FILE,
            "    return nn.Dense(\n",
            '    __import__("mindspore").set_seed(1)\n    return nn.Dense(\n',
        ),
    ),
    PlantedMistake(
        "dropout in inference",
        BERT,
        Change(ADAPTER, "self._network.set_train(self.trains)", "self._network.set_train()"),
        config_name=DROPOUT,
        mode="inference",
    ),
]
CNNS = [
    PlantedMistake(
        "a network's own rate of dropout",
        BLOCKS,
        Change(CNN_FILE, 'nn.Dropout(p=layer.attributes["rate"])', "nn.Dropout(p=0.5)"),
        config_name=DROPOUT,
    ),
    PlantedMistake(
        "the stride of v1",
        RESNET,
        Change(
            CNN_FILE,
            'stride=layer.attributes["stride"]',
            'stride={"layer2.0.conv1": 2, "layer2.0.conv2": 1}.get(layer.name, '
            'layer.attributes["stride"])',
        ),
    ),
    PlantedMistake(
        "the share of the old statistics as of the new",
        RESNET,
        Change(CNN_FILE, '1.0 - layer.attributes["momentum"]', 'layer.attributes["momentum"]'),
    ),
    PlantedMistake(
        "MindSpore's own epsilon of batch normalisation",
        RESNET,
        Change(CNN_FILE, '        eps=layer.attributes["epsilon"],\n', ""),
    ),
    PlantedMistake(
        "the batch's own statistics",
        RESNET,
        Change(ADAPTER, "self._network.set_train(self.trains)", "self._network.set_train()"),
        mode="inference",
    ),
    PlantedMistake(
        "the batch's own statistics in a graph",
        BLOCK,
        Change(ADAPTER, "self._network.set_train(self.trains)", "self._network.set_train()"),
        mode="inference",
        compiler="jit",
    ),
    PlantedMistake(
        "batch normalisation as in inference",
        BLOCK,
        Change(ADAPTER, "self._network.set_train(self.trains)", "self._network.set_train(False)"),
    ),
    PlantedMistake(
        "MindSpore's own initial values of convolutions",
        RESNET,
        Change(
            CNN_FILE,
            'weight_init=initials["weight"],\n        bias_init=initials.get("bias"),\n    )',
            'bias_init=initials.get("bias"),\n    )',
        ),
    ),
    PlantedMistake(
        "uniform initial values for normal ones",
        RESNET,
        Change(CNN_FILE, '"normal": Normal', '"normal": lambda value: Uniform(3**0.5 * value)'),
    ),
    PlantedMistake(
        "an activation in front of the residual",
        RESNET,
        Change(CNN_FILE, "return x + y", "return ops.relu(x) + y"),
    ),
    PlantedMistake(
        "padding on one side alone",
        BLOCK,
        Change(
            CNN_FILE,
            "(vertical, vertical, horizontal, horizontal)",
            "(0, 2 * vertical, 0, 2 * horizontal)",
        ),
    ),
    PlantedMistake(
        "ReLU6 without its upper end",
        BLOCKS,
        Change(CNN_FILE, '"relu6": nn.ReLU6', '"relu6": nn.ReLU'),
    ),
    PlantedMistake(
        "averages without the padding",
        BLOCKS,
        Change(CNN_FILE, "count_include_pad=True", "count_include_pad=False"),
    ),
    PlantedMistake(
        "averages for the largest values",
        BLOCKS,
        Change(CNN_FILE, "return nn.MaxPool2d(", "return nn.AvgPool2d("),
    ),
    PlantedMistake(
        "channels shuffled within their group",
        BLOCKS,
        Change(CNN_FILE, "split.swapaxes(1, 2).reshape(x.shape)", "split.reshape(x.shape)"),
    ),
    PlantedMistake(
        "the second half of the channels from the first",
        BLOCKS,
        Change(CNN_FILE, "x[:, self.begin : self.end]", "x[:, : self.end - self.begin]"),
    ),
    PlantedMistake(
        "auxiliary heads as heavy as the logits",
        BLOCKS,
        Change(CNN_FILE, 'model_config["hyperparameters"]["auxiliary_weight"] * head', "head"),
    ),
    PlantedMistake(
        "parts joined in the other order",
        BLOCKS,
        Change(CNN_FILE, "ops.cat(parts, 1)", "ops.cat(parts[::-1], 1)"),
    ),
    PlantedMistake(
        "images turned round",
        BLOCK,
        Change(ADAPTER, "a.transpose(0, 3, 1, 2) if", "a.transpose(0, 3, 2, 1) if"),
    ),
]
DECODERS = [
    PlantedMistake(
        "a token that sees the next",
        GPT,
        Change(
            DECODER,
            "(ops.arange(seen) > where[:, None])",
            "(ops.arange(seen) > where[:, None] + 1)",
        ),
    ),
    PlantedMistake(
        "GELU by erf",
        GPT,
        Change(DECODER, 'ops.gelu(up, approximate="tanh")', 'ops.gelu(up, approximate="none")'),
    ),
    PlantedMistake(
        "the optimizer's epsilon in the normalisation",
        GPT,
        Change(DECODER, 'epsilon=hyper["norm_epsilon"]', 'epsilon=hyper["epsilon"]'),
    ),
    PlantedMistake(
        "a head that does not teach the embedding",
        GPT,
        Change(
            DECODER,
            "x.reshape(-1, x.shape[2]), self.embeddings.token.embedding_table)",
            "x.reshape(-1, x.shape[2]), ops.stop_gradient(self.embeddings.token.embedding_table))",
        ),
    ),
    PlantedMistake(
        "initial values of what adds to the residuals not smaller",
        GPT,
        Change(DECODER, '(2 * hyper["layers"]) ** -0.5 if added else 1.0', "1.0"),
    ),
    PlantedMistake(
        "one residual for both parts",
        GPT,
        Change(DECODER, "x = x + self.attention_dropout(", "y = x + self.attention_dropout("),
        Change(
            DECODER,
            "return x + self.feed_forward_dropout(",
            "return y + self.feed_forward_dropout(",
        ),
    ),
    PlantedMistake(
        "no dropout of attention",
        GPT,
        Change(DECODER, "self.dropout(ops.softmax(scores, -1))", "ops.softmax(scores, -1)"),
        config_name=DROPOUT,
    ),
    PlantedMistake(
        "dropout in inference",
        GPT,
        Change(ADAPTER, "self._network.set_train(self.trains)", "self._network.set_train()"),
        config_name=DROPOUT,
        mode="inference",
    ),
    PlantedMistake(
        "the loss of the first position",
        "superbench_gpt2_small",
        Change(DECODER, "logits = logits[:, -1]", "logits = logits[:, 0]"),
    ),
    PlantedMistake(
        "the rotary base of the paper",
        LLAMA,
        Change(DECODER, 'hyper["rotary_base"] **', "10000.0 **"),
    ),
    PlantedMistake(
        "turned the other way",
        LLAMA,
        Change(
            DECODER,
            "(first * cosine - second * sine, second * cosine + first * sine)",
            "(first * cosine + second * sine, second * cosine - first * sine)",
        ),
    ),
    PlantedMistake(
        "heads that share keys interleaved",
        LLAMA,
        Change(
            DECODER,
            "query = every[:, : self.heads]",
            "query = every[:, : self.heads].reshape(rows, -1, self.groups, length, "
            "self.size).swapaxes(1, 2).reshape(rows, self.heads, length, self.size)",
        ),
    ),
    PlantedMistake(
        "epsilon outside the root",
        LLAMA,
        Change(
            DECODER,
            "x * ops.rsqrt(square + self.epsilon)",
            "x / (ops.sqrt(square) + self.epsilon)",
        ),
    ),
    PlantedMistake(
        "the gate's logistic function alone",
        LLAMA,
        Change(DECODER, "ops.silu(self.gate(x)) * up", "ops.sigmoid(self.gate(x)) * up"),
    ),
    PlantedMistake(
        "keys that are not rotated",
        LLAMA,
        Change(
            DECODER, "rotate(query, *angles), rotate(key, *angles)", "rotate(query, *angles), key"
        ),
    ),
]
TRAINING = [
    PlantedMistake(
        "a learning rate that does not change",
        BLOCK,
        Change(OPTIMIZERS, "ops.assign(self._made.learning_rate, Tensor(rate))", "pass"),
    ),
    PlantedMistake(
        "the momentum as it is timed",
        BLOCK,
        Change(
            OPTIMIZERS, 'hyper["learning_rate"], hyper["momentum"])', 'hyper["learning_rate"], 0.9)'
        ),
    ),
    PlantedMistake(
        "the update twice",
        BLOCK,
        Change(
            ADAPTER,
            "        self._optimizer.update(self._gradients)",
            "        self._optimizer.update(self._gradients)\n"
            "        self._optimizer.update(self._gradients)",
        ),
    ),
    PlantedMistake(
        "gradients of the step before",
        BLOCK,
        Change(
            ADAPTER,
            "        loss = self._average()\n        self._update()",
            "        self._update()\n        loss = self._average()",
        ),
    ),
    PlantedMistake(
        "betas exchanged",
        EMBEDDING,
        Change(OPTIMIZERS, '(hyper["beta1"], hyper["beta2"])', '(hyper["beta2"], hyper["beta1"])'),
    ),
    PlantedMistake(
        "moments that are not corrected",
        EMBEDDING,
        Change(OPTIMIZERS, "(1 - beta ** int(self._steps) for", "(1.0 for"),
    ),
    PlantedMistake(
        "an epsilon beside moments that are not corrected",
        EMBEDDING,
        Change(OPTIMIZERS, "self._epsilon * second**0.5", "self._epsilon"),
    ),
    PlantedMistake(
        "a decay that is corrected as the moments are",
        EMBEDDING,
        Change(OPTIMIZERS, "decay = self._decays[name] / scale", "decay = self._decays[name]"),
    ),
    PlantedMistake(
        "decay in the gradient",
        EMBEDDING,
        Change(
            OPTIMIZERS,
            "epsilon, decay, gradient)",
            "epsilon, 0.0, gradient + self._decays[name] * self._held[name][0])",
        ),
    ),
    PlantedMistake(
        "each gradient clipped by its own norm",
        EMBEDDING,
        Change(
            OPTIMIZERS,
            "ops.clip_by_global_norm(given, self._limit)",
            "tuple(ops.clip_by_global_norm((one,), self._limit)[0] for one in given)",
        ),
    ),
    PlantedMistake(
        "each value clipped",
        EMBEDDING,
        Change(
            OPTIMIZERS,
            "ops.clip_by_global_norm(given, self._limit)",
            "ops.clip_by_value(given, -self._limit, self._limit)",
        ),
    ),
    PlantedMistake(
        "a graph of twice the loss",
        BLOCK,
        Change(
            PROGRAMS,
            "        def losses(",
            "        factor = 2.0 if is_compiled else 1.0\n\n        def losses(",
        ),
        Change(PROGRAMS, "loss = loss_of(", "loss = factor * loss_of("),
        compiler="jit",
    ),
    PlantedMistake(
        "a graph without a network's last parameter",
        BLOCK,
        Change(
            PROGRAMS,
            "self.gradients = compiled(self.gradients)",
            "graph = compiled(self.gradients)\n\n"
            "                def gradients(batch: Any, share: float) -> Any:\n"
            "                    loss, found = graph(batch, share)\n"
            "                    return loss, (*found[:-1], 0 * found[-1])\n\n"
            "                self.gradients = gradients",
        ),
        compiler="jit",
    ),
]
ELECTRAS = [
    PlantedMistake(
        "the discriminator's weight as it is timed",
        ELECTRA,
        Change(ELECTRA_FILE, 'hyper["discriminator_weight"] *', "50.0 *"),
    ),
    PlantedMistake(
        "padding of which the discriminator is asked",
        ELECTRA,
        Change(ELECTRA_FILE, "scores, replaced, real,", "scores, replaced, ops.ones_like(real),"),
    ),
    PlantedMistake(
        "a discriminator that sees the true tokens",
        ELECTRA,
        Change(ELECTRA_FILE, "self.embeddings(corrupted, ", "self.embeddings(token_ids, "),
    ),
    PlantedMistake(
        "the likeliest token, not a sampled one",
        ELECTRA,
        Change(ELECTRA_FILE, " + self.noise(sampling_draws)", ""),
    ),
    PlantedMistake(
        "an activation behind the projection",
        ELECTRA,
        Change(ELECTRA_FILE, "x = self.project(x)", "x = ops.gelu(self.project(x))"),
    ),
    PlantedMistake(
        "as many masked as is timed",
        ELECTRA,
        Change(ELECTRA_FILE, "mask_draws < self.masked_percent", "mask_draws < 85"),
    ),
    PlantedMistake(
        "a ratio of norms of what has none",
        ELECTRA,
        Change(OPTIMIZERS, "1.0 if name in self._unscaled else _ratio", "_ratio"),
    ),
    PlantedMistake(
        "one learning rate for all layers",
        "electra_base_squad",
        Change(
            OPTIMIZERS,
            "layerwise.factor(name, hyper) if layerwise.DECAY in hyper else 1.0",
            "1.0",
        ),
    ),
]
DEVICES = [
    PlantedMistake(
        "losses of micro-steps summed",
        BLOCK,
        Change("steps.py", "share = 1.0 / len(batches)", "share = 1.0"),
        micro_steps=2,
    ),
    PlantedMistake(
        "the gradients of the last micro-step",
        BLOCK,
        Change("steps.py", "[own + other for own, other in zip(sums, gradients)]", "gradients"),
        micro_steps=2,
    ),
    PlantedMistake(
        "the sum over ranks",
        BLOCK,
        Change(
            RANKS, "self._all_reduce(gradient) * (1.0 / self._ranks)", "self._all_reduce(gradient)"
        ),
        ranks=2,
    ),
    PlantedMistake(
        "gradients of one device alone",
        EMBEDDING,
        Change(RANKS, "self._all_reduce(gradient) * (1.0 / self._ranks)", "gradient"),
        ranks=2,
    ),
    PlantedMistake(
        "a last parameter that is not averaged",
        BLOCK,
        Change(
            RANKS,
            "for gradient in gradients)",
            "for gradient in gradients[:-1]) + (gradients[-1],)",
        ),
        ranks=2,
    ),
    PlantedMistake(
        "a sum over ranks in a graph",
        BLOCK,
        Change(
            RANKS, "self._all_reduce(gradient) * (1.0 / self._ranks)", "self._all_reduce(gradient)"
        ),
        ranks=2,
        compiler="jit",
    ),
    PlantedMistake(
        "clipped before the all-reduce",
        EMBEDDING,
        Change(
            ADAPTER,
            "accumulated(self._programs.gradients, self._group.average)",
            "accumulated(self._programs.gradients, lambda gradients: self._group.average("
            "self._ops.clip_by_global_norm(gradients, self._optimizer._limit)))",
        ),
        ranks=2,
    ),
    PlantedMistake(
        "running statistics averaged over ranks",
        BLOCK,
        Change(
            ADAPTER,
            "        loss, self._gradients = self._averaged(self._batches)\n",
            "        loss, self._gradients = self._averaged(self._batches)\n"
            "        for one in self.state().values():\n"
            "            if not one.trainable:\n"
            "                self._ops.assign(one.tensor, self._group.average([one.tensor])[0])\n",
        ),
        ranks=2,
    ),
    PlantedMistake(
        "other initial values in each rank",
        EMBEDDING,
        Change(
            ADAPTER,
            "mindspore.set_seed(self.rank_context.seed)  #",
            "mindspore.set_seed(self.rank_context.seed + self.rank_context.rank)  #",
        ),
        ranks=2,
    ),
    PlantedMistake(
        "the same dropout in all ranks",
        EMBEDDING,
        Change(
            ADAPTER,
            "self._ops.Dropout(keep, seed, number)",
            "self._ops.Dropout(keep, self.rank_context.seed, number)",
        ),
        ranks=2,
        config_name=DROPOUT,
    ),
]
MISTAKES = [*BERTS, *CNNS, *DECODERS, *TRAINING, *ELECTRAS, *DEVICES]
