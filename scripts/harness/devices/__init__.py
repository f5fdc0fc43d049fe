"""Devices of a run, and their exclusive use."""
