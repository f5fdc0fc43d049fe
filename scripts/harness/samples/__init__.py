"""Samples that come from a folder: which there are, in which order, and whether all came."""
