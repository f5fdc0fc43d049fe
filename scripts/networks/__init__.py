"""Models as data. Of a convolutional network a description names a family and its numbers, from
which :func:`describe` makes a flat list of layers with their shapes, and :func:`weights` the arrays
that they hold. An interpreter in each framework's ``cnn.py`` runs the list. Of transformers and the
LSTM, :mod:`networks.transformers` has the arrays.

Standard library; Python 3.7 to 3.13.
"""

from __future__ import annotations

from networks.description import describe, describe_images, forward_multiply_adds
from networks.initials import Initial
from networks.layers import IMAGES, Layer, LayerGraph, SampleShape, Weight, initialize, weights
