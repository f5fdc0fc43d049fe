"""Convolutional networks as data: a description names a family and its numbers, from which
:func:`describe` makes a flat list of layers with their shapes, and :func:`weights` the arrays that
they hold. An interpreter in each framework's ``cnn.py`` runs the list.

Standard library; Python 3.7 to 3.13.
"""

from __future__ import annotations

from networks.description import describe, describe_images, forward_multiply_adds
from networks.layers import IMAGES, Layer, LayerGraph, SampleShape
from networks.weights import Weight, weights
