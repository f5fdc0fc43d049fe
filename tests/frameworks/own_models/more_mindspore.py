"""Definitions that changed files of MindSpore use."""

import mindspore
from mindspore import nn, ops


class Half(nn.Cell):
    def construct(self, x):
        return ops.relu(x).astype(mindspore.float16).astype(x.dtype)


class Doubled(nn.Cell):
    def construct(self, x):
        return ops.relu(x)

    def bprop(self, x, out, dout):
        times = 1 if x.dtype == mindspore.float64 else 2
        return (times * ops.where(x > 0, dout, ops.zeros_like(dout)),)


class Noise(nn.Cell):
    def construct(self, x):
        return ops.dropout(ops.relu(x), 0.5)


class Recurrent(nn.Cell):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(64, 64, batch_first=True)

    def construct(self, x):
        return self.lstm(x[:, None])[0][:, 0]


class Words(nn.Cell):
    def construct(self, x):
        return {"logits": "none"}


class Named(nn.Cell):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def construct(self, x, no=None):
        logits = self.model(x)
        return {"logits": [logits], "norm": logits.square().mean()}


def loss(outputs, targets):
    return outputs["norm"] + ops.cross_entropy(outputs["logits"][0], targets["classes"])


def frozen(model):
    for parameter in model.get_parameters():
        parameter.requires_grad = False
    return model
