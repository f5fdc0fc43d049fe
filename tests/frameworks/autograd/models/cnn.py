"""Convolutional networks of the reference, whose own code runs under Autograd."""

import harness.adapter
from reference import cnn


class Definition(harness.adapter.Definition):
    forward, loss, parameters = map(staticmethod, (cnn.forward, cnn.loss, cnn.parameters))
