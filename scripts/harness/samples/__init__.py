"""Samples from a folder: list, order, and completeness."""
