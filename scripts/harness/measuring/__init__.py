"""Timed regions, and checks that the executed run is the requested one."""
