"""Provenance of a figure: code, packages, environment, machine."""
