"""Verify by observation that the executed run is the requested one."""
