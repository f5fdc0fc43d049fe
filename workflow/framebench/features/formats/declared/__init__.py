"""Formats, one module each; the registry collects their FORMATS."""
