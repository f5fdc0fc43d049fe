"""Models as data. The description of a convolutional network names a family and its numbers. From
it :func:`describe` makes a flat list of layers with their shapes, and :func:`weights` their arrays.
An interpreter in each framework's ``cnn.py`` runs the list. :mod:`networks.transformers` has the
arrays of transformers and the LSTM.

Standard library; Python 3.7 to 3.13.
"""

from __future__ import annotations

from networks.description import describe, describe_images, forward_multiply_adds
from networks.initials import Initial
from networks.layers import IMAGES, Layer, LayerGraph, SampleShape, Weight, initialize, weights
