"""BERT as the reference defines it: the reference's own code runs under Autograd."""

import harness.adapter
from reference import bert


class Definition(harness.adapter.Definition):
    forward, loss, parameters = map(staticmethod, (bert.forward, bert.loss, bert.parameters))
