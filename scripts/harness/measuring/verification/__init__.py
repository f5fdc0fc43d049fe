"""Verification by observation that what ran is what was requested."""
