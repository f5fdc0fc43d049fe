"""Double of the library transformers, with the functions that the tests' models need."""

import collections
import dataclasses

from torch import nn


class Config:
    def __init__(self, **values):
        options = {"hidden_size": 8, "vocab_size": 50, "dropout": 0.5, "pad_token_id": None}
        vars(self).update({**options, "is_encoder_decoder": False, **values})

    from_dict = classmethod(lambda kind, values: kind(**values))

    def get_text_config(self):
        return self


class TinyForSequenceClassification(nn.Module):
    config_class, main_input_name = Config, "input_ids"

    def __init__(self, config):
        super().__init__()
        self.config, self.embed = config, nn.Embedding(config.vocab_size, config.hidden_size)
        self.head = nn.Linear(config.hidden_size, 3)

    def forward(self, input_ids, labels=None):
        assert self.config.pad_token_id == 0
        x = nn.functional.dropout(self.embed(input_ids).mean(1), self.config.dropout)
        logits = self.head(x)
        loss = None if labels is None else nn.functional.cross_entropy(logits, labels)
        return Output(loss, logits)


@dataclasses.dataclass
class Output(collections.OrderedDict):
    loss: object
    logits: object


class TinyModel(TinyForSequenceClassification):
    main_input_name = "bbox"


class TinyForImages(TinyForSequenceClassification):
    main_input_name = "pixel_values"

    def forward(self, pixel_values):
        assert pixel_values.shape[1:] == (3, 224, 224)
        return Output(None, self.head(self.embed(pixel_values.argmax(1)[:, 0] % 50)))
