"""Mistakes in MegEngine's adapter."""

from __future__ import annotations

from ..comparing import DROPOUT
from ..models import BERT, BLOCKS, EMBEDDING, RESNET
from .planted import Change, PlantedMistake

BERT_FILE, CNN_FILE = "models/bert.py", "models/cnn.py"
BLOCK = "basic residual, halving"
SGD = 'return optimizer.SGD(groups, rate, momentum=hyper["momentum"])'

MISTAKES = [
    PlantedMistake(
        "a mask that is too weak",
        BERT,
        Change(BERT_FILE, "MASKED_SCORE = -10000.0", "MASKED_SCORE = -1.0"),
    ),
    PlantedMistake(
        "scaled by the number of heads",
        BERT,
        Change(BERT_FILE, "query * self.head_size**-0.5", "query * self.heads**-0.5"),
    ),
    PlantedMistake(
        "the wrong axis of the probabilities",
        BERT,
        Change(BERT_FILE, "F.softmax(scores, -1)", "F.softmax(scores, -2)"),
    ),
    PlantedMistake(
        "heads side by side in the sequence",
        BERT,
        Change(
            BERT_FILE,
            "F.flatten(context.transpose(0, 2, 1, 3), 2)",
            "context.reshape(*x.shape)",
        ),
    ),
    PlantedMistake(
        "GELU approximated",
        BERT,
        Change(
            BERT_FILE,
            "self.output(F.gelu(self.intermediate(x)))",
            "self.output((lambda y: y * 0.5 * (1.0 + F.tanh(0.7978845608 * (y + 0.044715 * y**3))))"
            "(self.intermediate(x)))",
        ),
    ),
    PlantedMistake(
        "normalised before the residual",
        BERT,
        Change(
            BERT_FILE,
            "self.attention_norm(x + self.dropout(self.attention(x, mask)))",
            "x + self.attention_norm(self.dropout(self.attention(x, mask)))",
        ),
    ),
    PlantedMistake(
        "MegEngine's own epsilon of the normalisation",
        BERT,
        Change(
            BERT_FILE,
            "self.attention_norm = M.LayerNorm(hidden, epsilon)",
            "self.attention_norm = M.LayerNorm(hidden)",
        ),
    ),
    PlantedMistake(
        "no segments",
        BERT,
        Change(BERT_FILE, " + self.segment(segment_ids)", " + 0.0 * self.segment(segment_ids)"),
    ),
    PlantedMistake(
        "the pooler on the last position",
        BERT,
        Change(BERT_FILE, "self.pooler(x[:, 0])", "self.pooler(x[:, -1])"),
    ),
    PlantedMistake(
        "masked positions of the first sequence in all",
        BERT,
        Change(BERT_FILE, "x[rows, F.flatten(positions)]", "x[rows * 0, F.flatten(positions)]"),
    ),
    PlantedMistake(
        "a decoder that does not teach the embedding",
        BERT,
        Change(
            BERT_FILE,
            "self.decoder(masked, self.embeddings.token.weight)",
            "self.decoder(masked, self.embeddings.token.weight.detach())",
        ),
    ),
    PlantedMistake(
        "losses of both tasks in one mean",
        BERT,
        Change(
            "adapter.py",
            "self._manager.backward(sum(vector.mean() for vector in losses))",
            "self._manager.backward(self._megengine.functional.concat(losses).mean())",
        ),
    ),
    PlantedMistake(
        "the second task left out of the gradient",
        BERT,
        Change(
            "adapter.py",
            "sum(vector.mean() for vector in losses))\n\n    def _update",
            "losses[0].mean() + 0.0 * losses[-1].mean())\n\n    def _update",
        ),
    ),
    PlantedMistake(
        "labels smoothed",
        BERT,
        Change(
            BERT_FILE,
            'F.flatten(labels), reduction="none")',
            'F.flatten(labels), reduction="none", label_smooth=0.01)',
        ),
    ),
    PlantedMistake(
        "beginnings and ends of answers side by side",
        "bert_base_squad",
        Change(
            BERT_FILE,
            "F.flatten(outputs[0].transpose(0, 2, 1), 0, 1)",
            "outputs[0].reshape(-1, outputs[0].shape[1])",
        ),
    ),
    PlantedMistake(
        "MegEngine's own initial values of linear layers",
        BERT,
        Change(
            BERT_FILE,
            "isinstance(module, (M.Linear, M.Embedding))",
            "isinstance(module, M.Embedding)",
        ),
    ),
    PlantedMistake(
        "initial values of half the deviation",
        EMBEDDING,
        Change(BERT_FILE, 'hyper["initializer_range"]', '0.5 * hyper["initializer_range"]'),
    ),
    PlantedMistake(
        "no dropout of attention",
        BERT,
        Change(BERT_FILE, "self.dropout(F.softmax(scores, -1))", "F.softmax(scores, -1)"),
        config_name=DROPOUT,
    ),
    PlantedMistake(
        "a fifth of the embeddings dropped, not a tenth",
        EMBEDDING,
        Change(
            BERT_FILE,
            'self.norm = M.LayerNorm(hyper["hidden"], hyper["layer_norm_epsilon"])\n'
            '        self.dropout = M.Dropout(hyper["dropout"])',
            'self.norm = M.LayerNorm(hyper["hidden"], hyper["layer_norm_epsilon"])\n'
            '        self.dropout = M.Dropout(2 * hyper["dropout"])',
        ),
        config_name=DROPOUT,
    ),
    PlantedMistake(
        "dropout in inference",
        BERT,
        Change("adapter.py", "self._model.train(self.trains)", "self._model.train()"),
        config_name=DROPOUT,
        mode="inference",
    ),
    PlantedMistake(
        "a network's own rate of dropout",
        BLOCKS,
        Change(CNN_FILE, 'M.Dropout(layer.attributes["rate"])', "M.Dropout(0.5)"),
        config_name=DROPOUT,
    ),
    PlantedMistake(
        "the share of the old statistics as of the new",
        RESNET,
        Change(CNN_FILE, '1.0 - layer.attributes["momentum"]', 'layer.attributes["momentum"]'),
    ),
    PlantedMistake(
        "a larger epsilon of batch normalisation",
        RESNET,
        Change(CNN_FILE, 'layer.attributes["epsilon"], momentum', "1e-3, momentum"),
    ),
    PlantedMistake(
        "the batch's own statistics",
        RESNET,
        Change("adapter.py", "self._model.train(self.trains)", "self._model.train()"),
        mode="inference",
    ),
    PlantedMistake(
        "initial values of all layers as MegEngine has them",
        RESNET,
        Change(CNN_FILE, "INITIALIZERS[", "(lambda *_: None) or INITIALIZERS["),
    ),
    PlantedMistake(
        "ReLU6 without its upper end",
        BLOCKS,
        Change(CNN_FILE, "return F.relu6", "return F.relu"),
    ),
    PlantedMistake(
        "averages without the padding",
        BLOCKS,
        Change(CNN_FILE, 'mode="average",', 'mode="average_count_exclude_padding",'),
    ),
    PlantedMistake(
        "channels shuffled within their group",
        BLOCKS,
        Change(CNN_FILE, "x.transpose(0, 2, 1, 3, 4).reshape", "x.reshape"),
    ),
    PlantedMistake(
        "the second half of the channels from the first",
        BLOCKS,
        Change(CNN_FILE, "x[:, begin:end]", "x[:, : end - begin]"),
    ),
    PlantedMistake(
        "images turned round",
        BLOCK,
        Change("adapter.py", "array.transpose(0, 3, 1, 2)", "array.transpose(0, 3, 2, 1)"),
    ),
    PlantedMistake(
        "a learning rate that does not change",
        BLOCK,
        Change("adapter.py", 'group["lr"] = rate', "pass"),
    ),
    PlantedMistake(
        "gradients of the steps before",
        BLOCK,
        Change("adapter.py", "        self._optimizer.clear_grad()\n", ""),
    ),
    PlantedMistake(
        "the update twice",
        BLOCK,
        Change(
            "adapter.py",
            "        self._optimizer.step()",
            "        self._optimizer.step()\n        self._optimizer.step()",
        ),
    ),
    PlantedMistake(
        "betas exchanged",
        EMBEDDING,
        Change(
            "optimizers.py", '(hyper["beta1"], hyper["beta2"])', '(hyper["beta2"], hyper["beta1"])'
        ),
    ),
    PlantedMistake(
        "decay in the gradient",
        EMBEDDING,
        Change("optimizers.py", "optimizer.AdamW(", "optimizer.Adam("),
    ),
    PlantedMistake(
        "each gradient clipped by its own norm",
        EMBEDDING,
        Change(
            "adapter.py",
            "self._megengine.optimizer.clip_grad_norm(self._parameters.values(), limit)",
            "for one in self._parameters.values():\n"
            "                self._megengine.optimizer.clip_grad_norm([one], limit)",
        ),
    ),
    PlantedMistake(
        "clipped by the sum of magnitudes",
        EMBEDDING,
        Change(
            "adapter.py",
            "self._parameters.values(), limit)",
            "self._parameters.values(), limit, 1.0)",
        ),
    ),
    PlantedMistake(
        "clipped behind the update",
        EMBEDDING,
        Change(
            "adapter.py",
            "        if limit is not None:",
            "        self._optimizer.step()\n        if limit is not None:",
        ),
        Change("adapter.py", "limit)\n        self._optimizer.step()", "limit)"),
    ),
]
