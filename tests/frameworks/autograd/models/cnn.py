"""Networks of the reference, which is written for Autograd anyway."""

import harness.adapter
from reference import cnn


class Definition(harness.adapter.Definition):
    forward, loss, parameters = map(staticmethod, (cnn.forward, cnn.loss, cnn.parameters))
