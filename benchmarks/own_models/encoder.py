"""A small BERT of transformers with a masked-language-model head."""

import torch
from torch.nn import functional
from transformers import BertConfig, BertForMaskedLM

FRAMEWORK = "pytorch"
WORDS, TOKENS = 2000, 64


def make(batch_size):
    config = BertConfig(
        vocab_size=WORDS,
        hidden_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=1024,
    )
    tokens, labels = torch.randint(WORDS, (2, batch_size, TOKENS))
    return BertForMaskedLM(config), ({"input_ids": tokens}, labels), loss


def loss(outputs, labels):
    return functional.cross_entropy(outputs.logits.flatten(0, 1), labels.flatten())


def optimizer(parameters):
    return torch.optim.SGD(parameters, lr=0.01, momentum=0.9)
