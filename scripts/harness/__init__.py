"""The measuring half of Framebench: standard library only, Python 3.7 to 3.13."""

VERSION = "0.2.0"
