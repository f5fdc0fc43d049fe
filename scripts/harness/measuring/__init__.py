"""Timed regions, and the checks that what ran is what was requested."""
