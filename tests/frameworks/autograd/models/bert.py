"""Model of the reference, which is written for Autograd anyway."""

import harness.adapter
from reference import bert


class Definition(harness.adapter.Definition):
    forward, loss, parameters = map(staticmethod, (bert.forward, bert.loss, bert.parameters))
